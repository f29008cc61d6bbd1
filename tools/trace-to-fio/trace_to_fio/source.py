# SPDX-License-Identifier: GPL-2.0
"""Opening traces: decompression, members of archives, blktrace's binary files through blkparse."""
import collections.abc
import gzip
import lzma
import os
import pathlib
import re
import sys
import tarfile
import zlib

from ssd_common.output import plain

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
    b"\xc1\x1f\xfc\xc1": "is a binary trace of LTTng (CTF): babeltrace2 FOLDER >trace.txt",
    b"\x57\x1d\xd1\x75": "is of a binary trace of LTTng (CTF): babeltrace2 FOLDER >trace.txt",
    b"PERFILE2": "is a binary trace of perf: perf script -i FILE >trace.txt",
    b"PK\x03\x04": "is a zip archive: unzip it first",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive: unpack it first",
    b"Rar!": "is a rar archive: unpack it first",
    b"\x04\x22\x4d\x18": "is compressed by lz4: lz4 -d FILE first",
    b"PAR1": "is a Parquet file: convert it to CSV first",
    b"fio version": "is a replay log of fio already",
}
# A file of blktrace for one CPU, and what follows its name if it is compressed.
PER_CPU = re.compile(r"(.+)\.blktrace\.\d+(\.[A-Za-z]\w*)*", re.ASCII)
ONE_CLOCK = "the files of all CPUs have one clock only if blkparse reads them together"


class Stream:
    """Bytes of a file or of what decompresses them, of which the first can be looked at. @member:
    it is a file of an archive, @notes: what the user has to know of it"""

    def __init__(self, raw, name: str, member: bool = False, notes: tuple[str, ...] = ()):
        self.raw, self.name, self.member, self.notes = raw, name, member, notes
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


class Member(tarfile.TarInfo):
    """A header of an archive. Python takes a damaged one, or none, for the archive's end."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Return the next header. ReadError: it is damaged"""
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:
            raise
        except tarfile.HeaderError:
            raise tarfile.ReadError("the archive is damaged, or ends early") from None


class Sources:
    """Opens the files of a call.

    @whole: traces of blktrace, without the number of a CPU, that are read with the files of all
    @alone: those of which one file is read, from an archive or decompressed
    """

    def __init__(self):
        self.whole: set[str] = set()
        self.alone: set[str] = set()

    def streams(self, paths: list[str]) -> collections.abc.Iterator[Stream]:
        """Yield the streams of all files and of the members of archives, decompressed."""
        for path in paths:
            stream = self._opened(path)
            if stream:
                yield from self._members(stream)
                stream.close()

    def _opened(self, path: str) -> Stream | None:
        """Return the stream of a file, '-' for the standard input; None if it is of a trace of
        blktrace that is read already."""
        if path == "-":
            # None if the caller closed it.
            if not sys.stdin:
                raise TraceError("standard input is closed")
            return Stream(sys.stdin.buffer, "standard input")
        name = plain(path)
        try:
            file = open(path, "rb")
        except (OSError, ValueError) as error:
            raise TraceError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
        stream = Stream(file, name)
        trace = trace_of(path)
        if not trace or not stream.head(4).startswith(BLKTRACE):
            return stream
        stream.close()
        if trace in self.alone:
            raise second_cpu(name)
        if trace in self.whole:
            return None
        self.whole.add(trace)
        folder, base = os.path.split(trace)
        return Stream(Child(["blkparse", "-q", "-D", folder, "-i", base], name), name)

    def _members(self, stream: Stream) -> collections.abc.Iterator[Stream]:
        """Yield the files of an archive, or the stream itself. Each is read before the next one."""
        stream = self._unpacked(stream)
        if stream.head(512)[257:262] != b"ustar":
            yield stream
            return
        try:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=Member) as archive:
                for member in archive:
                    # macOS adds files of this name.
                    if member.isreg() and not pathlib.PurePath(member.name).name.startswith("._"):
                        file = archive.extractfile(member)
                        name = f"{stream.name}:{plain(member.name)}"
                        yield self._unpacked(Stream(file, name, member=True))
        except DAMAGE as error:
            raise TraceError(f"{stream.name}: {plain(str(error))}") from None

    def _unpacked(self, stream: Stream) -> Stream:
        """Return the stream without its compressions."""
        for _ in range(LAYERS):
            head = stream.head(16)
            for magic, unpack in COMPRESSIONS.items():
                if head.startswith(magic):
                    notes = self._of_one_cpu(stream.name) if magic in BLKTRACE else ()
                    stream = Stream(unpack(stream, stream.name), stream.name, stream.member, notes)
                    break
            else:
                return stream
        raise TraceError(f"{stream.name}: compressed more than {LAYERS - 1} times")

    def _of_one_cpu(self, name: str) -> tuple[str, ...]:
        """Return what the user has to know of a file of blktrace that blkparse reads alone. The
        times of a second one of the same trace would be wrong."""
        trace = trace_of(name)
        if not trace:
            return ()
        if trace in self.whole | self.alone:
            raise second_cpu(name)
        self.alone.add(trace)
        return ("the requests of one CPU; if the trace has files of more, unpack them into a "
                "folder",)


def trace_of(path: str) -> str | None:
    """Return the folder and the name of the trace of which a file is one CPU's, by its name; None
    if it is no such file."""
    found = PER_CPU.fullmatch(pathlib.Path(path).name)
    return found and str(pathlib.Path(path).parent.resolve() / found[1])


def second_cpu(name: str) -> TraceError:
    """Return the error for a second file of a trace of blktrace."""
    return TraceError(f"{name}: {ONE_CLOCK}: unpack them into a folder")


def refuse_unreadable(stream: Stream):
    """Raise an error if the stream is known to be of a kind that has to be converted first."""
    head = stream.head(16)
    for magic, advice in UNREADABLE.items():
        if head.startswith(magic):
            raise NoTrace(f"{stream.name} {advice.replace('FILE', stream.name)}")
    if stream.name.lower().endswith(".etl"):
        raise NoTrace(f"{stream.name} is a binary trace of Windows (ETW): there, "
                      "xperf -i FILE.etl -o trace.txt -a dumper")
