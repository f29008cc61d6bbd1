#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A whole Debian is suspended and resumed while drives behind real drivers write, read and verify
# under each scheduler: no request is lost, none of the drives stops, and each keeps its scheduler
# kernels: debian-12 debian-13-arm64
# check: none
# timeout: 3600
"""It is suspended to idle, which suspends all devices as a suspend to RAM does, and its clock wakes
it. (QEMU 7.2 resumes no guest of amd64 from RAM here, and has no such state on arm64.) The modules
are built on this machine, as those of system-boot."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    MODULES, Drive, System, device, main, put_modules, scheduler)
from labvm.whole import CARD  # noqa: E402

DRIVES = (Drive("disk", "DISK1"), Drive("stick", "STICK1", kind="usb"),
          Drive("flash", "FLASH1", kind="nvme"), Drive("card", CARD, kind="card"))
TIMES = 2
# On drive $1: passes of a load that verifies what it has written, until /tmp/stop is there; the
# number of those that have ended is in /tmp/passes-$1, and what failed in /tmp/failed-$1.
LOAD = """#!/bin/sh
passes=0
while [ ! -e /tmp/stop ]; do
	fio --name=load --filename=/dev/$1 --rw=randrw --bsrange=4k-128k --size=16m --direct=1 \\
		--ioengine=libaio --iodepth=32 --verify=crc32c --verify_backlog=64 --verify_fatal=1 \\
		--randseed=$passes >/tmp/log-$1 2>&1 || { cp /tmp/log-$1 /tmp/failed-$1; exit 1; }
	passes=$((passes + 1))
	echo $passes >/tmp/passes-$1
done
"""
SUSPEND = """rtc=/sys/class/rtc/rtc0/wakealarm
echo 0 >$rtc
echo +4 >$rtc
echo freeze >/sys/power/state"""


def passes(guest, name):
    """Return how many passes of the load have ended on a drive."""
    return int(guest.run(f"cat /tmp/passes-{name} 2>/dev/null || echo 0").out)


def goes_on(guest, name, before, when):
    """Check that the load makes two more passes on a drive than @before: one began afterwards."""
    guest.run(f"""for try in $(seq 240); do
	[ ! -e /tmp/failed-{name} ] || {{ cat /tmp/failed-{name}; exit 1; }}
	[ "$(cat /tmp/passes-{name} 2>/dev/null || echo 0)" -lt {before + 2} ] || exit 0
	sleep 0.5
done
echo "{name} makes no progress {when}"
exit 1""")


def suspend(guest):
    """Suspend the system; it resumes by its clock."""
    def times():
        return int(guest.run("cat /sys/power/suspend_stats/success").out)
    before = times()
    guest.run(SUSPEND)
    check(times() == before + 1, "suspended and resumed")


def under(guest, chosen, names):
    """Suspend and resume while all drives are busy under a scheduler."""
    guest.run("rm -f /tmp/stop /tmp/passes-* /tmp/failed-*")
    for name in names:
        guest.run(f"echo {chosen} >/sys/block/{name}/queue/scheduler")
    guest.run("\n".join(f"setsid /tmp/load {name} </dev/null >/dev/null 2>&1 &" for name in names))
    for name in names:
        goes_on(guest, name, -1, "at first")
    for _ in range(TIMES):
        suspend(guest)
        for name, before in [(name, passes(guest, name)) for name in names]:
            goes_on(guest, name, before, f"under {chosen} after it was resumed")
    guest.run("touch /tmp/stop; while pgrep -x fio >/dev/null; do sleep 0.2; done")
    failed = guest.run("cat /tmp/failed-* 2>/dev/null || true").out
    check(not failed, f"{chosen}: all is verified on {len(names)} drives {failed}")
    for name in names:
        check(scheduler(guest, name) == chosen, f"{name} keeps {chosen}")


def test(name):
    """Boot with all drives, and suspend under each scheduler."""
    with System(name) as system:
        with system.boot(DRIVES) as guest:
            put_modules(guest, system)
            guest.put("/tmp/load", LOAD.encode(), 0o755)
            guest.run("modprobe -a " + " ".join(f"{module}-iosched" for module in MODULES))
            names = [device(guest, drive) for drive in DRIVES]
            for chosen in MODULES:
                under(guest, chosen, names)


if __name__ == "__main__":
    main(test)
