# SPDX-License-Identifier: GPL-2.0
"""System calls and ioctls that Python does not have."""

import ctypes
import fcntl
import os
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
# Numbers of system calls.
CALLS = {"x86_64": {"clone": 56, "delete_module": 176, "finit_module": 313, "ioprio_set": 251},
         "aarch64": {"clone": 220, "delete_module": 106, "finit_module": 273, "ioprio_set": 30}
         }[os.uname().machine]
# Classes of I/O priority.
RT, BE, IDLE = 1, 2, 3
BLKDISCARD, BLKZEROOUT = 0x1277, 0x127f
BLKOPENZONE, BLKCLOSEZONE = 0x40101286, 0x40101287
FIFREEZE, FITHAW = 0xc0045877, 0xc0045878


def syscall(name, *arguments):
    """Do a system call; return its result, or raise OSError with the @name of the call."""
    result = LIBC.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def set_priority(io_class, level):
    """Set the I/O priority of the calling thread; @level: 0 to 7, the lowest."""
    syscall("ioprio_set", CALLS["ioprio_set"], 1, 0, io_class << 13 | level)


def range_ioctl(fd, code, offset, length):
    """BLKDISCARD or BLKZEROOUT of a range of a block device, in bytes; BLKOPENZONE or
    BLKCLOSEZONE, in sectors."""
    fcntl.ioctl(fd, code, struct.pack("QQ", offset, length))
