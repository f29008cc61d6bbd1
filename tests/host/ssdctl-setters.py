#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# By made-up files of a system: what sets the scheduler of a drive beside ssdctl is found, with its
# file and line: rules of udev, programs that they run, tmpfiles.d, units of systemd, sysfsutils,
# rc.local, tuned, TLP, laptop-mode-tools; what is masked, not started, for another drive or sets
# the same is not
# quick: host

import os
import pathlib
import shutil
import sys
import tempfile
import time
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/ssd-probe")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_ctl import CtlError, keeping, rules, status, udev  # noqa: E402
from ssd_ctl.choice import Choice  # noqa: E402
from ssd_ctl.setters import Setter, boot, files, shell  # noqa: E402

CHOICE = Choice("mq-deadline", {"fifo_batch": "4"}, {"nr_requests": "64"})
OURS = "etc/udev/rules.d/70-ssd-iosched-by-serial-x.rules"
SET = "/sys/block/{}/queue/scheduler"
# A service that starts with the machine: a unit, and a link to it.
SERVICE = {"usr/lib/systemd/system/{}.service": "[Service]\nExecStart=/usr/sbin/{}\n",
           "etc/systemd/system/multi-user.target.wants/{}.service": ""}


def service(name, text=None):
    """Files of a service that starts with the machine."""
    made = {path.format(name): line.format(name) for path, line in SERVICE.items()}
    return made if text is None else made | {f"usr/lib/systemd/system/{name}.service": text}


def drive_in(folder):
    """A drive of the kernel, sda, with a partition, on a bus."""
    host = folder / "sys/devices/pci/usb1/host2"
    place = host / "block/sda"
    (place / "sda1").mkdir(parents=True)
    (place / "queue/iosched").mkdir(parents=True)
    for path, text in ((place / "uevent", ""), (place / "sda1/uevent", ""), (host / "uevent", ""),
                       (place / "sda1/partition", "1"), (place / "queue/rotational", "0\n"),
                       (place / "queue/scheduler", "none [mq-deadline]")):
        path.write_text(text)
    (folder / "sys/bus/usb").mkdir(parents=True)
    (host / "subsystem").symlink_to(folder / "sys/bus/usb")
    return types.SimpleNamespace(name="sda", number="8:0", path="/dev/sda", sysfs=place,
                                 queue=place / "queue")


def properties(device):
    """What udev knows of the drive and of its partition."""
    part = device.sysfs.name == "sda1"
    return {"DEVTYPE": "partition" if part else "disk", "ID_MODEL": "A_disk", "ID_BUS": "usb",
            "DEVLINKS": "" if part else "/dev/disk/by-id/usb-A_disk-0:0 /dev/disk/by-path/x"}


def found_with(drive, made):
    """What contradicts CHOICE if the system has these files, {path: text}; an empty link to a unit
    is a link to /dev/null if it has no other text."""
    root = pathlib.Path(tempfile.mkdtemp(dir=drive.folder))
    for path, text in made.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.symlink_to("/dev/null")
        else:
            place.write_text(text)
            place.chmod(0o755)
    files.ROOT = root
    rule = types.SimpleNamespace(choice=CHOICE, path=pathlib.Path("/" + OURS))
    said = sorted(map(str, keeping.against(drive, rule)))
    shutil.rmtree(root)
    return said


def finds(drive, what, made, *because):
    """Check what is found: so many, and each says so."""
    said = found_with(drive, made)
    check(len(said) == len(because) and
          all(text in line for text, line in zip(sorted(because), said, strict=False)),
          f"{what}: {said}")


# Files of rules that are read after ours, before it, and if there is no LATE.
LATE, EARLY = "etc/udev/rules.d/99-a.rules", "etc/udev/rules.d/60-a.rules"
VENDOR = "usr/lib/udev/rules.d/99-a.rules"
TO_NONE, MAY = "sets scheduler to none", "may set scheduler to none"
MANY = "D=b;" * 40
LOOP = "for d in /sys/block/sd*; do\n echo none > $d/queue/scheduler\ndone\n"


