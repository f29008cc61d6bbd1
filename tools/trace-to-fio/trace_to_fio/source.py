# SPDX-License-Identifier: GPL-2.0
"""Opening traces: decompression, members of archives, blktrace's binary files through blkparse."""
import collections.abc
import gzip
import lzma
import pathlib
import re
import sys
import tarfile
import zlib

from ssd_probe.output import plain

from trace_to_fio import NoTrace, TraceError
from trace_to_fio.child import Child
from trace_to_fio.joined import bzip2, xz

DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError)
# Compressions within each other, as a .csv.gz in a .tar.gz.
LAYERS = 4
BLOCK = 1 << 20
# {first bytes: function from (stream, name) to what can be read}.
COMPRESSIONS = {
    b"\x1f\x8b": lambda stream, _: gzip.GzipFile(fileobj=stream, mode="rb"),
    b"BZh": lambda stream, _: bzip2(stream),
    b"\xfd7zXZ\0": lambda stream, _: xz(stream),
    b"\x28\xb5\x2f\xfd": lambda stream, name: Child(["zstd", "-dcq"], name, stream),
    # Records of blktrace, little-endian and big-endian.
    b"\x07tae": lambda stream, name: Child(["blkparse", "-q", "-i", "-"], name, stream),
    b"eat\x07": lambda stream, name: Child(["blkparse", "-q", "-i", "-"], name, stream),
}
BLKTRACE = (b"\x07tae", b"eat\x07")
# What can be told from its first bytes, but not read.
UNREADABLE = {
    b"\x17\x08\x44tracing": "is a binary trace of trace-cmd: trace-cmd report -i FILE >trace.txt",
    b"PERFILE2": "is a binary trace of perf: perf script -i FILE >trace.txt",
    b"PK\x03\x04": "is a zip archive: unzip it first",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive: unpack it first",
    b"Rar!": "is a rar archive: unpack it first",
    b"\x04\x22\x4d\x18": "is compressed by lz4: lz4 -d FILE first",
    b"PAR1": "is a Parquet file: convert it to CSV first",
    b"fio version": "is a replay log of fio already",
}
PER_CPU = re.compile(r"(.+)\.blktrace\.\d+")


class Stream:
    """Bytes of a file or of what decompresses them, of which the first can be looked at. @member:
    it is a file of an archive"""

    def __init__(self, raw, name: str, member: bool = False):
        self.raw, self.name, self.member = raw, name, member
        self.seen = b""

    def _fetch(self, size: int) -> bytes:
        try:
            return self.raw.read(size)
        except DAMAGE as error:
            raise TraceError(f"{self.name}: {plain(str(error)) or 'it ends early'}") from None

    def head(self, size: int) -> bytes:
        """Return the next @size bytes, or fewer at the end, and keep them for read()."""
        while len(self.seen) < size:
            more = self._fetch(size - len(self.seen))
            if not more:
                break
            self.seen += more
        return self.seen[:size]

    def read(self, size: int = BLOCK) -> bytes:
        """Return at most @size bytes; none at the end."""
        if self.seen:
            found, self.seen = self.seen[:size], self.seen[size:]
            return found
        return self._fetch(size)

    def close(self):
        """End what decompresses."""
        self.raw.close()


def unpacked(stream: Stream) -> Stream:
    """Return the stream without its compressions."""
    for _ in range(LAYERS):
        head = stream.head(16)
        for magic, unpack in COMPRESSIONS.items():
            if head.startswith(magic):
                stream = Stream(unpack(stream, stream.name), stream.name, stream.member)
                break
        else:
            return stream
    raise TraceError(f"{stream.name}: compressed more than {LAYERS - 1} times")


def members(stream: Stream) -> collections.abc.Iterator[Stream]:
    """Yield the files of an archive, or the stream itself. Each is read before the next one."""
    stream = unpacked(stream)
    if stream.head(512)[257:262] != b"ustar":
        yield stream
        return
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                # macOS adds files of this name.
                if member.isreg() and not pathlib.PurePath(member.name).name.startswith("._"):
                    file = archive.extractfile(member)
                    name = f"{stream.name}:{plain(member.name)}"
                    yield unpacked(Stream(file, name, member=True))
    except DAMAGE as error:
        raise TraceError(f"{stream.name}: {plain(str(error))}") from None


def opened(path: str, done: set[str]) -> Stream | None:
    """Return the stream of a file, '-' for the standard input; None if a trace of blktrace in
    several files, one a CPU, is in @done already."""
    if path == "-":
        return Stream(sys.stdin.buffer, "standard input")
    name = plain(path)
    try:
        file = open(path, "rb")
    except (OSError, ValueError) as error:
        raise TraceError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    stream = Stream(file, name)
    found = PER_CPU.fullmatch(pathlib.Path(path).name)
    if not found or not stream.head(4).startswith(BLKTRACE):
        return stream
    stream.close()
    folder = str(pathlib.Path(path).resolve().parent)
    if f"{folder}/{found[1]}" in done:
        return None
    done.add(f"{folder}/{found[1]}")
    return Stream(Child(["blkparse", "-q", "-D", folder, "-i", found[1]], name), name)


def streams(paths: list[str]) -> collections.abc.Iterator[Stream]:
    """Yield the streams of all files and of the members of archives, decompressed."""
    done: set[str] = set()
    for path in paths:
        stream = opened(path, done)
        if stream:
            yield from members(stream)
            stream.close()


def refuse_unreadable(stream: Stream):
    """Raise an error if the stream is known to be of a kind that has to be converted first."""
    head = stream.head(16)
    for magic, advice in UNREADABLE.items():
        if head.startswith(magic):
            raise NoTrace(f"{stream.name} {advice.replace('FILE', stream.name)}")
