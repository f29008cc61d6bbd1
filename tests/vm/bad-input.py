#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Tunables and module parameters refuse empty, huge, negative, non-numeric, truncated, binary
# and out-of-range input from root with EINVAL, and any input from another user; the value
# stays, and nothing is logged
# check: 6.12
# timeout: 900
"""The description of a numeric parameter states its range: (min..max, default x)."""

import errno
import glob
import os
import pathlib
import re
import subprocess

from checks import check, modprobe
from iosched import Disk, insert, ours, remove
from ssd import NullBlk

HOSTILE = (b"", b"\n", b" ", b"-", b"+", b"-1", b"--1", b"0x", b"0b1", b"1e3", b"1.5", b"16k",
           b"1x", b"abc", b"1 2", b"1,2", b"\x00", b"\x001", b"\xff\xfe\xfd", bytes(range(256)),
           b"\xc2\xa0", b"4294967296", b"99999999999999999999", b"9" * 30, b"9" * 4000,
           b"9" * 5000, b"A" * 100000, b"%s%n%x", b"../../etc/passwd", b"$(reboot)")
NOBODY = 65534


def attempt(path, data):
    """Open a file and write @data; return the errno, 0 for none."""
    try:
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
    except OSError as error:
        return error.errno
    return 0


def refuse_nobody(paths):
    """Return true if each of these files refuses all writes of another user."""
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


def complaints():
    """Number of lines of the log that name a scheduler, or are warnings."""
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
    """Write all that must be refused to all files; return the number of attempts."""
    before = [pathlib.Path(file).read_bytes() for file in files]
    lines, attempts, wrong = complaints(), 0, []
    for file in files:
        outside = limits[os.path.basename(file)]
        edges = [str(outside[1] + 1).encode()] if outside else []
        edges += [str(outside[0] - 1).encode()] if outside and outside[0] else []
        for data in (*HOSTILE, *edges):
            attempts += 1
            got = attempt(file, data)
            # An empty write does not reach the scheduler.
            if got != (errno.EINVAL if data else 0):
                wrong.append(f"{file} {data[:20]!r}: {got}")
    check(not wrong, f"{name}: {attempts} refused with EINVAL {' '.join(wrong[:5])}")
    check(refuse_nobody(files), f"{name}: only root may write")
    after = [pathlib.Path(file).read_bytes() for file in files]
    check(before == after, f"{name}: no value has changed")
    check(complaints() == lines, f"{name}: nothing in the log")
    return attempts


def accepted(name, files, limits):
    """Write each file's greatest value: it is taken, unless it conflicts with the others."""
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
    """Load the module with values that must be refused, and with the greatest ones; return the
    number of refusals."""
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
    """A device starts from the module's parameters. If they make too many regions, those are
    larger, and the log says so: a driver may have the scheduler start again at any time. As a
    tunable, the size is refused."""
    insert("pass", "region_size_mb=64 read_expire=123")
    disk.select("pass")
    for key, value in (("region_size_mb", 64), ("read_expire", 123)):
        check((disk.queue / "iosched" / key).read_text() == f"{value}\n", f"pass takes its {key}")
    disk.select("none")
    remove("pass")
    insert("pass", "region_size_mb=1")
    large = NullBlk("large", size=100000, submit_queues=2)
    disk = Disk(large.name, "pass")
    size = disk.queue / "iosched/region_size_mb"
    check(size.read_text() == "7\n" and "pass: region_size_mb=1 makes more than 16384 regions of "
          f"{large.name}: uses 7" in log(), "pass takes regions of 7 MB")
    check(attempt(size, b"6") == errno.EINVAL and size.read_text() == "7\n", "6 MB are refused")
    check("region_size_mb=6 makes more than 16384 regions" in log(), "the log states the reason")
    size.write_text("4096")
    queues = len(list(disk.queue.parent.glob("mq/*")))
    (large.folder / "submit_queues").write_text("1")
    check(len(list(disk.queue.parent.glob("mq/*"))) == queues - 1, "the driver has fewer queues")
    check("[pass]" in (disk.queue / "scheduler").read_text() and size.read_text() == "7\n",
          "pass starts again")
    large.remove()
    remove("pass")
    insert("piq", "planes=1024 page_size_kb=6")
    small = NullBlk("small", size=1024)
    disk = Disk(small.name, "piq")
    made = {name: (disk.queue / "iosched" / name).read_text().strip()
            for name in ("channels", "chips", "dies", "planes", "page_size_kb")}
    check(list(made.values()) == ["8", "1", "1", "1", "4"] and "piq: uses 8 channels" in log(),
          f"piq takes a geometry: {made}")
    small.remove()


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
        check(refuse_nobody([str(disk.queue / "scheduler")]), "only root may select")
        accepted(name, files, limits)
        disk.select("none")
        remove(name)
        attempts += at_load(name, limits)
    regions(disk)
    device.remove()
    print(f"counted: refused={attempts}")


if __name__ == "__main__":
    main()