def by_rules(drive):
    """Rules: by what they match, in which order, and what they run."""
    zfs = 'ACTION=="add|change", KERNEL=="sd[a-z]*[0-9]*", ATTR{../queue/scheduler}="none"\n'
    disk = 'ACTION=="add|change", KERNEL=="sd*", ENV{DEVTYPE}=="disk", '
    plain = disk + 'ATTR{queue/scheduler}="none"\n'
    for what, made, *because in (
            ("a partition", {"etc/udev/rules.d/66-zfs.rules": "\n" + zfs},
             f"/etc/udev/rules.d/66-zfs.rules:2 {TO_NONE} afterwards"),
            ("before ours", {EARLY: plain}),
            ("a tunable before ours", {EARLY: disk + 'ATTR{queue/iosched/writes_starved}="3"\n'},
             "60-a.rules:1 sets writes_starved to 3 before the drive's rule, which leaves it"),
            ("a default before ours", {EARLY: disk + 'ATTR{queue/iosched/writes_starved}="2"\n'}),
            ("one of ours before it", {EARLY: disk + 'ATTR{queue/iosched/fifo_batch}="8"\n'}),
            ("of another scheduler before ours", {
                EARLY: plain + disk + 'ATTR{queue/iosched/writes_starved}="3"\n'}),
            ("with the scheduler before ours", {
                EARLY: plain.replace("none", "deadline").replace("|change", "") +
                disk.replace("|change", "") + 'ATTR{queue/iosched/writes_starved}="3"\n'},
             "60-a.rules:2 sets writes_starved to 3 before"),
            ("after ours", {VENDOR: plain}, f"99-a.rules:1 {TO_NONE}"),
            ("the same value", {LATE: plain.replace("none", "mq-deadline")}),
            ("an alias", {LATE: plain.replace("none", "deadline")}),
            ("a test", {LATE: plain.replace("}=", "}==")}),
            ("another drive", {LATE: plain.replace("sd*", "sdb")}),
            ("removal", {LATE: plain.replace("add|change", "remove")}),
            ("overridden", {VENDOR: plain, LATE: "# None\n"}),
            ("masked", {VENDOR: plain, LATE: None}),
            ("of /run", {"run/udev/rules.d/99-a.rules": plain}, "/run/udev/rules.d/99-a.rules:1"),
            ("of /usr/local", {"usr/local/lib/udev/rules.d/99-a.rules": plain}, "99-a.rules:1"),
            ("a comment", {LATE: "# " + plain}),
            ("lines that go on", {LATE: plain.replace(", A", ", \\\n A")},
             f"99-a.rules:1 {TO_NONE}"),
            ("a hard disk", {LATE:
                             plain.replace("ATTR", 'ATTR{queue/rotational}=="1", ATTR', 1)}),
            ("no hard disk", {LATE:
                              plain.replace("ATTR", 'ATTR{queue/rotational}=="0", ATTR', 1)},
             TO_NONE),
            ("a bus", {LATE: 'SUBSYSTEMS=="usb", ' + plain}, TO_NONE),
            ("another bus", {LATE: 'SUBSYSTEMS=="pci", ' + plain}),
            ("what a program prints", {LATE: 'PROGRAM=="x", ' + plain}, MAY),
            ("skipped", {LATE: f'KERNEL=="sda", GOTO="x"\n{plain}LABEL="x"\n'}),
            ("perhaps skipped", {LATE:
                                 f'RESULT=="1", GOTO="x"\n{plain}LABEL="x"\n'}, MAY),
            ("not skipped", {LATE:
                             f'KERNEL=="sdb", GOTO="x"\n{plain}LABEL="x"\n'}, TO_NONE),
            ("another tunable", {LATE:
                                 disk + 'ATTR{queue/iosched/fifo_batch}="8"\n'},
             "99-a.rules:1 sets fifo_batch to 8"),
            ("a default", {LATE:
                           disk + 'ATTR{queue/iosched/writes_starved}="2"\n'}),
            ("not a default", {LATE:
                               disk + 'ATTR{queue/iosched/writes_starved}="3"\n'},
             "sets writes_starved to 3"),
            ("what is not kept", {LATE: disk + 'ATTR{queue/nomerges}="2"\n'}),
            ("the same number", {LATE: disk + 'ATTR{queue/nr_requests}="0x40"\n'}),
            ("RUN", {EARLY:
                     disk + "RUN+=\"/bin/sh -c 'echo none > /sys/block/%k/queue/scheduler'\"\n"},
             f"60-a.rules:1 {TO_NONE}"),
            ("RUN of the drive's name", {
                "etc/udev/rules.d/60-run.rules": disk +
                "RUN+=\"/bin/sh -c 'echo none > /sys/block/$name/queue/scheduler'\"\n"},
             f"/etc/udev/rules.d/60-run.rules:1 {TO_NONE} afterwards"),
            ("RUN with a variable of the shell", {
                EARLY: disk + "RUN+=\"/bin/sh -c 'x=%k; echo none > /sys/block/$$x/queue/scheduler'"
                '"\n'}, TO_NONE),
            ("RUN reads", {EARLY:
                           disk + "RUN+=\"/bin/sh -c 'cat /sys/block/%k/queue/scheduler'\"\n"}),
            ("a script", {EARLY: disk + 'RUN{program}+="set $name"\n',
                          "usr/lib/udev/set":
                          "#!/bin/sh\necho none > /sys/block/$1/queue/scheduler"},
             f"/usr/lib/udev/set:2 (run by /etc/udev/rules.d/60-a.rules:1) {TO_NONE}"),
            ("a script of its device", {
                EARLY: disk + 'RUN+="/opt/set"\n',
                "opt/set": "#!/bin/sh\necho none >/sys$DEVPATH/queue/scheduler"}, TO_NONE),
            ("a script with a condition", {
                EARLY: disk + 'RUN+="/opt/set"\n',
                "opt/set": f"[ -e /x ] || exit\n{LOOP}"}, MAY),
            ("a unit", {EARLY: disk + 'ENV{SYSTEMD_WANTS}+="io@$name.service"\n',
                        "etc/systemd/system/io@.service":
                        "[Service]\nExecStart=sh -c 'echo none >/sys/block/%i/queue/scheduler'\n"},
             f"/etc/systemd/system/io@.service:2 {TO_NONE} when the machine boots"),
            ("ours", {"etc/udev/rules.d/71-ssd-iosched-x.rules": "", OURS: plain})):
        finds(drive, what, made, *because)


