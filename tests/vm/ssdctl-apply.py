#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssdctl shows drives, selects a scheduler wholly or not at all, also under load, and reverts it
# check: 6.12
# timeout: 600
# precedence: no

import fcntl
import json
import os
import pathlib

from checks import check, run
from fio_jobs import random_load
from iosched import Disk, insert, ours, remove_all
from ssd import Device
from ssdctl import PROGRAM, State, as_nobody, has, link, nothing_left, refused, ssdctl, status_of

from ssd_common.drive import Drive  # (in a folder that ssdctl.py has added)

DEBUG = "/sys/kernel/debug"


def shows(name):
    """The table and the JSON name the drive and the schedulers; errors are single lines."""
    table = ssdctl("status", "--interval", 0)[0]
    check(name in table and all(scheduler in table for scheduler in ours()), "a table")
    made = status_of(name)
    check(made["scheduler"] == "none" and made["kept"] is None and made["bytes"] > 0, "JSON")
    refused("No such file", "status", "/dev/nothing")
    refused("not a block device", "status", "/dev/null")
    refused("no command", "frobnicate", status=2)
    refused("unrecognized", "status", "--frobnicate", status=2)


def refuses(name):
    """What is invalid changes nothing."""
    state = State(name)
    for because, *words in (
            ("has no block_size_kbx", "bp", "block_size_kb=512", "block_size_kbx=1"),
            ("does not take -1", "bp", "block_size_kb=512", "depth=-1"),
            ("does not take x", "bp", "nr_requests=x"),
            ("nomerges does not take 3: it takes numbers from 0 to 2", "pass", "nomerges=3"),
            ("max_sectors_kb does not take 999999", "pass", "max_sectors_kb=999999"),
            ("the queue has nr_requests wbt_lat_usec read_ahead_kb max_sectors_kb nomerges",
             "mq-deadline", "rq_affinities=2"),
            ("noop is called none since Linux 5.0", "noop"),
            ("no scheduler nonsense", "nonsense"),
            ("no value of depth", "pass", "depth=$(reboot)"),
            ("no name of a tunable", "pass", "../scheduler=none"),
            ("'' is no name of a scheduler", ""),
            ("'mq deadline' is no name of a scheduler", "mq deadline"),
            ("not NAME=VALUE", "pass", "depth")):
        refused(because, "apply", name, *words)
        state.same(f"after {' '.join(words)}")
    refused("name a scheduler before", "apply", name, "depth=1", status=2)
    refused("no advice", "apply", name)
    nothing_left_of_saved()


def nothing_left_of_saved():
    """A refused choice is not saved."""
    folder = pathlib.Path("/var/lib/ssd-iosched/saved")
    check(not folder.exists() or not list(folder.iterdir()), "nothing is saved")


