#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssdctl persist: a drive that is removed and appears again has its scheduler and tunables by udev;
# no other drive has; revert and undo-all leave nothing. Without a scheduler it keeps the advice, or
# what was selected since. Where something else wins nothing is kept, and it is named, as are drives
# that share a rule. What advise contributes to the hardware database gives drives of the
# model what was recommended
# check: 6.12
# nvme: 256M
# timeout: 1500
# precedence: no

import contextlib
import fcntl
import json
import os
import pathlib

from checks import check, modprobe, run, wait_for
from iosched import insert, ours, remove, remove_all
from scsi_target import units
from ssd import Device
from ssdctl import (State, has, nothing_left, refused, reload, replug, settle, ssdctl,
                    status_of, udev)

from ssd_ctl import CtlError, drives, hwdb, saved, schedulers, status  # (in a folder of ssdctl.py)
from ssd_common.drive import Drive
from ssd_common.files import write_ours
from ssd_ctl.choice import Choice

RULES = pathlib.Path("/etc/udev/rules.d")
WEIRD = 'We*rd [x] "?" | \\ ü$kernel'
TRACKS = RULES / "65-test.rules"
# Rules of others, read after those of ssdctl.
OTHERS = RULES / "99-test.rules"
# The rule of OpenZFS' documentation.
ZFS = ('ACTION=="add|change", KERNEL=="sd[a-z]*[0-9]*", ENV{DEVTYPE}=="partition", '
       'ATTR{../queue/scheduler}="none"\n')
DISK = 'KERNEL=="sd*", ENV{DEVTYPE}=="disk", '
SET_NONE = "/sys/block/$name/queue/scheduler"


def rules():
    """Names of the files of rules that ssdctl has written."""
    return sorted(path.name for path in RULES.glob("70-ssd-iosched-*"))


def hot_plug(one, other):
    """One of two drives of a model is kept: by its serial number, with tunables; twice."""
    state = State(one.name)
    for _ in range(2):
        ssdctl("persist", one.name, "bp", "block_size_kb=2048", "depth=0x8")
        check(len(rules()) == 1, f"one rule: {rules()}")
    has(one.name, "bp", block_size_kb=2048, depth=8, nr_requests=128, wbt_lat_usec=0)
    replug(one, other)
    has(one.name, "bp", block_size_kb=2048, depth=8, nr_requests=128, wbt_lat_usec=0)
    state.same("the other drive", other.name)
    kept = status_of(one.name)["kept"]
    check(kept["agrees"] and not kept["edited"] and not kept["by_model"], f"status: {kept}")
    check(status_of(other.name)["kept"] is None, "the other drive is not kept")
    ssdctl("apply", one.name, "pass")
    check(not status_of(one.name)["kept"]["agrees"], "status: another scheduler")
    run("udevadm", "trigger", "--action=change", f"/sys/block/{one.name}")
    settle()
    has(one.name, "bp", block_size_kb=2048, depth=8)
    ssdctl("revert", one.name)
    state.same("reverted after the drive appeared again", one.name)
    replug(one)
    state.same("without the rule", one.name)
    nothing_left_but_state()


def nothing_left_but_state():
    """There is no rule, and nothing is saved."""
    saved = pathlib.Path("/var/lib/ssd-iosched/saved")
    check(not rules() and not list(saved.iterdir()), "no rule, nothing saved")


def by_model(one, other):
    """A rule for a model is for both drives; a drive's own rule wins."""
    plain = scheduler(one)
    ssdctl("persist", one.name, "--by-model", "mq-deadline", "read_expire=300")
    ssdctl("persist", other.name, "pass", "depth=4")
    replug(one, other)
    has(one.name, "mq-deadline", read_expire=300)
    has(other.name, "pass", depth=4)
    ssdctl("undo-all")
    has(one.name, plain)
    has(other.name, plain)
    nothing_left()


def scheduler(unit):
    """Name of the scheduler of a drive."""
    return State(unit.name).files["scheduler"]