def events(drive):
    """A change event shows what is set in one, not what is set in others."""
    rule = types.SimpleNamespace(choice=CHOICE, path=pathlib.Path("/" + OURS))
    for actions, meant in (("add", False), ("change", True), ("add|change", True)):
        files.ROOT = drive.folder / "events"
        path = files.ROOT / LATE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'ACTION=="{actions}", KERNEL=="sda", ATTR{{queue/scheduler}}="none"\n')
        found = keeping.against(drive, rule)
        check([each.on_change for each in found] == [meant], f"{actions}: {found}")
    (files.ROOT / "opt").mkdir()
    for run, script, meant in (("set", "", False), ("set", "[ $ACTION = add ] || exit 0\n", True),
                               ("set $env{ACTION}", "[ $1 = add ] || exit 0\n", True)):
        path.write_text(f'ACTION!="remove", KERNEL=="sda", RUN+="/opt/{run}"\n')
        (files.ROOT / "opt/set").write_text(f"#!/bin/sh\n{script}{LOOP}")
        found = keeping.against(drive, rule)
        check([(each.on_change, each.by_action) for each in found] == [(True, meant)],
              f"{run}, {script!r}: {found}")


def proved(drive):
    """What an event shows decides over what files tell of it; what they tell of other times does
    not need one, and a condition that is not known is no reason."""
    rule = types.SimpleNamespace(choice=CHOICE)
    drive.exists = lambda: True
    made, lasting = [], []
    former = keeping.against, keeping.lasts, udev.change
    keeping.lasts, udev.change = lambda *_: lasting[-1], made.append

    def setter(sure, on_change, by_action=False):
        return Setter("/a:1", "scheduler", "none", sure, "afterwards", on_change, by_action)
    for what, each, lasts, because, events in (
            ("nothing", [], True, "", 1),
            ("seen not to", [setter(True, True)], True, "", 1),
            ("seen", [setter(True, True)], False, "/a:1 sets scheduler to none afterwards", 1),
            ("seen, perhaps", [setter(False, True)], False, "/a:1 may set scheduler to none", 1),
            ("seen, nothing found", [], False, "after a change event of udev", 1),
            ("at another time", [setter(True, False)], True, "/a:1 sets scheduler to none", 0),
            ("perhaps then", [setter(False, False)], True, "", 1),
            ("perhaps in an add event", [setter(False, True, True)], True, "", 1)):
        keeping.against = lambda *_, each=each: each
        lasting.append(lasts)
        made.clear()
        said = ""
        try:
            left = keeping.prove(drive, rule, True)
            check(left == [one for one in each if not one.on_change or one.by_action],
                  f"{what}: {left} is left")
        except CtlError as error:
            said = str(error)
        check(because in said and bool(because) == bool(said) and len(made) == events,
              f"{what}: {said or 'it keeps it'}")
    keeping.against = lambda *_: [setter(True, True)]
    try:
        keeping.prove(drive, rule, False)
        check(False, "without udev files decide")
    except CtlError as error:
        check("/a:1 sets scheduler" in str(error), "without udev files decide")
    keeping.against, keeping.lasts, udev.change = former


