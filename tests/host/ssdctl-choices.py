#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# What ssdctl takes as a choice: settings of the queue with values that the kernel takes, and any
# scheduler of the kernel; what a drive has, or had before, stays. Drives with one serial number are
# told apart, and what a drive is used for is told. By made-up files of the kernel
# quick: host

import errno
import fcntl
import os
import pathlib
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_common import drive as probed  # noqa: E402
from ssd_ctl import (  # noqa: E402
    CtlError, apply, drives, persist, rules, schedulers, status, udev, uses)
from ssd_ctl.choice import Choice, parse  # noqa: E402

MOUNTS = r"""21 1 8:1 / / rw - ext4 /dev/sda1 rw
30 21 0:39 / /mnt/my\040pool rw - btrfs /dev/dm-0 rw
31 21 8:17 / /mnt/card rw - vfat /dev/sdb1 rw
32 21 0:50 / /mnt/my\040pool/below rw - tmpfs tmpfs rw
odd line
"""


def failed(call, because):
    """Check that a call fails with a message that says why."""
    try:
        call()
    except CtlError as error:
        check(because in str(error), f"it says {error}")
        return
    check(False, f"{because}: it does not fail")


def locks(folder):
    """A drive that another program has locked is told so; one that cannot be opened is not."""
    path = folder / "disk"
    path.write_text("")
    drive = types.SimpleNamespace(path=str(path))
    drive.locked = lambda: probed.Drive.locked(drive)
    limit, probed.LOCK_S = probed.LOCK_S, 0

    def held():
        with apply.locked(drive):
            check(False, "the lock is held")
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        failed(held, f"{path} is locked by another program: wait until it ends")
    path.unlink()
    failed(held, f"{path}: {os.strerror(errno.ENOENT)}")
    try:
        held()
    except CtlError as error:
        check("wait" not in str(error), f"there is nothing to wait for: {error}")
    probed.LOCK_S = limit


def settings(folder):
    """Settings of the queue are part of a choice, with values that the kernel takes as they are;
    others have what they had before, but for what a scheduler has by itself."""
    words = ["pass", "nomerges=2", "rq_affinity=0", "add_random=1", "max_sectors_kb=512",
             "read_ahead_kb=0", "wbt_lat_usec=-1", "nr_requests=4"]
    check(parse(words).as_words() == words and not parse(words).tunables, "all are of the queue")
    for word, takes in (("nomerges=3", "from 0 to 2"), ("rq_affinity=-1", "from 0 to 2"),
                        ("add_random=2", "from 0 to 1"), ("nr_requests=3", "from 4 on"),
                        ("nr_requests=0x40", "from 4 on"), ("wbt_lat_usec=-2", "from -1 on"),
                        ("read_ahead_kb=5", "from 0 on, a multiple of"),
                        ("max_sectors_kb=0", "from"),
                        ("max_sectors_kb=9999999999", "from")):
        failed(lambda word=word: parse(["pass", word]), f"it takes numbers {takes}")
    had = Choice("none", {}, {"nomerges": "0", "max_sectors_kb": "1280", "nr_requests": "64",
                              "add_random": "1"})
    for name, queue, meant in (
            ("pass", {}, {"nomerges": "0", "max_sectors_kb": "1280", "add_random": "1"}),
            ("pass", {"nomerges": "2"}, {"nomerges": "2", "max_sectors_kb": "1280",
                                         "add_random": "1"}),
            ("none", {}, had.queue),
            # It has limits of its own.
            ("pai", {}, {"nomerges": "0", "add_random": "1"})):
        found = apply.with_former_queue(Choice(name, {}, queue), had)
        check(found.queue == meant, f"{name} {queue}: {found.queue}")
    (folder / "queue").mkdir(parents=True)
    for file, value in (("scheduler", "[adios] none pass"), ("nomerges", "0"), ("nr_requests", "8"),
                        ("max_sectors_kb", "1280"), ("max_hw_sectors_kb", "2048")):
        (folder / "queue" / file).write_text(value)
    drive = types.SimpleNamespace(path="/dev/odd", sysfs=folder, queue=folder / "queue",
                                  exists=lambda: True)
    former, written = schedulers.select, []
    write, schedulers.write = schedulers.write, lambda _, file, value: written.append(file)
    schedulers.select = lambda *_: None
    schedulers.change(drive, Choice("adios", {"depth": "1"}, {
        "nomerges": "0", "max_sectors_kb": "512", "nr_requests": "8"}))
    check(written == ["max_sectors_kb", "nr_requests", "iosched/depth"],
          f"what the queue has already is not written: {written}")
    failed(lambda: schedulers.change(drive, Choice("adios", {}, {"max_sectors_kb": "4096"})),
           "max_sectors_kb does not take 4096: /dev/odd takes 2048 at most")
    schedulers.select, schedulers.write = former, write


