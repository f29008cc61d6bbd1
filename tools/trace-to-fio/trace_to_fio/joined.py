# SPDX-License-Identifier: GPL-2.0
"""bzip2 and xz: all compressed streams of a file, one after the other. Python's own readers take a
second stream that is damaged for the end of the file."""
import bz2
import collections.abc
import lzma

# What may stand between and after streams, as tapes and xz have it.
PADDING = b"\0"


class Joined:
    """What is in compressed streams. @source: what they are read from; @make: makes the object of
    Python that decompresses one"""

    def __init__(self, source, make: collections.abc.Callable):
        self.source, self.make = source, make
        self.one = make()

    def read(self, size: int) -> bytes:
        """Return at most @size bytes; none at the end. EOFError: a stream ends early"""
        while True:
            data = b""
            if self.one.eof:
                data = self._after()
                if not data:
                    return b""
                self.one = self.make()
            elif self.one.needs_input:
                data = self.source.read()
                if not data:
                    raise EOFError("it ends early")
            found = self.one.decompress(data, size)
            if found:
                return found

    def _after(self) -> bytes:
        """Return the first bytes of the next stream; none if there is none."""
        rest = self.one.unused_data.lstrip(PADDING)
        while not rest:
            more = self.source.read()
            if not more:
                return b""
            rest = more.lstrip(PADDING)
        return rest

    def close(self):
        """Nothing is open but the source, which its owner closes."""


def bzip2(source) -> Joined:
    """Return what is in a file of bzip2."""
    return Joined(source, bz2.BZ2Decompressor)


def xz(source) -> Joined:
    """Return what is in a file of xz."""
    return Joined(source, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))
