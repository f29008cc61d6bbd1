# SPDX-License-Identifier: GPL-2.0
"""Where debugfs and tracefs are. If one is not mounted, it is mounted for this thread only, so a
program with threads calls this before it starts them."""
import ctypes
import functools
import os
import pathlib

from ssd_ctl import CtlError

MOUNTINFO = pathlib.Path("/proc/self/mountinfo")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 1 << 14, 1 << 18
PLACES = {"debugfs": pathlib.Path("/sys/kernel/debug"),
          "tracefs": pathlib.Path("/sys/kernel/tracing")}
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mount.argtypes = (ctypes.c_char_p,) * 3 + (ctypes.c_ulong, ctypes.c_char_p)


def mounted(kind: str) -> pathlib.Path | None:
    """Return where a file system of this kind is mounted."""
    for line in MOUNTINFO.read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == kind and fields[3] == "/":
            return pathlib.Path(fields[4])
    return None


def checked(status: int, what: str):
    """Raise CtlError if a system call failed."""
    if status:
        raise CtlError(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount_privately(kind: str) -> pathlib.Path:
    """Mount a file system in a mount namespace of this thread; return where. It is unmounted when
    the thread ends."""
    place = PLACES[kind]
    if not place.is_dir():
        raise CtlError(f"the kernel was built without {kind}")
    alone = f"{kind} cannot be mounted for this process alone"
    checked(LIBC.unshare(CLONE_NEWNS), alone)
    checked(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), alone)
    checked(LIBC.mount(kind.encode(), str(place).encode(), kind.encode(), 0, None),
            f"{kind} cannot be mounted")
    return place


@functools.cache
def debugfs() -> pathlib.Path:
    """Return the root of debugfs."""
    return mounted("debugfs") or mount_privately("debugfs")


@functools.cache
def tracefs() -> pathlib.Path:
    """Return the root of tracefs."""
    return mounted("tracefs") or mount_privately("tracefs")
