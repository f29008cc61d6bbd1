# SPDX-License-Identifier: GPL-2.0
"""The processes of the torture test that load the devices and verify what they read.

Each worker owns a region of a device. A 512-byte sector that it writes holds the number of
the region, the number of the write (its generation) and that of the sector, so that a read
shows what happened to each sector. A failed write leaves the old or the new sector, a
discard the old one or zeros.
"""

import ctypes
import errno
import fcntl
import glob
import mmap
import os
import pathlib
import random
import struct
import time

import uring
from linux_calls import BE, BLKDISCARD, BLKZEROOUT, IDLE, RT, range_ioctl, set_priority

# (class, level)
PRIORITIES = {"rt": (RT, 4), "be": (BE, 4), "idle": (IDLE, 0)}
BLOCK, SECTOR = 4096, 512
MOST_BLOCKS = 8
SG_IO = 0x2285
STAMP = struct.Struct("<IIQ")
ZERO = bytes(SECTOR)
# Errors of an I/O while faults are injected or the device is removed. EINVAL and ENOSPC follow
# from a capacity that could not be read.
FAULTS = {errno.EIO, errno.ENODATA, errno.ETIMEDOUT, errno.EREMOTEIO, errno.ENODEV,
          errno.ENXIO, errno.EAGAIN, errno.EBADE, errno.ENOLINK, errno.EINTR, errno.ENOSPC,
          errno.EILSEQ, errno.ENOENT, errno.EINVAL, errno.EBUSY, errno.ENOMEDIUM, errno.EBADFD}
# States of a target.
UP, GOING, GONE = range(3)
# What the workers have to do: work; leave polled I/O unreaped while the others work; rest, with
# polled I/O unreaped; rest; exit.
RUN, HOLD, REST, REST_ALL, END = range(5)
# Of the failed I/Os, "gone" failed while their device was being removed.
COUNTS = ("submitted", "ended", "failed", "gone", "verified_kb", "ordinary", "polled",
          "passthrough", "sg_io", "discards", "zeroes", "flushes", "fua", "files", "late")


class Slot(ctypes.Structure):
    """State of a worker for its parent. since: when the oldest I/O in flight was submitted, in
    ns of the monotonic clock, 0 for none; resting; holding: leaves polled I/O unreaped; wrong:
    an error; counters."""
    _fields_ = [("since", ctypes.c_int64), ("resting", ctypes.c_int64),
                ("holding", ctypes.c_int64), ("wrong", ctypes.c_char * 400),
                *((name, ctypes.c_int64) for name in COUNTS)]


class Shared(ctypes.Structure):
    """State of a target; life: how often it returned; its name, which a removal may change."""
    _fields_ = [("state", ctypes.c_int64), ("life", ctypes.c_int64),
                ("name", ctypes.c_char * 32)]


class Control(ctypes.Structure):
    """What all workers have to do; when they were last watched, in ns of the monotonic clock."""
    _fields_ = [("want", ctypes.c_int64), ("beat", ctypes.c_int64)]


def shared(kind):
    """Make an object of a ctypes @kind that forked processes share."""
    return kind.from_buffer(mmap.mmap(-1, max(ctypes.sizeof(kind), mmap.PAGESIZE)))


def character(name):
    """Return the path of the NVMe character device of a disk, "" while it has none. Its number is
    the controller's; a disk that returns while something has the old controller open has another
    number than its controller."""
    return "".join(f"/dev/{os.path.basename(path)}"
                   for path in glob.glob(f"/sys/block/{name}/device/ng*n[0-9]"))


class Wrong(Exception):
    """Data differ from what was written, or an I/O failed that must not."""


