#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# By made-up files of the kernel: which drives ssdctl lists, which ones a file system is on, by what
# a drive is known, which rule is for which drive, and whether a later one of others wins over it;
# what cannot be read or has disappeared ends in one line; a signal ends a command by way of what
# restores, and no fio outlives it; what a drive does not take back after a measurement that was
# killed is given up; processes that have a device open or mapped are found
# quick: host

import contextlib
import errno
import functools
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_common import ToolError, asking, former, holding, openers, signals  # noqa: E402
from ssd_common.drive import device_number, page_text  # noqa: E402
from ssd_common.openers import Nodes  # noqa: E402
from ssd_ctl import (  # noqa: E402
    CtlError, advise, apply, command, drives, persist, revert, rules, saved, schedulers, status,
    udev, undo_all)
from ssd_ctl.advice import engine, target, workload  # noqa: E402
from ssd_ctl.choice import Choice, parse  # noqa: E402
from ssd_ctl.said import Said  # noqa: E402

MOUNTS = r"""21 1 8:1 / / rw - ext4 /dev/sda1 rw
30 21 0:39 / /mnt/my\040pool rw - btrfs {device} rw
31 21 8:17 / /mnt/card rw - vfat /dev/sdb1 rw
32 21 0:50 / /mnt/my\040pool/below rw - tmpfs tmpfs rw
33 21 8:33 / /mnt/card rw - exfat /dev/sdc1 rw
"""


def failed(call, because):
    """Check that a call fails with a message that says why."""
    try:
        call()
    except (CtlError, ToolError) as error:
        check(because in str(error), f"it says {error}")
        return
    check(False, f"{because}: it does not fail")


def listed(folder):
    """Hidden paths of multipath drives, devices without a scheduler and without a medium are not
    listed; what is no drive only if it is asked for."""
    for name, size, hidden in (("sdzz", 8, 0), ("nvme0n1", 8, 0), ("nvme0c0n1", 8, 1),
                               ("nvme1n1", 8, 0), ("dm-0", 8, 0), ("sr0", 0, 0),
                               ("loop0", 8, 0), ("cciss!c0d0", 8, 0), ("zd0", 8, 0),
                               ("rbd1", 8, 0), ("md_d0", 8, 0), ("pmem0", 8, 0),
                               ("md_home", 8, 0), ("ublkb3", 8, 0), ("mmcblk0boot1", 8, 0),
                               ("mmcblk0", 8, 0), ("mmcblk0gp0", 8, 0)):
        (folder / name / "queue").mkdir(parents=True)
        (folder / name / "mq").mkdir()
        (folder / name / "queue/scheduler").write_text("[none]")
        (folder / name / "size").write_text(str(size))
        (folder / name / "hidden").write_text(str(hidden))
    # Multipath drives since 6.8 and before, a drive of the device mapper.
    (folder / "nvme0n1/queue/scheduler").unlink()
    (folder / "nvme1n1/mq").rmdir()
    (folder / "dm-0/mq").rmdir()
    drives.BLOCK = folder
    check(drives.names() == ["cciss!c0d0", "mmcblk0", "sdzz"], f"drives: {drives.names()}")
    others = ["loop0", "md_d0", "md_home", "mmcblk0boot1", "mmcblk0gp0", "pmem0", "rbd1",
              "ublkb3", "zd0"]
    check(drives.names(others=True) == sorted(["cciss!c0d0", "mmcblk0", "sdzz", *others]),
          "with others")
    check(drives.names(bare=True) == ["cciss!c0d0", "mmcblk0", "nvme0n1", "nvme1n1", "sdzz"],
          "with drives that have no scheduler")
    check(drives.every() == [], "drives that have been removed meanwhile are left out")