def measured(name):
    """A drive that another program holds for a measurement is left alone."""
    with open(f"/dev/{name}", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        refused("is locked by another program", "apply", name, "pass")
    has(name, "none")


def reverts(name):
    """The oldest state is restored after several choices, with its tunables."""
    file = pathlib.Path("/sys/block", name, "queue")
    Disk(name, "mq-deadline")
    for tunable, value in {"iosched/read_expire": 250, "nr_requests": 77,
                           "wbt_lat_usec": 5000, "read_ahead_kb": 64}.items():
        (file / tunable).write_text(str(value))
    state = State(name)
    ssdctl("apply", name, "bp", "block_size_kb=2048", "open_blocks=2")
    has(name, "bp", block_size_kb=2048, open_blocks=2, nr_requests=128, wbt_lat_usec=0)
    check(status_of(name)["changed"] == {"block_size_kb": "2048", "open_blocks": "2"},
          "the tunables that were changed")
    made = json.loads(ssdctl("apply", name, "bp", "depth=4", "--json")[0])
    check(made["drive"] == f"/dev/{name}" and made["choice"]["tunables"] == {"depth": "4"} and
          "until the next boot" in made["messages"][0], f"JSON of apply: {made}")
    has(name, "bp", depth=4, block_size_kb=1024, open_blocks=1)
    ssdctl("apply", name, "pass", "read_ahead_kb=256")
    has(name, "pass", wbt_lat_usec=5000, read_ahead_kb=256)
    ssdctl("apply", name, "mq-deadline")
    has(name, "mq-deadline", read_expire=500, nr_requests=77, read_ahead_kb=64)
    ssdctl("revert", name)
    state.same("reverted")
    check("nothing to undo" in ssdctl("revert", name)[0], "reverted twice")
    (file / "scheduler").write_text("none")


def queue_settings(name):
    """Settings of the queue are part of a choice, by other names of schedulers, too; others get
    what was there before."""
    state = State(name)
    former = {key: (state.queue / key).read_text().strip()
              for key in ("nomerges", "rq_affinity", "max_sectors_kb", "add_random")}
    ssdctl("apply", name, "deadline", "nomerges=2", "rq_affinity=2", "max_sectors_kb=64",
           "add_random=1", "fifo_batch=4")
    has(name, "mq-deadline", nomerges=2, rq_affinity=2, max_sectors_kb=64, add_random=1,
        fifo_batch=4)
    ssdctl("apply", name, "pass", "rq_affinity=0")
    has(name, "pass", **{**former, "rq_affinity": 0})
    # PAI has limits of its own meanwhile.
    ssdctl("apply", name, "pai", "nomerges=1")
    ssdctl("revert", name)
    state.same("reverted")


def throttled(name):
    """Writeback throttling under bfq, and after it, is as after a boot, whatever was before."""
    queue = pathlib.Path("/sys/block", name, "queue")
    Disk(name, "mq-deadline")
    usual = int((queue / "wbt_lat_usec").read_text())
    ssdctl("apply", name, "bp")
    ssdctl("apply", name, "bfq")
    has(name, "bfq", wbt_lat_usec=0)
    ssdctl("apply", name, "pass")
    has(name, "pass", wbt_lat_usec=usual)
    ssdctl("revert", name)
    has(name, "mq-deadline", wbt_lat_usec=usual)
    # Written once, it outlasts what bfq does by itself.
    ssdctl("apply", name, "bfq")
    has(name, "bfq", wbt_lat_usec=0)
    ssdctl("apply", name, "bfq", "wbt_lat_usec=5000")
    has(name, "bfq", wbt_lat_usec=5000)
    ssdctl("revert", name)
    (queue / "scheduler").write_text("none")


def found_unthrottled(name):
    """A drive that has bfq shows no throttling: that is not kept for another scheduler. Nothing is
    written that bfq has done by itself."""
    queue = pathlib.Path("/sys/block", name, "queue")
    usual = int((queue / "wbt_lat_usec").read_text())
    Disk(name, "bfq")
    # 6.1 shows what it would be.
    shown = int((queue / "wbt_lat_usec").read_text())
    ssdctl("apply", name, "pass")
    has(name, "pass", wbt_lat_usec=usual)
    ssdctl("revert", name)
    has(name, "bfq", wbt_lat_usec=shown)
    (queue / "scheduler").write_text("none")
    has(name, "none", wbt_lat_usec=usual)


def advised(name):
    """Without a scheduler, apply takes the stored advice."""
    folder = pathlib.Path("/var/lib/ssd-iosched/advice")
    folder.mkdir(parents=True)
    file = folder / f"{name}.json"
    choice = {"scheduler": "pass", "tunables": {"depth": 8}}
    made = {"sure": True, "choice": choice, "leading": {"choice": choice}}
    file.write_text(json.dumps(made | {"instance": "another drive of this name"}))
    refused("no advice", "apply", name)
    file.write_text(json.dumps(made | {"instance": Drive(f"/dev/{name}").instance()}))
    ssdctl("apply", name)
    has(name, "pass", depth=8)
    check(status_of(name)["advice"]["scheduler"] == "pass", "status shows the advice")
    undecided = {"sure": False, "choice": {"scheduler": "pass"}, "had": {"scheduler": "pass"},
                 "leading": {"choice": {"scheduler": "kyber"}, "gain_low": 0.98, "gain_high": 1.2},
                 "instance": Drive(f"/dev/{name}").instance()}
    file.write_text(json.dumps(undecided))
    refused("undecided (kyber leads)", "apply", name)
    has(name, "pass", depth=8)
    shown = status_of(name)
    check(shown["advice"] is None and shown["undecided"]["scheduler"] == "kyber" and
          "undecided, kyber leads" in ssdctl("status", name, "--interval", "0")[0],
          "status marks the advice")
    ssdctl("apply", name, "--even-unsure")
    has(name, "kyber")
    ssdctl("apply", name, "pass", "depth=8")
    file.write_text("{")
    refused("is damaged", "apply", name)
    has(name, "pass", depth=8)
    ssdctl("undo-all")
    has(name, "none")
    nothing_left()


def under_load(disk):
    """Choices under load; status says what the drive does, and needs no debugfs."""
    with random_load([disk], rw="randrw"):
        for name in ours():
            ssdctl("apply", disk.name, name, "depth=4")
        run("umount", DEBUG)
        try:
            said = run(PROGRAM, "status", disk.name, "--json", "--interval", "2")
            check(not os.path.ismount(DEBUG), "debugfs is mounted for ssdctl alone")
        finally:
            run("mount", "-t", "debugfs", "debugfs", DEBUG)
        ssdctl("revert", disk.name)
    now = json.loads(said)["drives"][0]["now"]
    check(now["read"]["iops"] > 0 and now["write"]["mb_s"] > 0 and not now["idle"] and
          now["queued"] is not None and now["busy"] > 0, f"activity {now}")
    has(disk.name, "none")


def bare():
    """A device that is made of others, or of memory, has no scheduler."""
    run("modprobe", "brd", "rd_nr=1", "rd_size=4096")
    made = status_of("ram0")
    check(made["scheduler"] is None and "no scheduler of its own" in made["why"], f"JSON: {made}")
    check("  -  " in ssdctl("status", "ram0")[0], "a table")
    check("ram0" not in ssdctl("status", "--interval", 0)[0], "it is no drive")
    refused("has no scheduler of its own", "apply", "ram0", "pass")
    check("none" in ssdctl("top", "ram0", "--once", "--interval", 0.1)[0], "top shows it")
    run("rmmod", "brd")


def without_root(name):
    """Anyone may look, only root may change."""
    status, out, _ = as_nobody("status", name, "--interval", "0")
    check(status == 0 and name in out, "status without root")
    status, _, errors = as_nobody("apply", name, "pass")
    check(status == 1 and errors == "ssdctl: must be run as root\n", "apply without root")
    has(name, "none")


def module_fails(name):
    """A module that is not there leaves the old scheduler, and the message says what to do."""
    remove_all()
    modules = pathlib.Path("/lib/modules", os.uname().release)
    run("mount", "-t", "tmpfs", "none", modules)
    try:
        state = State(name)
        refused("no scheduler pass: install ssd-iosched-dkms", "apply", name, "pass")
        state.same("without the module")
        made = ssdctl("status", "--interval", 0)[0]
        check("it lacks pass piq bp pai: install ssd-iosched-dkms" in made, "status says so")
    finally:
        run("umount", modules)


def main():
    link()
    for name in ours():
        insert(name)
    with Device("small", memory_backed=1) as device:
        disk = Disk(device.name, "none")
        shows(disk.name)
        refuses(disk.name)
        measured(disk.name)
        found_unthrottled(disk.name)
        throttled(disk.name)
        reverts(disk.name)
        queue_settings(disk.name)
        advised(disk.name)
        under_load(disk)
        bare()
        without_root(disk.name)
        module_fails(disk.name)


if __name__ == "__main__":
    main()
