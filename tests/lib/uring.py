# SPDX-License-Identifier: GPL-2.0
"""An io_uring over the raw system calls, also polled, also with NVMe passthrough commands.

The caller keeps buffers alive until the request has ended. A request's user_data is a
number below the ring's entries that no other request in flight has. It is the index of the
request's SQE, which therefore stays unchanged until the request has ended: Linux 6.12 reads
the SQE of a passthrough command again when a worker thread issues it for lack of a free tag.
"""

import ctypes
import mmap
import os
import struct

from linux_calls import syscall

SYS_SETUP, SYS_ENTER = 425, 426
SETUP_IOPOLL, SETUP_SQE128, SETUP_CQE32 = 1 << 0, 1 << 10, 1 << 11
ENTER_GETEVENTS = 1
OP_FSYNC, OP_READ, OP_WRITE, OP_URING_CMD = 3, 22, 23, 46
OFFSET_SQ, OFFSET_CQ, OFFSET_SQES = 0, 0x8000000, 0x10000000
# struct io_uring_params: 10 words, then io_sqring_offsets and io_cqring_offsets.
PARAMS = struct.Struct("<10I 8I2I 8I2I")
SQE = struct.Struct("<BBHiQQIIQ")
# struct nvme_uring_cmd without its last two words.
NVME_CMD = struct.Struct("<BBHIIIQQIIIIIIII")
NVME_URING_CMD_IO = 0xc0484e80
NVME_READ = 2
# Of the disks of the lab.
NAMESPACE, LBA_SIZE = 1, 512
FSYNC_DATASYNC = 1
MAP_32BIT = 0x40


def passthrough_buffer(size):
    """Memory of @size bytes below 4 GB, for passthrough commands. A worker thread of the ring
    issues them if there is no free tag. If the kernel supports x32 programs and created that
    thread on its return from an interrupt, it treats the thread as x32 and truncates the
    buffer's address to 32 bits."""
    return mmap.mmap(-1, size, mmap.MAP_SHARED | MAP_32BIT)


def address(buffer):
    """Address of an mmap.mmap."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


class Ring:
    """An io_uring of @entries requests; @flags: SETUP_*."""

    def __init__(self, entries, flags=0):
        params = (ctypes.c_char * 120)()
        struct.pack_into("<II", params, 8, flags, 0)
        self.fd = syscall("io_uring_setup", SYS_SETUP, entries, params)
        fields = PARAMS.unpack_from(params)
        self.entries, cq_entries = fields[0], fields[1]
        sq, cq = fields[10:18], fields[20:28]
        self.sqe_size = 128 if flags & SETUP_SQE128 else 64
        self.cqe_size = 32 if flags & SETUP_CQE32 else 16
        self.polled = bool(flags & SETUP_IOPOLL)
        self.sq = mmap.mmap(self.fd, sq[6] + 4 * self.entries, offset=OFFSET_SQ)
        self.cq = mmap.mmap(self.fd, cq[5] + self.cqe_size * cq_entries, offset=OFFSET_CQ)
        self.sqes = mmap.mmap(self.fd, self.sqe_size * self.entries, offset=OFFSET_SQES)
        self.sq_tail = ctypes.c_uint32.from_buffer(self.sq, sq[1])
        self.sq_head = ctypes.c_uint32.from_buffer(self.sq, sq[0])
        self.cq_head = ctypes.c_uint32.from_buffer(self.cq, cq[0])
        self.cq_tail = ctypes.c_uint32.from_buffer(self.cq, cq[1])
        self.cqes = cq[5]
        self.cq_mask, self.sq_mask = cq_entries - 1, self.entries - 1
        self.sq_array = sq[6]
        self.queued = 0

    def close(self):
        """Close the ring; the kernel ends the requests in flight."""
        os.close(self.fd)

    def _sqe(self, opcode, fd, offset, addr, length, op_flags, user_data):
        struct.pack_into("<I", self.sq, self.sq_array + 4 * (self.sq_tail.value & self.sq_mask),
                         user_data)
        at = user_data * self.sqe_size
        self.sqes[at:at + self.sqe_size] = bytes(self.sqe_size)
        SQE.pack_into(self.sqes, at, opcode, 0, 0, fd, offset, addr, length, op_flags, user_data)
        # No barrier: the kernel reads the tail in io_uring_enter() only, in this process.
        self.sq_tail.value = (self.sq_tail.value + 1) & 0xffffffff
        self.queued += 1
        return at

    def read(self, fd, addr, length, offset, user_data):
        """Queue a read of @length bytes at @offset to @addr."""
        self._sqe(OP_READ, fd, offset, addr, length, 0, user_data)

    def write(self, fd, addr, length, offset, user_data, rw_flags=0):
        """Queue a write of @length bytes at @offset from @addr; @rw_flags: RWF_*."""
        self._sqe(OP_WRITE, fd, offset, addr, length, rw_flags, user_data)

    def fsync(self, fd, user_data):
        """Queue a flush."""
        self._sqe(OP_FSYNC, fd, 0, 0, 0, FSYNC_DATASYNC, user_data)

    def nvme_read(self, fd, addr, length, lba, user_data):
        """Queue a passthrough read from an NVMe character device; the ring needs SETUP_SQE128
        and SETUP_CQE32."""
        # cmd_op is in a union with the offset.
        at = self._sqe(OP_URING_CMD, fd, NVME_URING_CMD_IO, 0, 0, 0, user_data)
        NVME_CMD.pack_into(self.sqes, at + 48, NVME_READ, 0, 0, NAMESPACE, 0, 0, 0, addr, 0, length,
                           lba & 0xffffffff, lba >> 32, length // LBA_SIZE - 1, 0, 0, 0)

    def submit(self, wait=0):
        """Submit the queued requests and wait for @wait completions; return the number of
        requests taken."""
        flags = ENTER_GETEVENTS if wait or self.polled else 0
        while True:
            try:
                taken = syscall("io_uring_enter", SYS_ENTER, self.fd, self.queued, wait, flags,
                                None, 0)
            except InterruptedError:
                # Requests submitted before the signal are off the ring.
                self.queued = (self.sq_tail.value - self.sq_head.value) & 0xffffffff
            else:
                self.queued -= taken
                return taken

    def submit_only(self):
        """Submit without reaping, also on a polled ring; return the number of requests taken."""
        taken = syscall("io_uring_enter", SYS_ENTER, self.fd, self.queued, 0, 0, None, 0)
        self.queued -= taken
        return taken

    def reap(self):
        """Take the completions that have arrived: [(user_data, result)]."""
        ended = []
        head, tail = self.cq_head.value, self.cq_tail.value
        while head != tail:
            at = self.cqes + (head & self.cq_mask) * self.cqe_size
            ended.append(struct.unpack_from("<Qi", self.cq, at))
            head = (head + 1) & 0xffffffff
        self.cq_head.value = head
        return ended