def advised(one):
    """Without a scheduler the advice is kept, but if another one was selected since, that."""
    drive = Drive(f"/dev/{one.name}")
    plain = schedulers.read_choice(drive)
    choice = Choice("pass", {"depth": 8}).as_json()
    advice = {"choice": choice, "leading": {"choice": choice}, "had": plain.as_json()}
    file = saved.ADVICE / f"{drives.key(drive)}.json"
    write_ours(file, json.dumps(advice | {"sure": False}))
    made = json.loads(ssdctl("persist", one.name, "--json")[0])
    check(not made["advised"] and made["choice"]["scheduler"] == plain.scheduler and
          any("--even-unsure" in line for line in made["messages"]),
          f"undecided advice is not kept: {made}")
    made = json.loads(ssdctl("persist", one.name, "--even-unsure", "--json")[0])
    check(made["advised"] and made["choice"]["scheduler"] == "pass" and
          "which leads" in made["messages"][0], f"it is if it is wanted: {made}")
    ssdctl("revert", one.name)
    write_ours(file, json.dumps(advice | {"sure": True}))
    made = json.loads(ssdctl("persist", one.name, "--json")[0])
    check(made["advised"] and made["choice"]["scheduler"] == "pass" and
          pathlib.Path(made["rule"]).exists(), f"the advice is kept: {made}")
    replug(one)
    has(one.name, "pass", depth=8)
    made = json.loads(ssdctl("revert", one.name, "--json")[0])
    check(len(made["removed"]) == 1 and made["drives"][drive.path]["scheduler"] == plain.scheduler,
          f"JSON of revert: {made}")
    ssdctl("apply", one.name, "kyber")
    made = json.loads(ssdctl("persist", one.name, "--json")[0])
    check(not made["advised"] and made["choice"]["scheduler"] == "kyber",
          f"what was selected since is kept: {made}")
    made = json.loads(ssdctl("undo-all", "--json")[0])
    check(len(made["removed"]) == 1 and list(made["drives"]) == [drive.path],
          f"JSON of undo-all: {made}")
    has(one.name, plain.scheduler)
    nothing_left()


def wholly(one):
    """All is kept that apply has set, also what has no known default, and all that a rule has made;
    of what was set by hand what differs from the default."""
    settings = {"nr_requests": 70, "async_depth": 9}
    ssdctl("apply", one.name, "mq-deadline", *(f"{key}={value}" for key, value in settings.items()))
    ssdctl("persist", one.name)
    replug(one)
    has(one.name, "mq-deadline", **settings)
    made = json.loads(ssdctl("persist", one.name, "--json")[0])["choice"]
    again = {key: int((made["tunables"] | made["queue"])[key]) for key in settings}
    check(again == settings, f"kept again: {made}")
    check(status_of(one.name)["kept"]["agrees"], "it agrees")
    queue = pathlib.Path("/sys/block", one.name, "queue")
    ssdctl("apply", one.name, "bfq", "timeout_sync=500")
    (queue / "iosched/slice_idle").write_text("0")
    refused("does not take", "persist", one.name, "kyber", "read_lat_nsec=x")
    made = json.loads(ssdctl("persist", one.name, "--json")[0])["choice"]
    check(made["tunables"] == {"slice_idle_us": "0", "timeout_sync": "500"},
          f"set by hand since, and after an error: {made}")
    ssdctl("undo-all")
    nothing_left()


def twins(one, other):
    """Drives with one serial number get back what each had, also if a rule is for both."""
    for number, unit in enumerate((one, other)):
        queue = pathlib.Path("/sys/block", unit.name, "queue")
        for file, value in (("read_ahead_kb", 256 + number), ("nr_requests", 30 + number),
                            ("iosched/async_depth", 9 + number)):
            (queue / file).write_text(str(value))
    states = [State(unit.name) for unit in (one, other)]
    ssdctl("persist", other.name, "bfq")
    ssdctl("apply", one.name, "mq-deadline", "nr_requests=20", "async_depth=5")
    has(one.name, "mq-deadline", read_ahead_kb=256)
    ssdctl("revert", one.name)
    states[0].same("the first one, with its async_depth")
    has(other.name, "bfq")
    ssdctl("revert", other.name)
    states[1].same("the other one")
    ssdctl("apply", one.name, "bp", "depth=2")
    ssdctl("apply", other.name, "pass")
    ssdctl("revert", one.name)
    states[0].same("the first one")
    has(other.name, "pass")
    ssdctl("apply", one.name, "kyber")
    ssdctl("undo-all")
    for state in states:
        state.same("both")
    nothing_left()


