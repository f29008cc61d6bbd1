#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# What only a fault of the emulator can print is told from what the kernel's own defects print
# timeout: 60
# quick: host
import pathlib
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "scripts"), str(PROJECT / "tests/lib")]

from checks import check  # noqa: E402  (beside this folder)
from labvm.protocol import emulator_fault  # noqa: E402

# As 6.12 prints it, with the last bytes of the code before the trap and those after.
TRAP = """[  402.873454] Oops: {kind}: 0000 [#1] PREEMPT SMP NOPTI\r
[  402.876491] CPU: 0 UID: 0 PID: 157 Comm: fio Tainted: G           OE\r
[  402.877185] RIP: 0010:submit_bio_noacct_nocheck+0x10c/0x3c0\r
[  402.877826] Code: 89 18 eb d0 e8 7a 8b b7 ff e9 77 ff ff ff {byte} <1f> 44 00 00 0c 80 66\r
[  402.878004] RSP: 0018:ffffc90000443750 EFLAGS: {flags}\r
"""


def said(kind="int3", byte="0f", flags="00000246"):
    """Return the fault that is seen in an oops."""
    return emulator_fault(f"[    1.0] Linux\r\n{TRAP.format(kind=kind, byte=byte, flags=flags)}")


check(said() == "QEMU ran code that had been changed: int3 before "
      "submit_bio_noacct_nocheck+0x10c/0x3c0, where the kernel has 0f", "an int3 that is not there")
check(said(byte="cc") is None, "an int3 that is there")
check(said(kind="invalid opcode") is None, "another trap")
check(said(byte="cc", flags="0f789002") ==
      "QEMU corrupted the CPU's flags: EFLAGS 0f789002 cannot exist", "flags that cannot exist")
check(emulator_fault("Oops: int3: 0000\nno registers\n") is None, "an oops without registers")