def mounted(folder):
    """The nearest and latest mount holds a folder; btrfs may be on several devices."""
    target.MOUNTS = folder / "mountinfo"
    target.MOUNTS.write_text(MOUNTS.format(device="/dev/sdx"))
    for place, meant in (("/home/me", ("ext4", "/dev/sda1")), ("/", ("ext4", "/dev/sda1")),
                         ("/mnt/my pool/me", ("btrfs", "/dev/sdx")),
                         ("/mnt/my pool/below/me", ("tmpfs", "tmpfs")),
                         ("/mnt/my poolx", ("ext4", "/dev/sda1")),
                         ("/mnt/card", ("exfat", "/dev/sdc1"))):
        check(target.mount_of(place) == meant, f"{place}: {target.mount_of(place)}")
    disk = next((str(path) for path in pathlib.Path("/dev").glob("*") if path.is_block_device()),
                None)
    if not disk:
        return
    number = target.device_number(os.stat(disk).st_rdev)
    target.MOUNTS.write_text(MOUNTS.format(device=disk).replace(r"/mnt/my\040pool", str(folder)))
    target.NUMBERS, target.BTRFS = folder / "numbers", folder / "btrfs"
    check(target.numbers_below(str(folder)) == [number], f"one device: {number}")
    devices = folder / "btrfs/uuid/devices"
    for name, dev in ((target.place_of(number).name, number), ("sdy", "8:400")):
        (devices / name).mkdir(parents=True)
        (devices / name / "dev").write_text(dev)
    check(sorted(target.numbers_below(str(folder))) == sorted([number, "8:400"]), "two devices")


def rule(by_model=False, **match):
    """Return a rule that recognizes drives by these properties."""
    return rules.Rule(Choice("bp"), rules.kernel_names("sda"), match, "a model", by_model,
                      "/usr/sbin/ssdctl")


def fits():
    """A rule is for the drives that udev's rule is for: by all properties, exactly."""
    evo, qvo = {"ID_MODEL": "860_EVO_1TB"}, {"ID_MODEL": "860_QVO_1TB"}
    one = evo | {"ID_SERIAL_SHORT": "1"}
    for what, made, name, found, meant in (
            ("its drive", rule(**one), "sdb", one, True),
            ("another serial number", rule(**one), "sda", one | {"ID_SERIAL_SHORT": "2"}, False),
            ("no serial number", rule(**one), "sda", evo, False),
            ("a similar model", rule(True, **evo), "sda", qvo, False),
            ("a part of a card", rule(**one), "mmcblk0boot0", one, False),
            ("udev knows nothing", rule(**one), "sda", {}, False)):
        drive = types.SimpleNamespace(name=name)
        check(made.fits(drive, found) == meant, f"{what}: {meant}")
    made = json.loads(json.dumps(rules.dataclasses.asdict(rule(**one))))
    with tempfile.TemporaryDirectory() as place:
        rules.FOLDER = pathlib.Path(place)
        text = rule(**one).text()
        rule(**one).path.write_text(text.replace(json.dumps(made),
                                                 json.dumps(made | {"key": "older"})))
        check(rules.every() == [rule(**one)] and not rules.every()[0].edited(),
              "a rule with another field is read, and not edited")
        rule(**one).path.write_text(text.replace('"bp"', '"pass"'))
        check(rules.every()[0].edited(), "another one is edited")


def refused():
    """A rule that could never be for the drive is not made."""
    for name, meant in (("mmcblk0", True), ("mmcblk0gp0", False), ("cciss!c0d0", True),
                        ("zd0", True), ("Odd0", True)):
        drive = types.SimpleNamespace(name=name, path=f"/dev/{name}",
                                      identity=lambda: {"model": "a model"})

        def make(drive=drive):
            return persist.made_for(drive, Choice("bp"), {"ID_SERIAL": "1"}, False)
        if meant:
            check(make().fits(drive, {"ID_SERIAL": "1"}), f"a rule for {name}")
        else:
            failed(make, f"no rule is for drives with names as /dev/{name}")


def named():
    """Other names of schedulers are understood, or what they became is told."""
    check(parse(["deadline", "fifo_batch=4"]) == Choice("mq-deadline", {"fifo_batch": "4"}),
          "deadline is mq-deadline")
    failed(lambda: parse(["noop"]), "noop is called none since Linux 5.0")
    failed(lambda: parse(["cfq"]), "cfq is gone since Linux 5.0")


