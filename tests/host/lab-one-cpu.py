#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A guest with one CPU executes memory barriers, which its drivers and QEMU's devices rely on
# timeout: 120
# quick: host
import argparse
import pathlib
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "scripts"), str(PROJECT / "tests/lib")]

from checks import check  # noqa: E402  (in a folder added above)
from labvm import find_tool  # noqa: E402
from labvm.qemu import processors  # noqa: E402

# A boot sector, which the firmware loads at 0x7c00: mfence; out %al, $0xf4, the port that ends
# QEMU; hlt.
CODE = bytes.fromhex("0faef0 e6f4 f4")
SECTOR = CODE.ljust(510, b"\0") + b"\x55\xaa"
# The firmware refuses a smaller disk.
DISK_SIZE = 1 << 20


def translated(options):
    """QEMU's own operations for the boot sector, executed with these @options."""
    with tempfile.TemporaryDirectory() as folder:
        image, log = pathlib.Path(folder, "image"), pathlib.Path(folder, "log")
        image.write_bytes(SECTOR.ljust(DISK_SIZE, b"\0"))
        subprocess.run([find_tool("qemu-system-x86_64"), "-nodefaults", "-no-user-config",
                        "-display", "none", "-machine", "q35", *options,
                        "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
                        "-drive", f"file={image},format=raw",
                        "-d", "op", "-dfilter", "0x7c00..0x7dff", "-D", log],
                       timeout=60, check=False)
        return log.read_text()


def barriers(options):
    """Number of memory barriers in these operations."""
    text = translated(options)
    check("call hlt" in text, "the boot sector was executed")
    return sum(line.split()[:1] == ["mb"] for line in text.splitlines())


def main():
    for cpus in (1, 2):
        options = processors(argparse.Namespace(cpus=cpus, kvm=False, virtual_time=False))
        count = barriers(options)
        check(count == 1, f"{' '.join(options)}: {count} memory barriers")


if __name__ == "__main__":
    main()