def measured(one):
    """A drive that another program measures keeps what it has, and nothing is lost that another
    try needs."""
    state = State(one.name)
    with held(one):
        refused("is locked by another program", "persist", one.name)
        refused("is locked by another program", "persist", one.name, "pass")
    state.same("persist of a locked drive", one.name)
    check(not rules(), f"no rule: {rules()}")
    ssdctl("persist", one.name, "pass")
    # What is saved is not of this drive any more: only the rule says that it counts.
    replug(one)
    with held(one):
        refused("is locked by another program", "revert", one.name)
        said = ssdctl("undo-all", status=1)[0]
        check("is left as it is" in said and "again for" in said, "undo-all says so")
    check(len(rules()) == 1, f"the rule is there: {rules()}")
    ssdctl("undo-all")
    state.same("undone at last", one.name)
    nothing_left()


def not_taken_back(one):
    """What the kernel does not take back is told, and does not keep the rule."""
    state = State(one.name)
    known = schedulers.restore

    def refuse(drive, before):
        return [*known(drive, before), "iosched/gone"]

    def fail(drive, before):
        known(drive, before)
        raise CtlError("there is no such scheduler")

    for what, because in ((refuse, "does not take its former iosched/gone"),
                          (fail, "does not have its former scheduler again: there is no such")):
        for words in (("revert", one.name), ("undo-all",)):
            ssdctl("persist", one.name, "pass")
            replug(one)
            schedulers.restore = what
            made = json.loads(ssdctl(*words, "--json", status=1)[0])
            schedulers.restore = known
            check(because in " ".join(made["messages"]), f"{words[0]} says so: {made}")
            check(not rules(), f"no rule: {rules()}")
            check("nothing to undo" in ssdctl("revert", one.name)[0], "nothing is left to undo")
    state.same("restored", one.name)
    ssdctl("undo-all")
    nothing_left()


