#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Tunables and module parameters get empty, huge, negative, truncated and binary
# input from root, and any input from another user: EINVAL or a refused open, the
# value as it was, nothing in the kernel's log
# kernels: 6.1 6.12
# check: 6.12
# timeout: 900
"""See above."""

import errno
import glob
import os
import pathlib
import subprocess
import sys

from ssd import check

HOSTILE = (b"", b"\n", b" ", b"-", b"+", b"-1", b"--1", b"0x", b"0b1", b"1e3", b"1.5", b"16k",
           b"1 2", b"1,2", b"\x00", b"\x001", b"\xff\xfe\xfd", bytes(range(256)), b"\xc2\xa0",
           b"4294967296", b"9" * 30, b"9" * 4000, b"9" * 5000, b"A" * 100000, b"%s%n%x",
           b"../../etc/passwd", b"$(reboot)")
NOBODY = 65534


def attempt(path, data):
    """The errno of opening and writing, 0 for none."""
    try:
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
    except OSError as error:
        return error.errno
    return 0


def as_nobody(paths):
    """Which of these files could another user write to?"""
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        refused = all(attempt(path, data) in (errno.EACCES, errno.EPERM)
                      for path in paths for data in (b"1", *HOSTILE))
        os._exit(0 if refused else 1)
    return os.waitpid(child, 0)[1] == 0


def said():
    """Lines of the kernel's log that name something of ours."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True, errors="replace")
    return sum("iosched" in line or "WARN" in line for line in log.stdout.splitlines())


def main():
    modules = f"/lib/modules/{os.uname().release}/updates/*-iosched.ko"
    names = [os.path.basename(path)[:-len("-iosched.ko")] for path in glob.glob(modules)]
    subprocess.run(["modprobe", "null_blk", "nr_devices=1", "gb=1"], check=True)
    scheduler = pathlib.Path("/sys/block/nullb0/queue/scheduler")
    attempts = 0
    for name in sorted(names):
        subprocess.run(["modprobe", f"{name}-iosched"], check=True)
        scheduler.write_text(name)
        files = sorted(glob.glob("/sys/block/nullb0/queue/iosched/*") +
                       glob.glob(f"/sys/module/{name}_iosched/parameters/*"))
        check(len(files) > 8, f"{name}: {len(files)} files")
        before = [pathlib.Path(file).read_bytes() for file in files]
        lines = said()
        wrong = []
        for file in files:
            for data in HOSTILE:
                attempts += 1
                # A write of nothing never reaches the kernel's function.
                expected = errno.EINVAL if data else 0
                if attempt(file, data) != expected:
                    wrong.append(f"{file} {data[:20]!r}: {attempt(file, data)}")
        check(not wrong, f"{name}: all refused with EINVAL {' '.join(wrong[:5])}")
        check(as_nobody([*files, str(scheduler)]), f"{name}: nobody but root may write")
        after = [pathlib.Path(file).read_bytes() for file in files]
        check(before == after, f"{name}: no value has changed")
        check(said() == lines, f"{name}: nothing in the log")
        scheduler.write_text("none")
        subprocess.run(["modprobe", "-r", f"{name}-iosched"], check=True)
    print(f"counted: refused={attempts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
