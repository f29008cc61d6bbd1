# SPDX-License-Identifier: GPL-2.0
"""Make lists of I/O on a drive and get the time of each (the program ssd-probe-io)."""
import contextlib
import os
import pathlib
import struct
import subprocess

import numpy

from ssd_common import DriveFailed, ToolError

READ, WRITE, FLUSH = range(3)
BARRIER = 1
IO = numpy.dtype([("offset", "u8"), ("length", "u4"), ("op", "u2"), ("flags", "u2"),
                  ("delay_ns", "u8")])
RESULT = numpy.dtype([("begin_ns", "u8"), ("end_ns", "u8"), ("status", "i8")])
JOB = struct.Struct("=IIQ")
COUNT = struct.Struct("=I")
# Bytes of the largest I/O, I/Os of the largest job.
MAX_BYTES, MAX_IOS = 4 << 20, 1 << 18


def ios(offsets, length, op: int = READ, barriers=False, delay_ns=0) -> numpy.ndarray:
    """Return a list of I/Os for Engine.play(). @offsets and @length: bytes, @barriers: an I/O waits
    for the end of all before it, @delay_ns: a pause before an I/O with a barrier. Each but @op is
    a number or one for each I/O."""
    offsets = numpy.atleast_1d(numpy.asarray(offsets, dtype="u8"))
    made = numpy.zeros(len(offsets), dtype=IO)
    made["offset"], made["length"], made["op"] = offsets, length, op
    made["flags"], made["delay_ns"] = numpy.where(barriers, BARRIER, 0), delay_ns
    return made


def groups(count: int, size: int) -> numpy.ndarray:
    """Return barriers for @count I/Os that are made in groups of @size: a group begins when the
    one before has ended."""
    return numpy.arange(count) % size == 0


@contextlib.contextmanager
def awake_cpus():
    """Keep the CPUs out of sleep states from which they take long to wake up."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            # pylint: disable=consider-using-with
            file = stack.enter_context(open("/dev/cpu_dma_latency", "wb", buffering=0))
            file.write(struct.pack("i", 0))
        yield


class Engine:
    """A running ssd-probe-io. @device: the descriptor of a block device, open for direct I/O, which
    is written to only if @writable. @program: the path of ssd-probe-io."""

    def __init__(self, device: int, writable: bool, program: str, max_depth: int = 256):
        self.max_depth = max_depth
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [program, str(device), "rw" if writable else "ro", str(max_depth), str(MAX_BYTES),
             str(MAX_IOS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=(device,))
        # Bytes read and written so far, of the whole life of the engine.
        self.bytes = {READ: 0, WRITE: 0, FLUSH: 0}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the program. An I/O in flight ends in the kernel."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def play(self, listed: numpy.ndarray, depth: int = 1, limit_s: float = 0) -> numpy.ndarray:
        """Make the I/O @listed (ios()) in its order, at most @depth at a time. Return an array of
        RESULT: begin_ns and end_ns since the start. It is shorter than the list if @limit_s
        seconds have passed, after which no I/O begins. Raise DriveFailed if an I/O fails."""
        job = JOB.pack(len(listed), depth, int(limit_s * 1e9))
        try:
            self.process.stdin.write(job)
            self.process.stdin.write(numpy.ascontiguousarray(listed, dtype=IO).tobytes())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.ended() from None
        count, = COUNT.unpack(self.receive(COUNT.size))
        done = numpy.frombuffer(self.receive(count * RESULT.itemsize), dtype=RESULT)
        self.check(listed[:count], done)
        return done

    def receive(self, size: int) -> bytes:
        """Return @size bytes of the program's results."""
        data, source = bytearray(), self.process.stdout.fileno()
        while len(data) < size:
            part = os.read(source, size - len(data))
            if not part:
                raise self.ended()
            data += part
        return bytes(data)

    def ended(self) -> ToolError:
        """Return the error for a program that has ended by itself."""
        said = self.process.stderr.read().decode(errors="replace").strip()
        return ToolError(said or f"ssd-probe-io ended with status {self.process.wait()}")

    def check(self, listed: numpy.ndarray, done: numpy.ndarray):
        """Raise DriveFailed if an I/O has failed or was short; count the bytes."""
        wanted = numpy.where(listed["op"] == FLUSH, 0, listed["length"])
        bad = numpy.flatnonzero(done["status"] != wanted)
        if len(bad):
            first, name = bad[0], ("read", "write", "flush")[listed["op"][bad[0]]]
            status = int(done["status"][first])
            what = os.strerror(-status) if status < 0 else f"{status} bytes only"
            raise DriveFailed(f"the {name} of {wanted[first]} bytes at {listed['offset'][first]} "
                              f"failed: {what} ({len(bad)} of {len(done)} I/Os)")
        for op in self.bytes:
            self.bytes[op] += int(wanted[listed["op"] == op].sum())


def find_program() -> str:
    """Return the path of ssd-probe-io: installed beside this package, or built in the tree."""
    here = pathlib.Path(__file__).resolve().parent.parent
    for path in (here / "ssd-probe-io", here.parent.parent / "build/tools/ssd-probe-io"):
        if os.access(path, os.X_OK):
            return str(path)
    raise ToolError("ssd-probe-io is missing: run 'make tools', which needs liburing-dev")
