#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Tunables and module parameters get empty, huge, negative, non-numeric, truncated and
# binary input, and what is just out of range, from root, and any input from another
# user: EINVAL or a refused open, the value as it was, nothing in the kernel's log
# timeout: 900
"""See above. The range of a parameter stands in its description: (min..max, default x);
one that takes names has none."""

import errno
import glob
import os
import pathlib
import re
import subprocess

from checks import RELEASE, check, modprobe
from iosched import Disk, insert, ours, remove
from ssd import NullBlk

HOSTILE = (b"", b"\n", b" ", b"-", b"+", b"-1", b"--1", b"0x", b"0b1", b"1e3", b"1.5", b"16k",
           b"1x", b"abc", b"1 2", b"1,2", b"\x00", b"\x001", b"\xff\xfe\xfd", bytes(range(256)),
           b"\xc2\xa0", b"4294967296", b"99999999999999999999", b"9" * 30, b"9" * 4000,
           b"9" * 5000, b"A" * 100000, b"%s%n%x", b"../../etc/passwd", b"$(reboot)")
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
    """Is another user refused by each of these files?"""
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        refused = all(attempt(path, data) in (errno.EACCES, errno.EPERM)
                      for path in paths for data in (b"1", *HOSTILE))
        os._exit(0 if refused else 1)
    return os.waitpid(child, 0)[1] == 0


def log():
    """The kernel's log."""
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=True,
                          errors="replace").stdout


def said():
    """Lines of it that name something of ours."""
    return sum("iosched" in line or "WARN" in line for line in log().splitlines())


def parameters(name):
    """{parameter: its (min, max), or None}."""
    told = subprocess.run(["modinfo", "-p", f"{name}-iosched"], capture_output=True, text=True,
                          check=True).stdout
    found = {}
    for parameter, text in re.findall(r"^(\w+):(.*)$", told, re.M):
        limits = re.search(r"\((\d+)\.\.(\d+),", text)
        found[parameter] = (int(limits[1]), int(limits[2])) if limits else None
    return found


def hostile(name, files, limits):
    """All that must be refused, to all files; how many attempts."""
    before = [pathlib.Path(file).read_bytes() for file in files]
    lines, attempts, wrong = said(), 0, []
    for file in files:
        outside = limits[os.path.basename(file)]
        edges = [str(outside[1] + 1).encode()] if outside else []
        edges += [str(outside[0] - 1).encode()] if outside and outside[0] else []
        for data in (*HOSTILE, *edges):
            attempts += 1
            got = attempt(file, data)
            # A write of nothing never reaches the kernel's function.
            if got != (errno.EINVAL if data else 0):
                wrong.append(f"{file} {data[:20]!r}: {got}")
    check(not wrong, f"{name}: {attempts} refused with EINVAL {' '.join(wrong[:5])}")
    check(as_nobody(files), f"{name}: nobody but root may write")
    after = [pathlib.Path(file).read_bytes() for file in files]
    check(before == after, f"{name}: no value has changed")
    check(said() == lines, f"{name}: nothing in the log")
    return attempts


def accepted(name, files, limits):
    """What is as large as it may be, is taken, unless it does not go with the others."""
    taken = 0
    for file in files:
        if limits[os.path.basename(file)]:
            before = pathlib.Path(file).read_bytes()
            got = attempt(file, str(limits[os.path.basename(file)][1]).encode())
            check(got in (0, errno.EINVAL), f"{file} at its most: {got}") if got else None
            taken += not got
            check(not attempt(file, before), f"{file} takes {before!r} again")
    check(taken > 5, f"{name}: {taken} files take their greatest value")


def at_load(name, limits):
    """The same when the module is loaded."""
    refused, taken = 0, 0
    for parameter, outside in limits.items():
        for value in ("-1", "abc", *([str(outside[1] + 1)] if outside else [])):
            got = insert(name, f"{parameter}={value}")
            refused += got == errno.EINVAL
            if got != errno.EINVAL:
                check(False, f"{name} with {parameter}={value}: {got}")
        if outside:
            got = insert(name, f"{parameter}={outside[1]}")
            check(not got, f"{name} loads with {parameter}={outside[1]}: {got}") if got else None
            taken += 1
            remove(name)
    check(refused and taken, f"{name}: does not load in {refused} cases, loads in {taken}")
    return refused


def regions(disk):
    """A device starts from the module's parameters. More regions than PASS keeps: the
    old scheduler stays, and the log says why."""
    insert("pass", "region_size_mb=64 read_expire=123")
    disk.select("pass")
    for key, value in (("region_size_mb", 64), ("read_expire", 123)):
        check((disk.queue / "iosched" / key).read_text() == f"{value}\n", f"pass takes its {key}")
    disk.select("none")
    remove("pass")
    insert("pass", "region_size_mb=1")
    large = NullBlk("large", size=100000)
    file = f"/sys/block/{large.name}/queue/scheduler"
    before = pathlib.Path(file).read_text()
    # Whatever the reason is, 7.2 takes it for a lack of memory.
    refused = errno.ENOMEM if RELEASE >= (7, 2) else errno.EINVAL
    check(attempt(file, b"pass") == refused, "pass refuses 100000 regions")
    check(pathlib.Path(file).read_text().split("[")[1] == before.split("[")[1],
          "the old scheduler stays")
    check("pass: region_size_mb=1 makes 100000 regions" in log(), "the log says why")
    large.remove()


def main():
    attempts = 0
    device = NullBlk("disk0", size=1024)
    for name in ours():
        modprobe(f"{name}-iosched")
        disk = Disk(device.name, name)
        limits = parameters(name)
        files = sorted(glob.glob(f"{disk.queue}/iosched/*") +
                       glob.glob(f"/sys/module/{name}_iosched/parameters/*"))
        strange = [file for file in files if os.path.basename(file) not in limits]
        check(len(files) > 8 and not strange, f"{name}: {len(files)} files {strange}")
        check(all(os.stat(file).st_mode & 0o777 == 0o644 for file in files),
              f"{name}: rw-r--r--")
        attempts += hostile(name, files, limits)
        check(as_nobody([str(disk.queue / "scheduler")]), "nor another scheduler")
        accepted(name, files, limits)
        disk.select("none")
        remove(name)
        attempts += at_load(name, limits)
    regions(disk)
    device.remove()
    print(f"counted: refused={attempts}")


if __name__ == "__main__":
    main()