def replaced():
    """What is lost of a rule's file that is replaced is told."""
    old, new = rule(ID_SERIAL_SHORT="1"), rule(ID_SERIAL_SHORT="1")
    with tempfile.TemporaryDirectory() as place:
        rules.FOLDER = pathlib.Path(place)
        check(persist.replaced(new, []) == [], "there was none")
        old.path.write_text(old.text())
        check(persist.replaced(new, ["/dev/sdb"]) == [], "the same one")
        old.path.write_text(old.text() + "# A word\n")
        said = persist.replaced(new, [])
        check(len(said) == 1 and said[0].endswith("this line is lost: # A word"), f"added: {said}")
        old.path.write_text(old.text().replace('LABEL="ssd_iosched_end"\n', ""))
        said = persist.replaced(new, [])
        check(len(said) == 1 and "what was removed from it is there again" in said[0],
              f"removed: {said}")
        old.path.write_text("# Mine\n")
        said = persist.replaced(new, [])
        check(len(said) == 1 and said[0].endswith("did not write, is replaced; it had: # Mine"),
              f"another's: {said}")
        old.choice, old.model = Choice("pass"), "another model"
        old.path.write_text(old.text())
        said = persist.replaced(new, ["/dev/sdb"])
        check(len(said) == 1 and "kept pass for another model and /dev/sdb" in said[0],
              f"another drive's: {said}")


def known(folder):
    """What udev makes of the model is no serial number, nor are zeros; drives with one serial
    number have parts."""
    usb, sd = {"ID_BUS": "usb", "ID_SERIAL": "Maker_Stick-0:0"}, "0x1234abcd"
    for what, found, meant in (
            ("a stick without one", usb, {}),
            ("a stick", usb | {"ID_SERIAL_SHORT": "7"}, {"ID_SERIAL_SHORT": "7"}),
            ("a disk without one", {"ID_BUS": "ata", "ID_SERIAL": "Model"}, {}),
            ("a card", {"ID_SERIAL": sd}, {"ID_SERIAL": sd}),
            ("a card with zeros", {"ID_SERIAL": "0x00000000"}, {}),
            ("a disk with zeros", {"ID_SERIAL_SHORT": "0000", "ID_SERIAL": "0"}, {})):
        check(rules.serial_of(found) == meant, f"{what}: {meant}")
    one, other = (rule(ID_MODEL="Reader", ID_SERIAL_SHORT="7", ID_INSTANCE=f"0:{number}")
                  for number in (0, 1))
    check(one.path == rule(ID_MODEL="Reader", ID_SERIAL_SHORT="7").path != other.path,
          "the slots of a reader have rules of their own")
    for name, device, nsid, meant in (
            ("sda", "2:0:0:0", None, ""), ("sdb", "2:0:0:1", None, "1"),
            ("sdc", "0:0:5:0", None, ""),
            ("mmcblk0", "mmc0:0001", None, ""), ("mmcblk0boot1", "mmcblk0", None, "boot1"),
            ("nvme0n1", "nvme0", "1", ""), ("nvme0n2", "nvme0", "2", "2")):
        place = folder / name
        (folder / "devices" / device).mkdir(parents=True, exist_ok=True)
        place.mkdir()
        (place / "device").symlink_to(folder / "devices" / device)
        if nsid:
            (place / "nsid").write_text(nsid)
        found = drives.part(types.SimpleNamespace(name=name, sysfs=place))
        check(found == meant, f"the part {found!r} of {name}")
    # Of 33 and more characters the length is a character, too.
    (folder / "page").write_bytes(b"\0\x80\0\x24" + b"0123abcd-" * 4)
    check(page_text(folder / "page") == "0123abcd-" * 4, "a serial number of SCSI")
    check(page_text(folder / "missing") == "", "none")


def split_below_multipath(folder):
    """A path of a multipath device does not get smaller limits than the device above it."""
    for name, uuid in (("dm-0", "LVM-x"), ("dm-1", "mpath-360")):
        above = folder / "holders" / name / "dm"
        above.mkdir(parents=True)
        (above / "uuid").write_text(uuid)
    path = types.SimpleNamespace(path="/dev/sda", sysfs=folder, queue=folder / "queue")
    failed(lambda: schedulers.change(path, Choice("pai", {"split": "pasa"})),
           "is a path of /dev/dm-1")