def stopped(drive):
    """No event is made that could start an array which the user has stopped: of the drive or of its
    partition."""
    former, part = udev.properties, drive.sysfs / "sda1"
    for kind, of_drive, holder, meant in (
            ("linux_raid_member", True, None, "sda"), ("linux_raid_member", False, None, "sda1"),
            ("linux_raid_member", False, "holders/md0", ""), ("bcache", False, None, "sda1"),
            ("bcache", False, "bcache/x", ""), ("ext4", True, None, ""), ("", True, None, "")):
        udev.properties = lambda device, kind=kind, of_drive=of_drive: (
            {"ID_FS_TYPE": kind} if (device.sysfs == drive.sysfs) == of_drive else {})
        if holder:
            (part / holder).mkdir(parents=True)
        said = keeping.stopped(drive)
        check(f"/dev/{meant} belongs" in said if meant else not said,
              f"{kind or 'nothing'}, {holder}: {said or 'an event is made'}")
        if holder:
            shutil.rmtree(part / pathlib.Path(holder).parent)
    udev.properties = former


def at_boot(drive):
    """What is set when the machine boots, or later."""
    write = f"w {SET.format('sda')} - - - - none\n"
    to_sda = f"echo none > {SET.format('sda')}\n"
    for what, made, *because in (
            ("tmpfiles", {"etc/tmpfiles.d/a.conf": "# A\n" + write},
             f"/etc/tmpfiles.d/a.conf:2 {TO_NONE} when the machine boots"),
            ("tmpfiles masked", {"usr/lib/tmpfiles.d/a.conf": write,
                                 "etc/tmpfiles.d/a.conf": None}),
            ("tmpfiles of another", {"etc/tmpfiles.d/a.conf": write.replace("sda", "sdb")}),
            ("tmpfiles of all", {"etc/tmpfiles.d/a.conf": write.replace("sda", "sd?")}, TO_NONE),
            ("tmpfiles read", {"etc/tmpfiles.d/a.conf": write.replace("w ", "z ")}),
            ("a unit", service("io", f"[Service]\nExecStart=/bin/sh -c \"{to_sda.strip()}\"\n"),
             f"/usr/lib/systemd/system/io.service:2 {TO_NONE}"),
            ("a unit's line that goes on", service(
                "io", f"[Service]\nExecStart=/bin/sh -c '\\\n{to_sda.strip()}'\n"), TO_NONE),
            ("a unit's script", service("io", "[Service]\nExecStart=-/opt/io\n") |
             {"opt/io": "#!/bin/sh\n" + LOOP},
             f"/opt/io:3 (run by /usr/lib/systemd/system/io.service:2) {TO_NONE}"),
            ("an instance", {
                "usr/lib/systemd/system/fsck@.service":
                "[Service]\nExecStart=/bin/fsck /%I\n"
                f"ExecStartPost=/bin/sh -c '{to_sda.strip()}'\n",
                "etc/systemd/system/x.mount.requires/fsck@dev-disk-by\\x2dpath-\\1.service": ""},
             f"fsck@.service:3 {TO_NONE}"),
            ("a unit that nothing starts", {"etc/systemd/system/io.service":
                                            f"[Service]\nExecStart=/bin/sh -c '{to_sda}'\n"}),
            ("a masked unit", service("io", f"[Service]\nExecStart=/bin/sh -c '{to_sda}'\n") |
             {"etc/systemd/system/io.service": None}),
            ("a unit's command that is reset", service(
                "io", f"[Service]\nExecStart=/bin/sh -c '{to_sda.strip()}'\n") |
             {"etc/systemd/system/io.service.d/a.conf":
              "[Service]\nExecStart=\nExecStart=/bin/true\n"}),
            ("a unit's command that is added", service("io", "[Service]\nExecStart=/bin/true\n") |
             {"etc/systemd/system/io.service.d/a.conf":
              f"[Service]\nExecStart=/bin/sh -c '{to_sda.strip()}'\n"}, f"a.conf:2 {TO_NONE}"),
            ("a unit with a condition", service(
                "io", "[Unit]\nConditionPathExists=/x\n"
                f"[Service]\nExecStart=/bin/sh -c '{to_sda.strip()}'\n"), MAY),
            ("a unit without its condition", service(
                "io", "[Unit]\nConditionPathExists=\n"
                f"[Service]\nExecStart=/bin/sh -c '{to_sda.strip()}'\n"), TO_NONE),
            ("a unit to rescue", {"etc/systemd/system/io.service":
                                  f"[Service]\nExecStart=/bin/sh -c '{to_sda.strip()}'\n",
                                  "etc/systemd/system/rescue.target.wants/io.service": ""}, MAY),
            ("a timer", {"etc/systemd/system/io.service":
                         f"[Service]\nExecStart=/bin/sh -c '{to_sda}'\n",
                         "etc/systemd/system/timers.target.wants/io.timer": ""}, TO_NONE),
            ("sysfsutils", service("sysfsutils") |
             {"etc/sysfs.d/a.conf": "block/sda/queue/scheduler = none\n"},
             f"/etc/sysfs.d/a.conf:1 {TO_NONE}"),
            ("sysfsutils not there", {"etc/sysfs.conf": "block/sda/queue/scheduler = none\n"}),
            ("rc.local", {"etc/rc.local": "#!/bin/sh\n" + to_sda}, f"/etc/rc.local:2 {TO_NONE}"),
            ("rc.local ends", {"etc/rc.local": f"#!/bin/sh\n{to_sda}exit 0\n"}, TO_NONE),
            ("rc.local ended", {"etc/rc.local": f"#!/bin/sh\nexit 0\n{to_sda}"}, MAY),
            ("TLP", service("tlp") | {
                "usr/share/tlp/defaults.conf": 'DISK_DEVICES="nvme0n1 sda"\n',
                "etc/tlp.conf": '#DISK_DEVICES="sdb"\nDISK_IOSCHED="kyber none"\n'},
             f"/etc/tlp.conf:2 {TO_NONE} when TLP starts"),
            ("TLP by id", service("tlp") | {
                "etc/tlp.d/a.conf": 'DISK_DEVICES="usb-A_disk-0:0"\nDISK_IOSCHED="bfq"\n'},
             "/etc/tlp.d/a.conf:2 sets scheduler to bfq"),
            ("TLP keeps", service("tlp") | {"etc/tlp.conf": 'DISK_IOSCHED="kyber keep"\n'}),
            ("TLP is off", service("tlp") | {
                "etc/tlp.conf": 'TLP_ENABLE=0\nDISK_IOSCHED="kyber none"\n'}),
            ("TLP is not started", {"etc/tlp.conf": 'DISK_IOSCHED="kyber none"\n'}),
            ("TLP by runit", {"etc/runit/runsvdir/default/tlp/run": "",
                              "etc/tlp.conf": 'DISK_IOSCHED="kyber none"\n'}, TO_NONE),
            ("laptop-mode", service("laptop-mode") | {
                "etc/laptop-mode/conf.d/exec.conf": f'BATT_EXEC_COMMAND_0="{to_sda.strip()}"\n'},
             f"exec.conf:1 {TO_NONE} when laptop-mode starts")):
        finds(drive, what, made, *because)


