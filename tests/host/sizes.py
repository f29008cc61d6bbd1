#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# What a policy does not use of the core is not in its module: the parts for merging limits and for
# bypassing the queue, where no hook needs them; and the table of all parts is complete
# kernels: 6.12
# check: 6.12
# timeout: 900
import os
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/bench"), str(PROJECT / "tests/lib")]

import sizes  # noqa: E402  (in a folder added above)
from checks import check  # noqa: E402

NAMES = ["tide", *sorted(path.name.removesuffix("-iosched.c")
                          for path in PROJECT.glob("*-iosched.c"))]
# {part of the core: (hook that needs it, most bytes of what is left without it)}
OPTIONAL = {"tmpl/seal.h": ("may_merge", 100), "tmpl/bypass.h": ("may_bypass", 200)}
# The compiler has a few more bytes in the section, for alignment.
COMPLETE = 0.98


def output(*command):
    """Output of a command that must succeed."""
    return subprocess.run(list(map(str, command)), cwd=PROJECT, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def text_of(module):
    """Bytes of machine code of a module, by its sections."""
    rows = (line.split() for line in output("size", "-A", module).splitlines())
    return sum(int(row[1]) for row in rows
               if row and row[0].startswith((".text", ".init.text", ".exit.text")))


def main():
    release = output("scripts/fetch-kernel", os.environ["KERNEL"]).strip()
    output("make", "-s", f"KVER={release}", "modules")
    build = PROJECT / "build" / release
    head, rows = sizes.table(build, NAMES)
    for row in (head, *rows):
        print("".join([f"{row[0]:32}", *(f"{cell.strip('*'):>8}" for cell in row[1:])]))
    found = {row[0]: dict(zip(NAMES, row[1:], strict=True)) for row in rows}
    for name in NAMES:
        whole, known = text_of(sizes.module(build, name)), int(found["all"][name].strip("*"))
        check(COMPLETE * whole < known <= whole, f"{name}: {known} of {whole} bytes are known")
        for part, (hook, most) in OPTIONAL.items():
            size = int(found[part][name])
            if hook in sizes.used(name):
                check(size > 2 * most, f"{name}: {size} bytes of {part}, {hook}() needs it")
            else:
                check(size <= most, f"{name}: {size} bytes of {part} without {hook}()")


if __name__ == "__main__":
    main()
