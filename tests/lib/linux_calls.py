# SPDX-License-Identifier: GPL-2.0
"""System calls and ioctls that Python does not have. Numbers are those of x86-64."""

import ctypes
import fcntl
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_IOPRIO_SET = 251
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
    syscall("ioprio_set", SYS_IOPRIO_SET, 1, 0, io_class << 13 | level)


def range_ioctl(fd, code, offset, length):
    """BLKDISCARD or BLKZEROOUT of a range of a block device, in bytes; BLKOPENZONE or
    BLKCLOSEZONE, in sectors."""
    fcntl.ioctl(fd, code, struct.pack("QQ", offset, length))
