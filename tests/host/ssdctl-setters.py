#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# By made-up files of a system: what sets the scheduler of a drive beside ssdctl is found, with its
# file and line: rules of udev, and programs that they run; what is for another drive or sets the
# same is not; a drive keeps what its rule says only if an event shows it, too
# quick: host

import pathlib
import shutil
import sys
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from setter_files import CHOICE, LOOP, MAY, OURS, TO_NONE, finds, made_drive  # noqa: E402
from ssd_ctl import CtlError, keeping, rules, status, udev  # noqa: E402
from ssd_ctl.setters import Setter, files  # noqa: E402

# Files of rules that are read after ours, before it, and if there is no LATE.
LATE, EARLY = "etc/udev/rules.d/99-a.rules", "etc/udev/rules.d/60-a.rules"
VENDOR = "usr/lib/udev/rules.d/99-a.rules"


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
    with made_drive() as drive:
        by_rules(drive)
        events(drive)
        proved(drive)
        stopped(drive)
        for_others(drive)
    words()
    check(rules.PREFIX in OURS, "the name of a rule of ssdctl")


if __name__ == "__main__":
    main()