def signalled():
    """A signal ends a command by way of what restores, which no other one interrupts; below nohup
    none does."""
    restored = []

    def execute(_):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            check(False, "the command goes on")
        finally:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGINT)
            restored.append(True)
    # The test may run below nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    former, command.execute = command.execute, execute
    status = command.main()
    command.execute = former
    check(restored and status == 128 + signal.SIGTERM, f"SIGTERM: restored, status {status}")
    check(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, "signals are as before")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals.interruptible():
        os.kill(os.getpid(), signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with contextlib.suppress(signals.Interrupted), signals.interruptible():
        with signals.uninterrupted():
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        check(False, "it is not interrupted")


def deferred():
    """A signal takes effect after what it may not interrupt."""
    done = []
    with contextlib.suppress(signals.Interrupted), signals.interruptible():
        with signals.deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(True)
        check(False, "it is not interrupted")
    check(done, "the block went on")


def fio_of(command):
    """Return an fio that is a command, the child of a shell, under way."""
    load = workload.Workload("x", "[a]\nrw=read\n", "x")
    fio = engine.Fio([], load, types.SimpleNamespace(path="/dev/odd"), None, 1)
    fio.process = subprocess.Popen(["sh", "-c", f"{command} & wait $!; exit 7"])
    fio.begun = True
    until = time.monotonic() + 10
    while not fio.processes() and time.monotonic() < until:
        time.sleep(0.01)
    return fio


def fio_ends():
    """fio has ended after end(), also if a signal interrupts that; what waits for fio ends after
    it. If its I/O does not end, that is told."""
    fio = fio_of("sleep 60")
    fio.ask = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with contextlib.suppress(signals.Interrupted), signals.interruptible():
        fio.end()
        check(False, "it is not interrupted")
    status = fio.process.poll()
    fio.process.kill()
    check(status == 7, f"fio has ended, and then what waits for it: {status}")
    fio, kill = fio_of("sleep 60"), engine.Fio.kill
    fio.ask = fio.kill = lambda: None
    engine.KILLED_S, engine.KILL_S = 0.2, 0.1
    with contextlib.redirect_stderr(io.StringIO()) as said:
        failed(fio.end, "/dev/odd does not answer")
    check("still has I/O under way on /dev/odd" in said.getvalue(), said.getvalue().strip())
    kill(fio)
    fio.process.wait()


# As versions 252, 254 and 257 of udev say it.
SET = ("sda: /etc/udev/rules.d/{file}:4 ATTR '/sys/devices/x/block/sda/queue/{name}' writing "
       "'{value}'",
       "sda: /etc/udev/rules.d/{file}:4 Running in test mode, skipping writing "
       'ATTR{{/sys/devices/x/block/sda/queue/{name}}}="{value}".',
       'sda: /etc/udev/rules.d/{file}:4 ATTR{{queue/{name}}}="{value}": Running in test mode, '
       'skipping writing "{value}" to sysfs attribute "queue/{name}".')


def overruled():
    """A rule of others that sets something else afterwards is told; one before, one of ours, and
    one that sets the same are not."""
    made = rule(ID_MODEL="x", ID_SERIAL_SHORT="1")
    for form in SET:
        def line(file, value, form=form):
            return form.format(file=file, name="scheduler", value=value)
        ours = line(made.path.name, "bp")
        for what, said, because in (
                ("ours", [ours], ""), ("nothing", [], "does not set scheduler to bp"),
                ("another value", [line(made.path.name, "bp2")], "does not set scheduler to bp"),
                ("before", [line("60-a.rules", "none"), ours], ""),
                ("after", [ours, line("99-a.rules", "none")],
                 "/etc/udev/rules.d/99-a.rules:4 sets scheduler to another value"),
                ("a model without an entry", [
                    f"sda: {made.path}:8 Failed to run builtin 'hwdb 'block::name:x:'': No data",
                    ours], ""),
                ("an unknown key", [f"sda: {made.path}:8 Unknown user 'x', ignoring", ours],
                 "udevadm test says"),
                ("the same after", [ours, line("99-a.rules", "bp")], ""),
                ("another file after", [ours, form.format(file="99-a.rules", name="iosched/depth",
                                                          value="2")], ""),
                ("a test after", [ours, 'sda: /x/99-a.rules:1 ATTR{queue/scheduler}=="none"'], ""),
                ("ours after", [ours, line(f"{rules.PREFIX}by-serial-y.rules", "pai")], "")):
            found = rules.untrue(made, said)
            check(because in found if because else not found, f"{what}: {found or 'kept'}")


def without_udev():
    """Without udev no rule is for a drive, and a drive's serial number is not known."""
    def missing(*_):
        raise CtlError("udevadm is missing")
    former, udev.udevadm = udev.udevadm, missing
    drive = types.SimpleNamespace(name="sda", sysfs=pathlib.Path("/sys/block/sda"))
    check(rules.fitting(drive, [rule(ID_MODEL="x")]) == [], "no rule")
    check(drives.udev_serial(drive) == "", "no serial number")
    udev.udevadm = former


def ends(folder):
    """What cannot be read, and a drive that has disappeared, are told."""
    gone = types.SimpleNamespace(path="/dev/gone", sysfs=folder / "gone")
    failed(lambda: engine.completions(gone), "/dev/gone has disappeared")
    failed(lambda: engine.moved(gone), "/dev/gone has disappeared")
    failed(lambda: engine.program("fio 'x"), "--fio-program fio 'x: ")
    cut = folder / "cut.log"
    cut.write_text("100, 2000000, 0, 4096, 0\n101, 20000")
    failed(lambda: engine.log_of([str(cut)]), "a log of fio is cut")


def removed(folder):
    """A drive that is removed meanwhile is left out, and a tunable that is no word, too."""
    queue = folder / "queue"
    (queue / "iosched").mkdir(parents=True)
    (queue / "iosched/table").write_text("Total : 3")
    (queue / "iosched/depth").write_text("3")
    (queue / "scheduler").write_text("none [odd]")
    drive = types.SimpleNamespace(path="/dev/odd", queue=queue, exists=lambda: False)
    check(schedulers.read_choice(drive) == Choice("odd", {"depth": "3"}), "a word is a tunable")
    (queue / "read_ahead_kb").write_text("128")
    (queue / "nr_requests").write_text("64")
    drive.exists = lambda: True
    why = schedulers.complaint(drive, "iosched/rq_affinity", "2", OSError(2, "x"))
    check(why == "odd has no rq_affinity: it has depth table; "
                 "the queue has nr_requests read_ahead_kb", why)
    drive.exists = lambda: False
    (queue / "scheduler").unlink()
    failed(lambda: schedulers.read_choice(drive), "/dev/odd has disappeared")
    choice = Choice("bp", {"gone": "2"})
    check(schedulers.as_shown(drive, choice) == choice, "a choice is told")
    why = schedulers.complaint(drive, "iosched/depth", "2", OSError(19, "x"))
    check(why == "/dev/odd has disappeared", why)
    former, status.report = status.report, schedulers.read_choice
    check(status.reports([drive]) == [], "it is left out")
    drive.exists = lambda: True
    failed(lambda: status.reports([drive]), "/dev/odd has disappeared")
    status.report = former


def said():
    """JSON is an object also if there was nothing to do, but for an error."""
    for error, meant in ((None, {"removed": [], "messages": []}), (CtlError("x"), None)):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(CtlError):
            with Said(True, removed=[]):
                if error:
                    raise error
        check((json.loads(out.getvalue()) if out.getvalue() else None) == meant,
              f"JSON: {out.getvalue()!r}")


@contextlib.contextmanager
def killed_measurement(folder):
    """Give a drive that a measurement was killed on, and the file of its former settings. The
    module of its former scheduler has gone."""
    queue = folder / "queue"
    queue.mkdir(parents=True)
    for name, value in (("scheduler", "[none] bfq"), ("read_ahead_kb", "128")):
        (queue / name).write_text(value)
    drive = types.SimpleNamespace(path="/dev/sdzz", name="sdzz", queue=queue,
                                  exists=lambda: True, instance=lambda: "here")

    def write(drive, file, value):
        if value == "gone":
            raise OSError(errno.EINVAL, "Invalid argument")
        (drive.queue / file).write_text(value)
    known = former.write, former.Journal, former.SETTLE_S
    former.write, former.SETTLE_S = write, 0
    former.Journal = functools.partial(known[1], folder=folder / "run")
    journal = former.Journal(drive)
    settings = {"scheduler": "gone", "read_ahead_kb": "64"}
    journal.save({"under": settings, "bare": settings | {"scheduler": "none"}})
    yield drive, journal.path
    former.write, former.Journal, former.SETTLE_S = known


def given_up(folder):
    """What a drive does not take back after a measurement that was killed is tried once: what is
    selected later stays. It is told, the status is 1, and the rest is undone."""
    nothing = contextlib.nullcontext
    known = (saved.alone, saved.before, saved.forget, drives.find, drives.every, apply.locked,
             rules.every, saved.path_of)
    forgotten = []
    saved.alone, saved.before, apply.locked = nothing, lambda *_: None, lambda _: nothing()
    saved.forget, rules.every = lambda *_: forgotten.append(True), lambda: []
    saved.path_of = lambda drive: folder / "none"
    for number, command_of in enumerate(("revert", "undo-all", "apply", "measurement")):
        with killed_measurement(folder / str(number)) as (drive, path):
            drives.find, drives.every = (lambda *_, drive=drive: drive,
                                         lambda drive=drive, **_: [drive])
            lines, ended = [], 1
            with contextlib.redirect_stdout(io.StringIO()) as out:
                if command_of == "revert":
                    ended = revert.run(types.SimpleNamespace(device="sdzz", json=False))
                elif command_of == "undo-all":
                    with Said(False, removed=[], drives={}) as said_of:
                        ended = undo_all.restore_drives(said_of)[0]
                elif command_of == "apply":
                    apply.finish_left(drive, lines.append)
                else:
                    with former.changed(drive, {}, lines.append):
                        pass
            text = out.getvalue() + "\n".join(lines)
            check("does not take back its former scheduler" in text and "as before" not in text and
                  "again" not in text and ended == 1 and not path.exists() and
                  (drive.queue / "read_ahead_kb").read_text() == "64",
                  f"{command_of}: status {ended}, {text!r}")
    check(forgotten == [True], "revert undoes the rest")
    (saved.alone, saved.before, saved.forget, drives.find, drives.every, apply.locked,
     rules.every, saved.path_of) = known


def unfinished(folder):
    """What a command that was killed has begun to write is removed with the rules."""
    known, rules.FOLDER = rules.FOLDER, folder
    folder.mkdir()
    for name in (".ssd-iosched.0123", "60-a.rules"):
        (folder / name).write_text("")
    undo_all.remove_rules([], None)
    check(entries(folder) == ["60-a.rules"], f"undo-all leaves {entries(folder)}")
    rules.FOLDER = known


def entries(folder):
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def files(folder):
    """The file that is measured on has no name, and nothing is left of it; where there is no such
    file, it has one for a moment."""
    former, target.check_place = target.check_place, lambda *_: None
    place = folder / "place\udcff"
    place.mkdir()
    for path in (place, place / "new"):
        with target.held(str(path), None, 64 << 20, False) as where:
            target.fill(where, lambda part: None)
            check(os.path.getsize(where.opened) == where.size == 64 << 20 and
                  not where.device_number and not entries(place), "the file is written, unnamed")
            where.describe().encode()
    (place / "there").write_text("precious")
    failed(lambda: held_at(place / "there"), "exists: name a folder")
    failed(lambda: held_at(place, 1 << 50), "at most")
    failed(lambda: held_at(place, 1 << 20), "at least")
    failed(lambda: held_at(place / "x/y"), "is no folder")
    failed(lambda: held_at(""), "--on names nothing")
    check((place / "there").read_text() == "precious", "another file is as it was")
    named_for_a_moment(place)
    full(place)
    target.check_place = former


def held_at(path, size=64 << 20):
    """Hold a file at a path, and let it go."""
    with target.held(str(path), None, size, False):
        pass


def named_for_a_moment(folder):
    """On a file system without unnamed files, the name is gone once the file is open; a file that
    another user moved away meanwhile is not used."""
    known, unlink = target.open_direct, os.unlink

    def without(path, flags, at):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "")
        return known(path, flags, at)

    def moved(name, dir_fd):
        os.rename(name, "stolen", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        os.close(os.open(name, os.O_CREAT, dir_fd=dir_fd))
        unlink(name, dir_fd=dir_fd)

    target.open_direct = without
    try:
        before = entries(folder)
        with target.held(str(folder), None, 64 << 20, False) as where:
            check(entries(folder) == before and not os.fstat(where.descriptor).st_nlink,
                  "no name is left")
        os.unlink = moved
        failed(lambda: held_at(folder), "another user has renamed")
    finally:
        target.open_direct, os.unlink = known, unlink


def full(folder):
    """The measurement ends when the file system has less room than the file takes."""
    known = target.free_bytes
    with target.held(str(folder), None, 64 << 20, False) as where:
        where.check()
        target.free_bytes = lambda _: where.size - 1
        try:
            failed(where.check, "less than 67.1 MB are free")
            failed(lambda: target.fill(where, lambda part: None), "less than 67.1 MB are free")
        finally:
            target.free_bytes = known


def places(folder):
    """A file system that copies what is overwritten is refused, and flags that are not taken."""
    known = target.mount_of, target.numbers_below, target.drives_below
    target.numbers_below, target.drives_below = lambda _: ["8:0"], lambda _: {"sdx"}
    drive = types.SimpleNamespace(name="sdx", path="/dev/sdx")
    for kind, meant in (("ext4", ""), ("bcachefs", "until it is full")):
        target.mount_of = lambda _, kind=kind: (kind, "")
        if meant:
            failed(lambda: target.check_place("place", str(folder), drive), meant)
        else:
            target.check_place("place", str(folder), drive)
    target.mount_of, target.numbers_below, target.drives_below = known
    with open(os.devnull, "rb") as file:
        target.write_in_place(file.fileno(), "ext4")
        failed(lambda: target.write_in_place(file.fileno(), "btrfs"), "in place here")


def answers():
    """What is asked for is on the drive's label, if it has one; a partition's name comes before."""
    for serial, model, tail, whole in (
            ("S1A2 B3c4", "ACME X200", "B3c4", "B3c4"),
            # Another drive may be of the same model.
            ("0000", "ACME X 200", "X200", "sdx X200"),
            ("0x00", "", "", "sdx"), ("A1", "ACME", "A1", "A1")):
        drive = types.SimpleNamespace(name="sdx", identity=lambda serial=serial, model=model: {
            "serial": serial, "model": model})
        drive.drive = drive
        part = types.SimpleNamespace(name="sdx2", drive=drive)
        check(asking.answer(drive)[0] == whole, f"{serial}, {model}: {whole}")
        check(asking.answer(part)[0] == (f"sdx2 {tail}".strip()), f"a partition: sdx2 {tail}")
        check(asking.meant(f" {whole}\n".lower(), drive), "upper or lower case")
        for typed in ("", "yes", f"{tail}x", *(["sdx", "/dev/sdx"] if tail else ["sd"])):
            check(not (asking.meant(typed, drive) or asking.meant(typed, part)), f"not {typed!r}")
    check(asking.plain("a\x1b[31mb\x9bc") == "a?[31mb?c", "a label is no command of a terminal")
    check(asking.plain("ä \u4e2d\u202ea\u2028b\u200bc") == "ä \u4e2d?a?b?c", "and shows all it has")
    former, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8")
    check(asking.read_line() == "", "what is no text is no answer")
    sys.stdin = former


USES = {"open": "kept = open('{path}')",
        # The mapping keeps a descriptor, too.
        "mapped": """
import mmap, os
file = open('{path}', 'r+b')
kept = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE)
os.closerange(3, 20)""",
        "of a thread": """
import ctypes, threading
def use():
    assert not ctypes.CDLL(None).unshare(0x400)
    kept = open('{path}')
    done.set()
    threading.Event().wait()
done = threading.Event()
threading.Thread(target=use, daemon=True).start()
done.wait()"""}


@contextlib.contextmanager
def using(use, path):
    """Have a child that uses a path; give how it is told."""
    with subprocess.Popen([sys.executable, "-c", f"{USES[use].format(path=path)}\n"
                           "print(flush=True); input()"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield f"process {process.pid} ("
        process.communicate("\n")


def found_open(children=True):
    """Return who has /dev/zero open."""
    nodes = Nodes(frozenset(), frozenset((device_number(os.stat("/dev/zero").st_rdev),)))
    return " ".join(openers.openers(nodes, children))


def opened():
    """Who has a device open or mapped is found, on local file systems."""
    for use in USES:
        # The links of what is mapped are only for root.
        if use == "mapped" and os.geteuid():
            continue
        with using(use, "/dev/zero") as process:
            check(process in found_open(), f"{use}: found")
            check(process not in found_open(children=False), f"{use}: not among those of others")
            former, openers.REMOTE = openers.REMOTE, openers.re.compile("")
            check(process not in found_open(), f"{use}: not looked at elsewhere")
            openers.REMOTE = former


def tables(folder):
    """The mounts of a process that ends are those of another one in its namespace."""
    former = openers.PROCESSES
    for ended in ("7", "8"):
        openers.PROCESSES = folder / ended
        for name, space in (("self", "mnt:[1]"), ("7", "mnt:[2]"), ("8", "mnt:[2]")):
            place = openers.PROCESSES / name
            (place / "ns").mkdir(parents=True)
            (place / "ns/mnt").symlink_to(space)
            (place / "mountinfo").write_text("" if name == ended else space)
        found = [text for _, text in openers.mount_tables()]
        check(found == ["mnt:[1]", "mnt:[2]"], f"{ended} ends: {found}")
    openers.PROCESSES = former


def users(folder):
    """A loop device without a node, a target of the network and another path to a drive."""
    disk = next((path for path in pathlib.Path("/dev").glob("*") if path.is_block_device()), None)
    block, config = folder / "block", folder / "config"
    former = holding.BLOCK, holding.CONFIG
    holding.BLOCK, holding.CONFIG = block, config
    for name, wwid, size in (("sda", "naa.1", 8), ("sdb", "naa.1", 8), ("sdc", "naa.1", 9),
                             ("sdd", "naa.2", 8), ("sde", "", 8), ("sdf", "", 8)):
        (block / name / "device").mkdir(parents=True)
        (block / name / "device/wwid").write_text(wwid)
        (block / name / "size").write_text(str(size))
    for name, said in (("sda", ["it is sdb, too: they have one wwid"]), ("sdd", []), ("sde", [])):
        drive = types.SimpleNamespace(name=name, sysfs=block / name)
        check(holding.paths_of(drive) == said, f"paths of {name}: {said}")
    if disk:
        device = types.SimpleNamespace(sysfs=block / "sda",
                                       number=device_number(disk.stat().st_rdev))
        check(holding.holders_of(device) == [], "held by nothing")
        space = config / "nvmet/subsystems/nqn/namespaces/1"
        for path in (block / "loop999/loop/backing_file", space / "device_path"):
            path.parent.mkdir(parents=True)
            path.write_text(f"{disk}\n")
        check(holding.holders_of(device) == [f"it is held by {space} loop999"],
              f"held: {holding.holders_of(device)}")
    holding.BLOCK, holding.CONFIG = former


def looks():
    """A look during a run ends it if others have begun to use the device; looks take little of the
    time."""
    held, count = holding.Held.__new__(holding.Held), []
    held.device, held.next = types.SimpleNamespace(path="/dev/sdx"), 0.0

    def begun(_):
        count.append(holding.time.sleep(0.01))
        return []
    former, holding.begun = holding.begun, begun
    held.still()
    held.still()
    check(len(count) == 1, f"{len(count)} looks")
    held.next, holding.begun = 0.0, lambda _: ["it is held by loop0"]
    failed(held.still, "/dev/sdx is not written to any more: it is held by loop0")
    holding.begun = former


def part_named():
    """The name of a partition does not mean that all of the drive is destroyed."""
    former = drives.find
    drives.find = lambda _: types.SimpleNamespace(number="8:0")
    for destroy, on in ((True, None), (True, "/dev/null"), (False, None)):
        args = types.SimpleNamespace(device="/dev/null", destroy=destroy, on=on)
        if destroy and not on:
            failed(lambda args=args: advise.drive_named(args), "/dev/null is a partition: name the")
        else:
            check(advise.drive_named(args).number == "8:0", f"--on {on}")
    drives.find = former


def selected():
    """What is recommended is selected after udev has selected what its rule keeps, which is
    told."""
    former, done = (udev.udevadm, apply.select, apply.rules.of, schedulers.holds, saved.alone), []
    udev.udevadm = lambda *words: done.append(words[0])
    apply.select = lambda _, choice: done.append("select") or choice
    apply.rules.of = lambda _: [types.SimpleNamespace(path="rule", choice="bfq")]
    schedulers.holds = lambda *_: False
    saved.alone = contextlib.nullcontext
    with contextlib.redirect_stderr(io.StringIO()) as told:
        advise.select(types.SimpleNamespace(path="/dev/sdx"), "bp")
    check(done == ["settle", "select"] and "rule selects bfq when the" in told.getvalue(),
          f"selected: {done}, {told.getvalue()}")
    udev.udevadm, apply.select, apply.rules.of, schedulers.holds, saved.alone = former


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        listed(folder / "block")
        answers()
        opened()
        tables(folder / "processes")
        users(folder / "users")
        looks()
        part_named()
        selected()
        files(folder)
        places(folder)
        mounted(folder)
        fits()
        refused()
        named()
        replaced()
        known(folder / "known")
        split_below_multipath(folder / "path")
        signalled()
        deferred()
        fio_ends()
        overruled()
        without_udev()
        ends(folder)
        removed(folder / "removed")
        said()
        given_up(folder / "killed")
        unfinished(folder / "rules.d")


if __name__ == "__main__":
    main()