def offered(folder):
    """Any scheduler that the kernel offers, or has a module of, is selected and measured."""
    (folder / "queue").mkdir(parents=True)
    (folder / "queue/scheduler").write_text("[adios] none pass")
    drive = types.SimpleNamespace(path="/dev/odd", queue=folder / "queue")
    former = schedulers.with_module, schedulers.INSTALLED
    schedulers.with_module = lambda names: {*names} & {"kyber", "bfq", "fiops"}
    schedulers.INSTALLED = folder
    (folder / os.uname().release).mkdir()
    (folder / os.uname().release / "modules.alias").write_text(
        "alias fiops-iosched fiops\nalias deadline-iosched mq_deadline\nalias bfq-iosched bfq\n"
        "alias gone-iosched gone\nalias pci:v1 nvme\n")
    found = schedulers.available(drive)
    check(found == ["none", "kyber", "bfq", "adios", "fiops", "pass"], f"available: {found}")
    found = schedulers.support([drive])
    check(found["adios"] == "loaded" and found["fiops"] == "module" and
          found["gone"] == found["piq"] == "missing" and "deadline" not in found, f"{found}")
    check(parse(["adios", "lat_target=5"]) == Choice("adios", {"lat_target": "5"}), "and parsed")
    schedulers.with_module, schedulers.INSTALLED = former


def twins():
    """A rule that is for another drive, too, is not made silently: the other one is named, and how
    to make a rule for the place."""
    place = {"sda": "usb-1-scsi-0:0:0:0", "sdb": "usb-1-scsi-0:0:0:1"}
    both = [types.SimpleNamespace(name=name, path=f"/dev/{name}", sysfs=pathlib.Path("/x"))
            for name in ("sda", "sdb")]
    one = {"ID_MODEL": "Dock", "ID_SERIAL_SHORT": "same"}

    def rule(**match):
        return rules.Rule(Choice("bp"), "sd*", match, "Dock", False, "")
    former = udev.properties, drives.every
    udev.properties = lambda drive: {**one, "ID_PATH": place[drive.name]}
    drives.every = lambda others: both
    found = persist.alike(both[0], rule(**one))
    said = persist.warnings(both[0], rule(**one), found)
    check(found == ["/dev/sdb"] and "/dev/sdb has the same model and serial number" in said[0] and
          "ssdctl persist --by-path /dev/sda bp" in said[0], f"twins: {said}")
    at = rule(ID_PATH=place["sda"])
    check(persist.alike(both[0], at) == [], "by their paths they are told apart")
    made = [{"name": drive.name, "model": "Dock", "serial": "same", "place": place[drive.name],
             "uses": ["/mnt", "swap"], "twins": []} for drive in both]
    made.append({**made[0], "name": "sdc", "serial": "", "uses": []})
    status.note_twins(made)
    said = [status.identity_text(each) for each in made]
    check(said == ["serial number same, as sdb has, too, at usb-1-scsi-0:0:0:0, used for /mnt swap",
                   "serial number same, as sda has, too, at usb-1-scsi-0:0:0:1, used for /mnt swap",
                   "at usb-1-scsi-0:0:0:0"], f"status: {said}")
    udev.properties, drives.every = former


def used(folder):
    """What is mounted from a drive, from its partitions and from what is made of them is told, as
    is swap; what another drive has is not."""
    former = uses.MOUNTS, uses.SWAPS, uses.number_of
    uses.MOUNTS, uses.SWAPS = folder / "mountinfo", folder / "swaps"
    for path, text in (("sda/dev", "8:0"), ("sda/sda1/dev", "8:1"), ("sda/sda1/partition", "1"),
                       ("sda/sda2/dev", "8:2"), ("sda/sda2/partition", "2"), ("dm-0/dev", "253:0"),
                       ("mountinfo", MOUNTS),
                       ("swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n"
                                 "/swap\\040file file\n")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "sda/sda2/holders").mkdir()
    (folder / "sda/sda2/holders/dm-0").symlink_to(folder / "dm-0")
    uses.number_of = {"/dev/sda2": "8:2", "/dev/dm-0": "253:0", "/dev/sda1": "8:1"}.get
    found = uses.of(types.SimpleNamespace(sysfs=folder / "sda"))
    check(found == ["/", "/mnt/my pool", "swap"], f"used for {found}")
    uses.MOUNTS, uses.SWAPS, uses.number_of = former
    check(uses.number_of("/dev/null") == uses.number_of("/none") == "", "no block device")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        locks(folder)
        settings(folder / "settings")
        offered(folder / "offered")
        twins()
        used(folder / "used")


if __name__ == "__main__":
    main()