def by_tuned(drive):
    """The active profile of tuned, with what it includes."""
    here = service("tuned") | {"etc/tuned/active_profile": "mine\n"}
    mine, base = "etc/tuned/mine/tuned.conf", "usr/lib/tuned/base/tuned.conf"
    for what, made, *because in (
            ("the profile", {mine: "[main]\nsummary=x\n[disk]\nelevator=none\n"},
             f"/etc/tuned/mine/tuned.conf:4 {TO_NONE} when tuned starts"),
            ("included", {mine: "[main]\ninclude=base\n", base: "[disk]\nelevator=none\n"},
             f"/usr/lib/tuned/base/tuned.conf:2 {TO_NONE}"),
            ("included, but replaced", {
                mine: "[main]\ninclude=base\n[disk]\nelevator=mq-deadline\n",
                base: "[disk]\nelevator=none\n"}),
            ("other disks", {mine: "[x]\ntype=disk\ndevices=!sda\nelevator=none\n"}),
            ("these disks", {mine: "[x]\ntype=disk\ndevices=sd*\nelevator=none\n"}, TO_NONE),
            ("perhaps these", {mine: "[disk]\ndevices_udev_regex=x\nelevator=none\n"}, MAY),
            ("sysfs", {mine: "[sysfs]\n/sys/block/*/queue/scheduler=none\n"},
             f"tuned.conf:2 {TO_NONE}"),
            ("a script", {mine: "[script]\nscript=${i:PROFILE_DIR}/set.sh\n",
                          "etc/tuned/mine/set.sh": "\n" + LOOP},
             f"/etc/tuned/mine/set.sh:3 (run by /etc/tuned/mine/tuned.conf:2) {MAY}"),
            ("another profile", {"etc/tuned/other/tuned.conf": "[disk]\nelevator=none\n"})):
        finds(drive, f"tuned: {what}", here | made, *because)
    finds(drive, "tuned is not started", {"etc/tuned/active_profile": "mine\n",
                                          mine: "[disk]\nelevator=none\n"})


