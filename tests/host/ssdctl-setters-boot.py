#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# By made-up files of a system: what sets the scheduler of a drive when the machine boots is found,
# with its file and line: tmpfiles.d, units of systemd, sysfsutils, rc.local, tuned, TLP,
# laptop-mode-tools, shell; what is masked, not started, or for another drive is not
# quick: host

import os
import pathlib
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from setter_files import LOOP, MAY, TO_NONE, finds, made_drive, service  # noqa: E402
from ssd_ctl.setters import boot, files, shell  # noqa: E402

SET = "/sys/block/{}/queue/scheduler"
MANY = "D=b;" * 40


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
            ("taken by the section of all disks", {
                mine: "[main]\ninclude=base\n[x]\ntype=disk\ndevices=sda\nelevator=none\n",
                base: "[disk]\nspindown=6\n"}),
            ("taken by an empty section of all disks", {
                mine: "[main]\ninclude=base\n[x]\ntype=disk\ndevices=sda\nelevator=none\n",
                base: "[disk]\n# devices=sda\n"}),
            ("a comment behind it", {mine: "[disk]\nelevator=none # always\n"}, TO_NONE),
            ("on some machines", {mine: "[disk]\nuname_regex=aarch64\nelevator=none\n"}, MAY),
            ("files on some machines", {
                mine: "[sysfs]\ncpuinfo_regex=x\n/sys/block/sda/queue/scheduler=none\n"}, MAY),
            ("neither on nor off", {mine: "[disk]\nenabled=yes\nelevator=none\n"}),
            ("dropped", {mine: "[main]\ninclude=-absent;base\n[disk]\ndrop=readahead, elevator\n",
                         base: "[disk]\nelevator=none\n"}),
            ("included by one of the same name", {
                mine: "[main]\ninclude=mine\n[disk]\nreadahead=256\n",
                "usr/lib/tuned/mine/tuned.conf": "[disk]\nelevator=none\n"},
             f"/usr/lib/tuned/mine/tuned.conf:2 {TO_NONE}"),
            ("perhaps taken by another section", {
                mine: "[main]\ninclude=base\n[x]\ntype=disk\ndevices=sda\nelevator=none\n",
                base: "[disk]\ndevices_udev_regex=x\n"}, MAY),
            ("before the section of all disks", {
                mine: "[main]\ninclude=base\n"
                      "[x]\ntype=disk\npriority=-1\ndevices=sda\nelevator=none\n",
                base: "[disk]\nelevator=kyber\n"}, f"mine/tuned.conf:7 {TO_NONE}"),
            ("all disks, where the included profile names one", {
                mine: "[main]\ninclude=base\n[disk]\nelevator=none\n",
                base: "[disk]\ndevices=sdb\nenabled=0\n"}, TO_NONE),
            ("sysfs", {mine: "[sysfs]\n/sys/block/*/queue/scheduler=none\n"},
             f"tuned.conf:2 {TO_NONE}"),
            ("a script", {mine: "[script]\nscript=${i:PROFILE_DIR}/set.sh\n",
                          "etc/tuned/mine/set.sh": "\n" + LOOP},
             f"/etc/tuned/mine/set.sh:3 (run by /etc/tuned/mine/tuned.conf:2) {MAY}"),
            ("another profile", {"etc/tuned/other/tuned.conf": "[disk]\nelevator=none\n"})):
        finds(drive, f"tuned: {what}", here | made, *because)
    all_disks = here | {mine: "[disk]\nelevator=none\n"}
    removable, bus = drive.sysfs / "removable", drive.sysfs / "device/subsystem"
    bus.parent.mkdir()
    for name, value, *because in (("scsi", "0", TO_NONE), ("scsi", "1"), ("mmc", "0")):
        removable.write_text(value)
        bus.symlink_to(drive.folder / "sys/bus" / name)
        finds(drive, f"tuned: all disks, on {name}, removable {value}", all_disks, *because)
        bus.unlink()
    removable.unlink()
    bus.parent.rmdir()
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


def main():
    with made_drive() as drive:
        at_boot(drive)
        by_tuned(drive)
        in_shell(drive)
        at_once(drive, drive.folder)
        noted(drive.folder)


if __name__ == "__main__":
    main()
