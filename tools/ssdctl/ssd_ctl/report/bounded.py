# SPDX-License-Identifier: GPL-2.0
"""Ask what may never answer: each question is put by a child, which is given up if it takes long.

A read of sysfs waits for a lock that a hanging drive may hold, and nothing ends a process that
waits so. Only a child can be left behind: a thread would keep the program from ending. The child
has none of the caller's streams, so that nothing waits for its end either.
"""
import contextlib
import dataclasses
import json
import os
import select
import signal
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator

from ssd_common import ToolError
from ssd_common.packages import with_sbin
from ssd_common.signals import SIGNALS
from ssd_ctl import CtlError

# Seconds for one answer, for all of a report, and between the end of a child and its exit status.
ANSWER_S, ALL_S, END_S = 3.0, 40.0, 0.2
# Bytes of one file or of a program's output, of an answer in JSON, and of a report's facts.
MOST_TEXT, MOST_ANSWER, MOST_REPORT = 64 << 10, 4 << 20, 4 << 20
# After so many questions without an answer the rest of a list is not asked.
MOST_SILENT = 4
# The number of the only descriptor of a child but for the streams.
KEPT = 3
LENGTH = struct.Struct("=I")
CUT = "\n(cut here: it is longer)"


@dataclasses.dataclass
class Answer:
    """What a child has answered to @item: a @value of JSON's types, or @why there is none."""
    item: object
    value: object = None
    why: str = ""


class Budget:
    """What all questions of a report may take: time and bytes."""

    def __init__(self, seconds: float = ALL_S, size: int = MOST_REPORT):
        self.end = time.monotonic() + seconds
        self.size = size

    def seconds(self, most: float) -> float:
        """Return the time for the next answer, @most at most."""
        return max(0.0, min(most, self.end - time.monotonic()))

    def spent(self) -> str:
        """Return why no more is asked, "" if it may be."""
        if time.monotonic() >= self.end:
            return "the report's time was over"
        return "" if self.size > 0 else "the report was full"


def answers(call: Callable, items: Iterable, budget: Budget, seconds: float = ANSWER_S,
            most_silent: int = MOST_SILENT) -> Iterator[Answer]:
    """Yield the answer to each item: what call(item) returns in a child. @seconds: for each.
    @most_silent: after so many without an answer the rest is not asked."""
    left, silent = list(items), 0
    while left:
        child = Child(call, left)
        try:
            while left:
                why = budget.spent() or (
                    f"{silent} before it did not answer" if silent >= most_silent else "")
                if why:
                    yield from (Answer(item, why=why) for item in left)
                    return
                limit = budget.seconds(seconds)
                made = child.answer(limit)
                item = left.pop(0)
                if made is None:
                    silent += 1
                    yield Answer(item, why=f"no answer within {limit:.1f} s")
                    break
                budget.size -= len(made)
                yield Answer(item, *json.loads(made))
        finally:
            child.end()


def answer(call: Callable, budget: Budget, seconds: float = ANSWER_S) -> Answer:
    """Return the answer to one question."""
    return next(answers(lambda _: call(), [None], budget, seconds))


class Child:
    """A child that answers to items in turn."""

    def __init__(self, call: Callable, items: list):
        self.reader, writer = os.pipe()
        self.number = os.fork()
        if not self.number:
            work(call, items, writer)
        os.close(writer)
        self.data = b""
        with contextlib.suppress(OSError):
            os.setpgid(self.number, self.number)

    def answer(self, seconds: float) -> bytes | None:
        """Return the next answer in JSON, None if there is none in time."""
        end = time.monotonic() + seconds
        while True:
            if len(self.data) >= LENGTH.size:
                size = LENGTH.unpack_from(self.data)[0]
                if size > MOST_ANSWER:
                    return None
                if len(self.data) >= LENGTH.size + size:
                    made = self.data[LENGTH.size:LENGTH.size + size]
                    self.data = self.data[LENGTH.size + size:]
                    return made
            if not select.select([self.reader], [], [], max(0, end - time.monotonic()))[0]:
                return None
            more = os.read(self.reader, 1 << 20)
            if not more:
                return None
            self.data += more

    def end(self):
        """End the child and the programs that it has started; leave behind what does not end."""
        os.close(self.reader)
        with contextlib.suppress(OSError):
            os.killpg(self.number, signal.SIGKILL)
        end = time.monotonic() + END_S
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self.number, os.WNOHANG) == (0, 0) and time.monotonic() < end:
                time.sleep(0.005)


def work(call: Callable, items: list, writer: int):
    """Be a child: answer to the items, then end."""
    try:
        os.setpgid(0, 0)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        writer = alone(writer)
        for item in items:
            made = json.dumps(asked(call, item)).encode()
            os.write(writer, LENGTH.pack(len(made)))
            while made:
                made = made[os.write(writer, made):]
    finally:
        os._exit(0)


def alone(writer: int) -> int:
    """Close all that the caller has opened but for @writer; return its new number."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(writer, KEPT)
    for number in range(KEPT):
        os.dup2(null, number)
    os.closerange(KEPT + 1, 1 << 20)
    return KEPT


def asked(call: Callable, item) -> tuple[object, str]:
    """Return the value of a call and "", or None and why there is none."""
    try:
        return call(item), ""
    except OSError as error:
        return None, error.strerror or "it failed"
    except (CtlError, ToolError) as error:
        return None, str(error)
    except Exception as error:
        # Whatever a file holds, the report goes on.
        return None, f"not understood ({type(error).__name__})"


# What children call.

def text_of(path) -> str:
    """Return the text of a regular file, as long as is read. Opens nothing else: an open of a
    device or a pipe does something, or waits."""
    held = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(0, "it is no file")
        with open(f"/proc/self/fd/{held}", "rb", buffering=0) as file:
            return cut(read_some(file.read))
    finally:
        os.close(held)


def read_some(read: Callable[[int], bytes]) -> bytes:
    """Return what a file has, one byte more than is kept if that is not all."""
    data = b""
    while len(data) <= MOST_TEXT:
        more = read(MOST_TEXT + 1 - len(data))
        if not more:
            break
        data += more
    return data


def cut(data: bytes) -> str:
    """Return data as text, MOST_TEXT bytes at most."""
    text = data[:MOST_TEXT].decode(errors="replace").strip("\0\n ")
    return text + CUT if len(data) > MOST_TEXT else text


def names_in(folder) -> list[str]:
    """Return the names in a folder in order, [] if it is not there."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def output_of(command: list[str]) -> str:
    """Return what a program prints, and its status if that is not 0."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=with_sbin()) as program:
        text = cut(read_some(program.stdout.read))
        program.kill() if text.endswith(CUT) else None
    return text + (f"\n(status {program.returncode})" if program.returncode else "")
