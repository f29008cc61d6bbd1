#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# ssdctl report ends while a drive hangs and its scheduler is being changed, names the tasks that
# wait and the files that do not answer; it has what debugfs has of a drive under one of our
# schedulers, and goes on as a user who is not root
# check: 6.12
# disk: 256M
# timeout: 600
import contextlib
import fcntl
import os
import pathlib
import re
import subprocess
import sys

from checks import RELEASE, check, modprobe, run, wait_for
from iosched import Disk, ours
from linux_calls import FIFREEZE, FITHAW
from ssd import PROJECT, NullBlk

SSDCTL = PROJECT / "tools/ssdctl/ssdctl"
MOUNT = pathlib.Path("/mnt/report")
SCHEDULER = pathlib.Path("/sys/block/loop0/queue/scheduler")


def report(*words, **how):
    """Return a report."""
    done = subprocess.run([sys.executable, SSDCTL, "report", *words, "-o", "-"], check=False,
                          capture_output=True, text=True, **how)
    print(done.stdout, flush=True)
    check(done.returncode == 0 and not done.stderr, f"it ends well {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def frozen_file():
    """Have a loop device whose requests hang, because the file system of its file is frozen."""
    modprobe("loop")
    run("mkfs.ext4", "-q", "/dev/vda")
    MOUNT.mkdir()
    run("mount", "/dev/vda", MOUNT)
    backing = MOUNT / "file"
    backing.write_bytes(b"x" * (8 << 20))
    run("losetup", "/dev/loop0", backing)
    os.sync()
    folder = os.open(MOUNT, os.O_RDONLY)
    fcntl.ioctl(folder, FIFREEZE, 0)
    try:
        yield
    finally:
        fcntl.ioctl(folder, FITHAW, 0)
        os.close(folder)


def hanging():
    """A drive that does not answer, and a change of its scheduler that waits for it."""
    with contextlib.ExitStack() as ended:
        with frozen_file():
            writer = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/loop0", "bs=4k", "count=1",
                                       "oflag=direct"], stderr=subprocess.DEVNULL)
            ended.callback(writer.wait)
            wait_for(lambda: pathlib.Path("/sys/block/loop0/inflight").read_text().split() !=
                     ["0", "0"], "a request in flight")
            switch = subprocess.Popen(["sh", "-c", f"echo {ours()[0]} >{SCHEDULER}"])
            ended.callback(switch.wait)
            wait_for(lambda: f"{switch.pid} (sh) D" in pathlib.Path(
                f"/proc/{switch.pid}/stat").read_text(), "a change that waits")
            text = report("loop0")
            check(switch.poll() is None and writer.poll() is None, "the drive hangs still")
        writer.wait()
    check(f"{switch.pid} sh:" in text and "blk_mq_freeze_queue_wait" in text,
          "the change of the scheduler is a blocked task")
    check("inflight: 0        1" in text, "the request is in flight")
    if RELEASE < (6, 13):
        check("queue/add_random: (no answer within" in text, "a file that does not answer is named")
    check(re.search(r"queue/add_random: \d", report("loop0")), "later it answers")


def ours_selected():
    """What a drive under one of our schedulers shows."""
    drive = NullBlk("shown", size=64, irqmode=2, completion_nsec=1000)
    disk = Disk(drive.name, ours()[0])
    text = report(disk.name)
    for wanted in (f"{ours()[0]}_iosched: loaded", "debugfs: sched/stats:", "debugfs: hctx0/tags",
                   f"[{disk.selected()}]", "queue/iosched/read_expire: "):
        check(wanted in text, f"it has {wanted}")
    text = report(disk.name, user=65534)
    check("run it as root" in text and "queue/iosched/read_expire: " in text, "as another user")
    drive.remove()


def main():
    ours_selected()
    hanging()
    run("losetup", "-d", "/dev/loop0")
    run("umount", MOUNT)


if __name__ == "__main__":
    main()