class Region:
    """Blocks of a device, and the generations that each may hold; generation 0 is zeros."""

    def __init__(self, owner, start, blocks):
        """@owner: a number that no other region has; @start: bytes; @blocks: of BLOCK bytes."""
        self.owner, self.start, self.blocks = owner, start, blocks
        self.generation = 0
        # None: unknown, before the first write.
        self.allowed = [None] * blocks
        self.busy = set()

    def sector(self, number, generation):
        """Bytes of a generation of a sector."""
        if not generation:
            return ZERO
        return STAMP.pack(self.owner, generation, number) * (SECTOR // STAMP.size)

    def data(self, block, count, generation):
        """Bytes of a generation of @count blocks."""
        first = (self.start + block * BLOCK) // SECTOR
        sectors = range(first, first + count * BLOCK // SECTOR)
        return b"".join([self.sector(number, generation) for number in sectors])

    def claim(self, rng):
        """Take random blocks that are not in use: (first, count), or None."""
        count = rng.randint(1, min(MOST_BLOCKS, self.blocks))
        block = rng.randrange(self.blocks - count + 1)
        mine = range(block, block + count)
        if not self.busy.isdisjoint(mine):
            return None
        self.busy.update(mine)
        return block, count

    def release(self, block, count):
        self.busy.difference_update(range(block, block + count))

    def changed(self, block, count, generation, surely):
        """Record that blocks hold this generation, or unless @surely that they may."""
        for number in range(block, block + count):
            if surely:
                self.allowed[number] = {generation}
            elif self.allowed[number] is not None:
                self.allowed[number].add(generation)

    def verify(self, block, data):
        """Raise Wrong unless each sector of @data, read from @block on, is allowed there."""
        for at in range(0, len(data), BLOCK):
            allowed = self.allowed[block + at // BLOCK]
            if allowed is None:
                continue
            now = data[at:at + BLOCK]
            number = block + at // BLOCK
            if any(now == self.data(number, 1, generation) for generation in allowed):
                continue
            first = (self.start + number * BLOCK) // SECTOR
            for sector in range(BLOCK // SECTOR):
                got = now[sector * SECTOR:(sector + 1) * SECTOR]
                if not any(got == self.sector(first + sector, generation)
                           for generation in allowed):
                    owner, generation, place = STAMP.unpack_from(got)
                    raise Wrong(f"sector {first + sector} of region {self.owner} holds "
                                f"({owner}, {generation}, {place}) instead of generation "
                                f"{sorted(allowed)}")


class Worker:
    """A process that loads a target, and counts the I/Os that it submits and that end."""

    def __init__(self, target, region, rng, priority="be"):
        self.target, self.region, self.rng, self.priority = target, region, rng, priority
        self.slot = shared(Slot)
        self.label = f"{type(self).__name__} {priority} on {target.label}"
        self.buffer = mmap.mmap(-1, BLOCK * MOST_BLOCKS)
        self.fd, self.life = -1, 0

    def open(self):
        """Open the device, which may be a new one."""
        self.fd = os.open(f"/dev/{self.target.name}", os.O_RDWR | os.O_DIRECT)
        if self.life != self.target.shared.life:
            self.life = self.target.shared.life
            if self.target.forgets:
                self.region.allowed = [{0} for _ in range(self.region.blocks)]

    def close(self):
        os.close(self.fd)
        self.fd = -1

    def step(self):
        """Do one I/O or a few."""
        raise NotImplementedError

    def drain(self):
        """Wait for the end of all I/O in flight."""

    def begin(self, kind):
        """Account for an I/O before it is submitted."""
        if not self.slot.since:
            self.slot.since = time.monotonic_ns()
        self.slot.submitted += 1
        setattr(self.slot, kind, getattr(self.slot, kind) + 1)

    def end(self, error, may_fail=False, what="I/O"):
        """Account for an I/O that ended, with an errno or 0; return true on success. Raise Wrong if
        it must not fail. @what: for the message."""
        self.slot.ended += 1
        if self.slot.ended == self.slot.submitted:
            self.slot.since = 0
        if not error:
            return True
        self.slot.failed += 1
        if self.target.shared.state != UP or self.target.shared.life != self.life:
            self.slot.gone += 1
            may_fail = True
        may_fail |= self.target.faulty
        if error not in FAULTS or not may_fail:
            raise Wrong(f"{what} failed: {os.strerror(error)}")
        return False

    def verify_read(self, block, data):
        """Verify data read from @block on."""
        self.region.verify(block, data)
        self.slot.verified_kb += len(data) >> 10

    def run(self, control):
        """The life of the process."""
        set_priority(*PRIORITIES[self.priority])
        try:
            self.appear()
            while control.want != END:
                if self.target.shared.state == GONE:
                    self.absent()
                elif control.want >= self.rests_at():
                    self.drain()
                    self.slot.resting = 1
                    while control.want >= self.rests_at() and control.want != END:
                        time.sleep(0.02)
                    self.slot.resting = 0
                else:
                    self.work(control)
            self.drain()
            self.slot.resting = 1
        except Wrong as wrong:
            self.slot.wrong = str(wrong).encode()[:399]
        except Exception as error:  # noqa: BLE001
            self.slot.wrong = f"{type(error).__name__} {error}".encode()[:399]
            raise

    def work(self, _control):
        self.step()
        # A pause, in which no other request wakes one that was forgotten.
        if self.rng.random() < 0.02:
            time.sleep(self.rng.random() / 2)

    @staticmethod
    def rests_at():
        return REST

    def absent(self):
        """Close the removed device and wait until it is back."""
        self.drain()
        self.close()
        self.slot.resting = 1
        self.appear()

    def appear(self):
        """Open the device as soon as it is there."""
        while True:
            while self.target.shared.state == GONE:
                time.sleep(0.02)
            self.slot.resting = 0
            life = self.target.shared.life
            try:
                self.open()
                return
            except OSError:
                # It may be being removed, or it was and is back.
                if self.target.shared.state == UP and self.target.shared.life == life:
                    raise
                self.slot.resting = 1
                time.sleep(0.02)


class Plain(Worker):
    """One I/O at a time by ordinary system calls: also flushes, FUA, discards, write-zeroes."""
    KINDS = {"read": 8, "write": 8, "fua": 2, "flush": 1, "discard": 1, "zeroes": 1}

    def __init__(self, *arguments, **keys):
        super().__init__(*arguments, **keys)
        self.kinds = {kind: weight for kind, weight in self.KINDS.items()
                      if self.target.ranges or kind not in ("discard", "zeroes")}

    def step(self):
        (kind,) = self.rng.choices(list(self.kinds), list(self.kinds.values()))
        claimed = self.region.claim(self.rng)
        block, count = claimed
        offset, length = self.region.start + block * BLOCK, count * BLOCK
        try:
            getattr(self, f"do_{kind}")(block, count, offset, length)
        finally:
            self.region.release(block, count)

    def call(self, kind, function, *arguments):
        """Do a system call; return (its result or errno, true on success)."""
        self.begin(kind)
        try:
            result = function(*arguments)
        except OSError as error:
            return error.errno, self.end(error.errno, what=f"{kind} {function.__name__}")
        self.end(0)
        return result, True

    def do_read(self, block, _count, offset, length):
        view = memoryview(self.buffer)[:length]
        done, good = self.call("ordinary", os.preadv, self.fd, [view], offset)
        if good:
            self.verify_read(block, bytes(view[:done // BLOCK * BLOCK]))

    def do_write(self, block, count, offset, length, kind="ordinary", flags=0):
        self.region.generation += 1
        generation = self.region.generation
        view = memoryview(self.buffer)[:length]
        view[:] = self.region.data(block, count, generation)
        # A write that fails may still reach the device.
        self.region.changed(block, count, generation, False)
        done, good = self.call(kind, os.pwritev, self.fd, [view], offset, flags)
        if good and done == length:
            self.region.changed(block, count, generation, True)

    def do_fua(self, block, count, offset, length):
        self.do_write(block, count, offset, length, "fua", os.RWF_DSYNC)

    def do_flush(self, *_):
        self.call("flushes", os.fdatasync, self.fd)

    def ioctl_range(self, kind, code, offset, length):
        """Do an ioctl on a range; return true on success, None if it is not supported."""
        self.begin(kind)
        try:
            range_ioctl(self.fd, code, offset, length)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self.end(0)
                return None
            return self.end(error.errno, what=kind)
        return self.end(0)

    def do_discard(self, block, count, offset, length):
        self.region.changed(block, count, 0, False)
        if self.ioctl_range("discards", BLKDISCARD, offset, length) is None:
            self.slot.discards -= 1
            del self.kinds["discard"]

    def do_zeroes(self, block, count, offset, length):
        self.region.changed(block, count, 0, False)
        if self.ioctl_range("zeroes", BLKZEROOUT, offset, length):
            self.region.changed(block, count, 0, True)


class Sg(Plain):
    """SCSI commands by SG_IO."""
    KINDS = {"sg_read": 4, "sg_write": 4, "ready": 1, "inquiry": 1}
    HEADER = struct.Struct("<iiBBHIQQQIIi4xQBBBBHHiII4x")
    TO_DEVICE, FROM_DEVICE, NO_DATA = -2, -3, -1
    # SCSI waits for all commands of a host before it handles the first lost one.
    TIMEOUT_MS = 20000

    def command(self, command, direction, length):
        """Send a command; return true on success."""
        sense = ctypes.create_string_buffer(32)
        block = ctypes.create_string_buffer(command)
        header = bytearray(self.HEADER.pack(
            ord("S"), direction, len(command), 32, 0, length,
            uring.address(self.buffer) if length else 0, ctypes.addressof(block),
            ctypes.addressof(sense), self.TIMEOUT_MS, 0, 0, 0, *[0] * 4, 0, 0, 0, 0, 0))
        self.begin("sg_io")
        try:
            fcntl.ioctl(self.fd, SG_IO, header)
        except OSError as error:
            return self.end(error.errno)
        fields = self.HEADER.unpack(header)
        status, host, driver, left = fields[13], fields[17], fields[18], fields[19]
        return self.end(errno.EIO if status or host or driver or left else 0)

    def do_sg_read(self, block, count, offset, length):
        command = struct.pack(">BBIBHB", 0x28, 0, offset // SECTOR, 0, length // SECTOR, 0)
        if self.command(command, self.FROM_DEVICE, length):
            self.verify_read(block, self.buffer[:length])

    def do_sg_write(self, block, count, offset, length):
        self.region.generation += 1
        generation = self.region.generation
        self.buffer[:length] = self.region.data(block, count, generation)
        self.region.changed(block, count, generation, False)
        command = struct.pack(">BBIBHB", 0x2a, 0, offset // SECTOR, 0, length // SECTOR, 0)
        if self.command(command, self.TO_DEVICE, length):
            self.region.changed(block, count, generation, True)

    def do_ready(self, *_):
        self.command(bytes(6), self.NO_DATA, 0)

    def do_inquiry(self, *_):
        self.command(struct.pack(">BBBHB", 0x12, 0, 0, 36, 0), self.FROM_DEVICE, 36)


class Uring(Worker):
    """Many I/Os at a time by io_uring."""
    ENTRIES = 32
    FLAGS = 0
    KIND = "ordinary"

    def __init__(self, *arguments, **keys):
        super().__init__(*arguments, **keys)
        self.buffer = uring.passthrough_buffer(BLOCK * MOST_BLOCKS * self.ENTRIES)
        self.address = uring.address(self.buffer)
        self.ring = None
        # {user_data: (what, block, count, generation)}
        self.flying = {}
        self.since = {}

    def open(self):
        super().open()
        self.ring = uring.Ring(self.ENTRIES, self.FLAGS)

    def close(self):
        self.ring.close()
        super().close()

    def free(self):
        """A user_data that no I/O in flight has."""
        return next(number for number in range(self.ENTRIES) if number not in self.flying)

    def queue(self, what):
        """Queue an I/O of kind @what."""
        claimed = self.region.claim(self.rng)
        if not claimed or len(self.flying) == self.ENTRIES:
            if claimed:
                self.region.release(*claimed)
            return
        (block, count), number = claimed, self.free()
        at = number * BLOCK * MOST_BLOCKS
        offset, length = self.region.start + block * BLOCK, count * BLOCK
        generation, kind = 0, self.KIND
        if what == "read":
            self.ring.read(self.fd, self.address + at, length, offset, number)
        elif what == "pass":
            kind = "passthrough"
            self.ring.nvme_read(self.passthrough, self.address + at, length,
                                offset // SECTOR, number)
        elif what == "flush":
            kind = "flushes"
            self.ring.fsync(self.fd, number)
        else:
            self.region.generation += 1
            generation = self.region.generation
            self.buffer[at:at + length] = self.region.data(block, count, generation)
            self.region.changed(block, count, generation, False)
            kind = "fua" if what == "fua" else kind
            self.ring.write(self.fd, self.address + at, length, offset, number,
                            os.RWF_DSYNC if what == "fua" else 0)
        self.flying[number] = (what, block, count, generation)
        self.since[number] = time.monotonic_ns()
        self.begin(kind)

    def ended(self, number, result):
        """Account for an I/O that ended; verify what it read."""
        what, block, count, generation = self.flying.pop(number)
        del self.since[number]
        self.region.release(block, count)
        # A passthrough command that a reset of the controller ends is not retried; its result
        # may be the device's status. EAGAIN: not issued, no request could be allocated.
        error = -result if result < 0 else errno.EIO if what == "pass" and result else 0
        good = self.end(error, may_fail=what == "pass" or error == errno.EAGAIN,
                        what=f"{what} of {count} blocks at {block} ({result})")
        if self.since:
            self.slot.since = min(self.since.values())
        if not good:
            return
        at, length = number * BLOCK * MOST_BLOCKS, count * BLOCK
        if what in ("write", "fua"):
            if result == length:
                self.region.changed(block, count, generation, True)
        elif what != "flush":
            whole = length if what == "pass" else result // BLOCK * BLOCK
            self.verify_read(block, self.buffer[at:at + whole])

    def reap(self):
        for number, result in self.ring.reap():
            self.ended(number, result)

    def wait(self, least):
        """Submit, and wait for at least @least of the I/Os in flight."""
        self.ring.submit(min(least, len(self.flying)))
        self.reap()

    def batch(self):
        """Random kinds of I/O for one submission."""
        return self.rng.choices(("read", "write", "fua", "flush"), (8, 8, 1, 1),
                                k=self.rng.randint(1, 16))

    def step(self):
        for what in self.batch():
            self.queue(what)
        self.wait(self.rng.randint(0, len(self.flying)))

    def drain(self):
        while self.flying:
            self.wait(len(self.flying))


class Mixed(Uring):
    """Passthrough commands and ordinary reads in one submission: the block layer allocates the
    requests of a whole submission as its first I/O needs them."""
    FLAGS = uring.SETUP_SQE128 | uring.SETUP_CQE32

    def open(self):
        super().open()
        try:
            self.passthrough = os.open(character(self.target.name), os.O_RDWR)
        except OSError:
            super().close()
            raise

    def close(self):
        os.close(self.passthrough)
        super().close()

    def batch(self):
        return ["pass"] * self.rng.randint(1, 2) + self.rng.choices(
            ("read", "write", "pass"), (6, 2, 1), k=self.rng.randint(1, 12))


class Polled(Uring):
    """Polled I/O, sometimes reaped late, and in the phases HOLD and REST not at all."""
    FLAGS = uring.SETUP_IOPOLL
    KIND = "polled"

    def open(self):
        super().open()
        if self.target.forgets:
            # null_blk allocates memory for the first write to a block, which it must not when
            # polled, under rcu_read_lock().
            zeros = mmap.mmap(-1, 1 << 20)
            end = self.region.start + self.region.blocks * BLOCK
            for offset in range(self.region.start, end, 1 << 20):
                self.begin("ordinary")
                try:
                    os.pwritev(self.fd, [zeros], offset)
                    self.end(0)
                except OSError as error:
                    self.end(error.errno)
            self.region.allowed = [{0} for _ in range(self.region.blocks)]

    def batch(self):
        return self.rng.choices(("read", "write"), k=self.rng.randint(1, 8))

    def step(self):
        for what in self.batch():
            self.queue(what)
        if self.rng.random() < 0.05:
            self.late(self.rng.random() * 2)
        self.drain()

    def late(self, seconds):
        self.ring.submit_only()
        self.slot.late += 1
        time.sleep(seconds)

    def work(self, control):
        if control.want not in (HOLD, REST):
            super().work(control)
            return
        for _ in range(4):
            self.queue("read")
        self.late(0)
        self.slot.holding = 1
        while control.want in (HOLD, REST):
            # No I/O counts as lost meanwhile.
            self.slot.since = 0
            time.sleep(0.02)
        self.since = dict.fromkeys(self.since, time.monotonic_ns())
        self.slot.holding = 0
        self.drain()

    @staticmethod
    def rests_at():
        return REST_ALL


class Files(Worker):
    """Small files of known content on a file system."""

    def __init__(self, target, folder, rng, priority="be"):
        super().__init__(target, None, rng, priority)
        self.folder = pathlib.Path(folder)
        self.label = f"Files {priority} on {folder}"
        self.files, self.number = {}, 0

    def open(self):
        pass

    def close(self):
        pass

    @staticmethod
    def content(number):
        rng = random.Random(number)
        return rng.randbytes(rng.randint(1, 60000))

    def step(self):
        self.begin("files")
        try:
            self.action()
        except OSError as error:
            self.slot.ended += 1
            raise Wrong(f"{self.folder}: {error}") from None
        self.end(0)

    def action(self):
        if len(self.files) < 40 or self.rng.random() < 0.4:
            self.write()
        elif self.rng.random() < 0.6:
            self.check(self.rng.choice(list(self.files)))
        else:
            name = self.rng.choice(list(self.files))
            self.check(name)
            os.unlink(self.folder / name)
            del self.files[name]

    def write(self):
        self.number += 1
        name = f"{self.priority}-{self.number}"
        with open(self.folder / name, "wb") as file:
            file.write(self.content(self.number))
            if self.rng.random() < 0.5:
                file.flush()
                os.fsync(file.fileno())
        self.files[name] = self.number
        if len(self.files) > 80:
            old = next(iter(self.files))
            self.check(old)
            os.unlink(self.folder / old)
            del self.files[old]

    def check(self, name):
        with open(self.folder / name, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            data = file.read()
        if data != self.content(self.files[name]):
            raise Wrong(f"{self.folder}/{name} differs from what was written")
        self.slot.verified_kb += len(data) >> 10