@contextlib.contextmanager
def held(unit):
    """Hold a drive's lock, as a program does that measures it."""
    with open(f"/dev/{unit.name}", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stick():
    """Of drives whose serial number only udev knows, as of USB sticks, each has its own rule, and
    the next one of the same name has none."""
    for serial in ("A", "B", "A"):
        TRACKS.write_text('KERNEL=="ssdemu*", ENV{ID_MODEL}="stick", ENV{ID_BUS}="usb", '
                          f'ENV{{ID_SERIAL}}="{serial}", ENV{{ID_SERIAL_SHORT}}="{serial}"\n')
        reload()
        with Device("small") as device:
            # The device's first scheduler is set after udev has seen it.
            run("udevadm", "trigger", "--action=add", f"/sys/block/{device.name}")
            settle()
            if not rules():
                ssdctl("persist", device.name, "bp", "depth=3")
                has(device.name, "bp", depth=3)
            elif serial == "B":
                has(device.name, "none")
                check(not status_of(device.name)["kept"], "the other stick has no rule")
                check("nothing to undo" in ssdctl("revert", device.name)[0], "nor what to undo")
                check(len(rules()) == 1, "the first one's rule is there")
            else:
                has(device.name, "bp", depth=3)
                ssdctl("revert", device.name)
                has(device.name, "none")
        settle()
    check(not rules(), "its rule is found by another name, too")
    ssdctl("undo-all")
    TRACKS.unlink()
    reload()
    nothing_left()


def module_missing(one):
    """Without the module the drive keeps its old scheduler, and that has its old tunables."""
    plain = State(one.name)
    ssdctl("persist", one.name, "pass", "read_expire=77", "depth=3")
    one.unplug()
    settle()
    check(remove("pass") == 0, "the module is unloaded")
    modules = pathlib.Path("/lib/modules", os.uname().release)
    run("mount", "-t", "tmpfs", "none", modules)
    one.plug()
    settle()
    run("umount", modules)
    plain.same("without the module", one.name)
    check(not status_of(one.name)["kept"]["agrees"], "status says so")
    replug(one)
    has(one.name, "pass", read_expire=77, depth=3)
    ssdctl("revert", one.name)


def weird_names(one):
    """A model with characters that have a meaning in rules: the rule is for exactly this model."""
    plain = scheduler(one)
    track(one, WEIRD)
    ssdctl("persist", one.name, "--by-model", "kyber", "read_lat_nsec=3000000")
    replug(one)
    has(one.name, "kyber", read_lat_nsec=3000000)
    track(one, WEIRD.replace("*", "**"))
    replug(one)
    has(one.name, plain)
    ssdctl("undo-all")
    track(one, "", serial="")
    refused("knows no model", "persist", one.name, "--by-model", "pass")
    refused("a rule cannot recognize it", "persist", one.name, "pass")
    track(one, "x", serial="")
    refused("--by-model makes a rule", "persist", one.name, "pass")
    TRACKS.unlink()
    reload()
    replug(one)
    nothing_left()


def track(unit, model, serial=None):
    """Have udev say that drives are of this model."""
    text = model.replace("$", "$$").replace('"', '\\"')
    line = f'KERNEL=="sd*", ENV{{ID_MODEL}}="{text}"'
    if serial is not None:
        line += f', ENV{{ID_SERIAL}}="{serial}", ENV{{ID_SERIAL_SHORT}}="{serial}"'
    TRACKS.write_text(line + "\n")
    reload()
    run("udevadm", "trigger", "--action=add", f"/sys/block/{unit.name}")
    settle()


def nvme():
    """An NVMe drive, whose model has spaces, is removed from its bus and found again; by its place,
    too."""
    ssdctl("persist", "nvme0n1", "--by-path", "kyber")
    check("by-path" in rules()[0], f"a rule by path: {rules()}")
    ssdctl("persist", "nvme0n1", "pai", "clustered_page_kb=32")
    found_again()
    has("nvme0n1", "pai", clustered_page_kb=32)
    (RULES / rules()[1]).unlink()
    reload()
    found_again()
    has("nvme0n1", "kyber")
    ssdctl("undo-all")
    has("nvme0n1", "none")


def found_again():
    """Remove the NVMe drive from its bus and have it found."""
    slot = pathlib.Path("/sys/block/nvme0n1/device/device").resolve()
    (slot / "remove").write_text("1")
    wait_for(lambda: not pathlib.Path("/sys/block/nvme0n1").exists(), "the end of nvme0n1")
    pathlib.Path("/sys/bus/pci/rescan").write_text("1")
    settle("nvme0n1")


def refuses(one):
    """What cannot be kept changes nothing and leaves no rule."""
    state = State(one.name)
    refused("has no nonsense", "persist", one.name, "pass", "nonsense=1")
    refused("does not take", "persist", one.name, "pass", "depth=-1")
    # A model that udev has not told yet.
    TRACKS.write_text('KERNEL=="sd*", ENV{ID_MODEL}="other"\n')
    refused("udevadm test does not set scheduler", "persist", one.name, "pass")
    TRACKS.unlink()
    # After a refusal udev has read it.
    reload()
    replug(one)
    OTHERS.write_text('KERNEL=="sd*", ATTR{queue/scheduler}="mq-deadline"\n')
    refused(f"{OTHERS}:1 sets scheduler to another value", "persist", one.name, "pass")
    OTHERS.unlink()
    reload()
    replug(one)
    state.same("refused", one.name)
    nothing_left_but_state()


def partitioned(one):
    """Give a disk a partition."""
    one.unplug()
    settle()
    table = bytearray(512)
    # Linux, from sector 2048 on, 4096 sectors.
    table[450:462] = bytes([0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (
        4096).to_bytes(4, "little")
    table[510:] = b"\x55\xaa"
    with open(one.file, "r+b") as file:
        file.write(table)
    one.plug()
    settle()
    wait_for(lambda: pathlib.Path(f"/sys/block/{one.name}/{one.name}1").exists(), "a partition")


def overruled(one):
    """What else sets the scheduler, by a partition or a program after all rules, is named with its
    line, what no file tells of is seen: nothing is kept. What does not is no reason."""
    partitioned(one)
    state = State(one.name)
    word = pathlib.Path("/etc/udev/word")
    word.write_text("none\n")
    for path, text, because in (
            (RULES / "66-zfs.rules", ZFS, "{path}:1 sets scheduler to none afterwards"),
            (RULES / "60-run.rules",
             f"# Others\n{DISK}RUN+=\"/bin/sh -c 'echo none > {SET_NONE}'\"\n",
             "{path}:2 sets scheduler to none afterwards"),
            # What no file tells, the event shows.
            (OTHERS, f'ACTION=="change", {DISK}RUN+="/bin/cp {word} {SET_NONE}"\n',
             "it has none after a change event")):
        path.write_text(text)
        refused(because.format(path=path), "persist", one.name, "pass", "depth=4")
        path.unlink()
        state.same(f"refused because of {path.name}", one.name)
    nothing_left_but_state()
    (RULES / "66-zfs.rules").write_text(ZFS.replace("sd[a-z]*", f"{one.name}x"))
    ssdctl("persist", one.name, "pass", "depth=4")
    replug(one)
    has(one.name, "pass", depth=4)
    (RULES / "66-zfs.rules").write_text(ZFS)
    reload()
    made = status_of(one.name)["kept"]
    check(made["agrees"] and status.kept_word(made) == "overruled", "status: it is not kept")
    replug(one)
    has(one.name, "none")
    (RULES / "66-zfs.rules").unlink()
    word.unlink()
    reload()
    ssdctl("undo-all")
    nothing_left()


def known_by_path(one, other):
    """Drives with one serial number are named, as is a rule that is replaced or removed; by their
    paths each keeps its own."""
    TRACKS.write_text('KERNEL=="sd*", ENV{DEVTYPE}=="disk", SUBSYSTEMS=="scsi", '
                      'KERNELS=="*:*:*:*", ENV{ID_PATH}="at-$id"\n')
    reload()
    run("udevadm", "trigger", "--action=add", *(f"/sys/block/{each.name}" for each in (one, other)))
    settle()
    said = ssdctl("persist", one.name, "pass", "depth=4")[0]
    check(f"/dev/{other.name} has the same model and serial number" in said and
          f"ssdctl persist --by-path /dev/{one.name} pass depth=4" in said, "the twin is named")
    said = ssdctl("persist", other.name, "kyber")[0]
    check(f"kept pass depth=4 for this drive and /dev/{one.name}" in said, "a rule is replaced")
    said = ssdctl("persist", one.name, "--by-path", "pass", "depth=4")[0]
    check(f"which kept kyber, also for /dev/{other.name}" in said, "a rule is removed")
    said = ssdctl("persist", other.name, "--by-path", "kyber")[0]
    check(said.count("\n") == 1, "nothing else is to be said")
    replug(one, other)
    has(one.name, "pass", depth=4)
    has(other.name, "kyber")
    TRACKS.unlink()
    ssdctl("undo-all")
    nothing_left()


def kernels_own(one):
    """A scheduler of the kernel is kept with its defaults, which depend on the kernel's HZ."""
    ssdctl("persist", one.name, "bfq")
    replug(one)
    has(one.name, "bfq")
    shown = status_of(one.name)
    check(shown["kept"]["agrees"] and not shown["changed"], f"it agrees: {shown['changed']}")
    ssdctl("undo-all")


def hardware_database(one):
    """An entry as advise contributes it counts only once the database is turned on, and a rule wins
    over it."""
    entries = pathlib.Path("/etc/udev/hwdb.d/61-test.hwdb")
    choice = Choice.recommended("bp", {"block_size_kb": 512, "depth": 2})
    entries.write_text(hwdb.entry(Drive(f"/dev/{one.name}"), choice, ["Measured with: a test"]))
    run("systemd-hwdb", "update")
    plain = scheduler(one)
    replug(one)
    has(one.name, plain)
    check("bp block_size_kb=512 depth=2" in ssdctl("hwdb")[0], "the entry is shown")
    wrong = pathlib.Path("/etc/udev/hwdb.d/62-test.hwdb")
    wrong.write_text(entries.read_text().replace("=bp", "=b p"))
    run("systemd-hwdb", "update")
    check("'b p' is no name of a scheduler: correct it" in ssdctl("hwdb", status=1)[1],
          "a wrong entry is named")
    wrong.unlink()
    run("systemd-hwdb", "update")
    check(json.loads(ssdctl("hwdb", "on", "--json")[0])["enabled"], "JSON of hwdb on")
    replug(one)
    has(one.name, "bp", block_size_kb=512, depth=2, nr_requests=128)
    ssdctl("persist", one.name, "pass")
    replug(one)
    has(one.name, "pass")
    ssdctl("undo-all")
    nothing_left()
    entries.unlink()
    replug(one)
    has(one.name, plain)


def main():
    modprobe("nvme")
    modprobe("mq-deadline")
    for name in ours():
        insert(name)
    with udev():
        with units(2, product_id="Test disk", vpd_unit_serial="test{}") as (one, other):
            settle()
            refuses(one)
            kernels_own(one)
            hot_plug(one, other)
            by_model(one, other)
            advised(one)
            wholly(one)
            measured(one)
            not_taken_back(one)
            stick()
            module_missing(one)
            weird_names(one)
            hardware_database(one)
            nvme()
            overruled(one)
        with units(2, product_id="Twin", vpd_unit_serial="same") as both:
            settle()
            twins(*both)
            known_by_path(*both)
    remove_all()


if __name__ == "__main__":
    main()