def in_shell(drive):
    """What lines of shell write, and for which drive."""
    names = shell.Names.of(drive)
    for text, meant in (
            ("echo none > /sys/block/sda/queue/scheduler", ["none sure"]),
            ("printf 'none\\n' >/sys/class/block/sda/queue/scheduler", ["none sure"]),
            ("echo none | sudo tee /sys/block/sda/queue/scheduler >/dev/null", ["none sure"]),
            ("echo $S > /sys/block/sda/queue/scheduler", ["? "]),
            ("D=sda; echo none > /sys/block/${D}/queue/scheduler", ["none sure"]),
            ("for d in sda sdb; do echo none > /sys/block/\"$d\"/queue/scheduler; done",
             ["none sure"]),
            ("for d in sdb sdc; do echo none > /sys/block/$d/queue/scheduler; done", []),
            ("for d in $(ls /sys/block); do echo none > /sys/block/$d/queue/scheduler; done",
             ["none "]),
            ("cd /sys/block/sda/queue; echo none > scheduler", ["none "]),
            ("echo none > /sys/class/block/sda1/../queue/scheduler", ["none sure"]),
            ("[ -e /x ] && echo none > /sys/block/sda/queue/scheduler", ["none "]),
            ("exit; echo none > /sys/block/sda/queue/scheduler", ["none "]),
            ("echo none > /sys/block/sda/queue/scheduler; exit", ["none sure"]),
            ("x() {\n echo none > /sys/block/sda/queue/scheduler\n}", ["none "]),
            (MANY + "echo none > /sys/block/$D$D/queue/scheduler", ["none "]),
            ("cat /sys/block/sda/queue/scheduler", []),
            ("# echo none > /sys/block/sda/queue/scheduler", []),
            ("echo none > /sys/block/sdb/queue/scheduler", [])):
        found = [f"{each.value or '?'} {'sure' * each.sure}" for each in shell.writes(text, names)]
        check(found == meant, f"{text}: {found}")


