# SPDX-License-Identifier: GPL-2.0
"""Where debugfs is. If it is not mounted, it is mounted for this thread only, so a program with
threads calls this before it starts them."""
import ctypes
import functools
import os
import pathlib

from ssd_ctl import CtlError

MOUNTINFO = pathlib.Path("/proc/self/mountinfo")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 1 << 14, 1 << 18
PLACE = pathlib.Path("/sys/kernel/debug")
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mount.argtypes = (ctypes.c_char_p,) * 3 + (ctypes.c_ulong, ctypes.c_char_p)


def mounted() -> pathlib.Path | None:
    """Return where it is mounted."""
    for line in MOUNTINFO.read_text(errors="surrogateescape").splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "debugfs" and fields[3] == "/":
            return pathlib.Path(fields[4])
    return None


def checked(status: int, what: str):
    """Raise CtlError if a system call failed."""
    if status:
        raise CtlError(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount_privately() -> pathlib.Path:
    """Mount it in a mount namespace of this thread; return where. It is unmounted when the thread
    ends."""
    if not PLACE.is_dir():
        raise CtlError("the kernel was built without debugfs")
    alone = "debugfs cannot be mounted for this process alone"
    checked(LIBC.unshare(CLONE_NEWNS), alone)
    checked(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), alone)
    checked(LIBC.mount(b"debugfs", str(PLACE).encode(), b"debugfs", 0, None),
            "debugfs cannot be mounted")
    return PLACE


@functools.cache
def debugfs() -> pathlib.Path:
    """Return the root of debugfs."""
    return mounted() or mount_privately()