def at_once(drive, folder):
    """Scripts with many variables are read at once; what never ends, or is the kernel's, is not
    read."""
    names = shell.Names.of(drive)
    began = time.process_time()
    values = "".join(f"{name}={name}{number}\n" for name in "ABC" for number in range(32))
    for text in (values + "echo none > /sys/$A/$B/$C/queue/scheduler\n" * 150,
                 "D=$D/x\n" * 40 + "echo none > $D/queue/scheduler\n"):
        list(shell.writes(text, names))
    took = time.process_time() - began
    check(took < 10, f"two scripts in {took:.3f} s of a CPU")
    (folder / "link").symlink_to("/proc/cpuinfo")
    os.mkfifo(folder / "pipe")
    (folder / "long").write_text("x" * (files.LONGEST + 1))
    (folder / "script").write_text("true")
    for name, meant in (("link", ""), ("pipe", ""), ("long", ""), ("a\0b", ""), ("none", ""),
                        ("script", "true")):
        check(files.text_of(folder / name) == meant, f"{name!r} is {'read' if meant else 'not'}")


def noted(folder):
    """What has no effect, and what is not known, is said."""
    files.ROOT = folder / "noted"
    wants = files.ROOT / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    for path, text in ((wants / "puppet.service", ""), (wants.parent.parent / "x", "")):
        path.write_text(text)
    units = files.ROOT / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    (units / "puppet.service").write_text("[Service]\n")
    (files.ROOT / "proc").mkdir()
    (files.ROOT / "proc/cmdline").write_text("quiet elevator=noop ro\n")
    said = boot.notes()
    check(len(said) == 2 and "elevator=noop of the kernel's command line has no effect" in said[0]
          and "puppet" in said[1], f"notes: {said}")


def for_others(drive):
    """Of a drive without a rule what will select another scheduler than it has is named, whatever
    the number of its file; what selects the same, or another setting, is not."""
    plain = ('KERNEL=="sd*", ENV{DEVTYPE}=="disk", ATTR{queue/scheduler}="bfq", '
             'ATTR{queue/iosched/writes_starved}="8"\n')
    files.ROOT = drive.folder / "others"
    path = files.ROOT / EARLY
    path.parent.mkdir(parents=True)
    for text, meant in ((plain, "/etc/udev/rules.d/60-a.rules:1 sets scheduler to bfq afterwards"),
                        (plain.replace("bfq", "deadline"), ""), (plain.replace("sd*", "vd*"), "")):
        path.write_text(text)
        said = list(map(str, keeping.changes(drive)))
        check(said == ([meant] if meant else []), f"without a rule: {said}")


def words():
    """The word of status: what wins comes before what differs."""
    plain = {"edited": False, "agrees": True, "overruled": [], "unsure": []}
    for word, more in (("yes", {}), ("perhaps", {"unsure": ["x"]}), ("differs", {"agrees": False}),
                       ("overruled", {"agrees": False, "overruled": ["x"]}),
                       ("edited", {"edited": True, "overruled": ["x"]})):
        check(status.kept_word(plain | more) == word, f"status: {word}")


def main():
    udev.properties = properties
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        drive = drive_in(folder)
        drive.folder = folder
        by_rules(drive)
        events(drive)
        proved(drive)
        stopped(drive)
        at_boot(drive)
        by_tuned(drive)
        in_shell(drive)
        at_once(drive, folder)
        noted(folder)
        for_others(drive)
    words()
    check(rules.PREFIX in OURS, "the name of a rule of ssdctl")


if __name__ == "__main__":
    main()
