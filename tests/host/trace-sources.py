#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# trace-to-fio reads compressed traces, archives, blktrace's binary files of several CPUs, any
# encoding and the standard input; several traces are merged; what is damaged, or a program that is
# missing, is an error of a line
# timeout: 120
# quick: host
import bz2
import gzip
import io
import lzma
import os
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest.mock

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from traces import TOOL, convert  # noqa: E402

LINES = "ts_us,dev,op,offset,size\n0,a,R,0,512\n7,a,W,512,512\n"
FOUND = [(0, "read", 0, 512), (7, "write", 512, 512)]


def zstd(data):
    """Compress as zstd does."""
    return subprocess.run(["zstd", "-cq"], input=data, stdout=subprocess.PIPE, check=True).stdout


COMPRESSIONS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


def archive(mode, files):
    """Return an archive of files, {name: content}."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as made:
        for name, content in files.items():
            member = tarfile.TarInfo(f"folder/{name}")
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return data.getvalue()


def compressed(folder):
    """Each compression is read, whatever the name, and a trace that ends early is refused."""
    path = folder / "trace"
    plain = LINES.encode()
    of = random.Random(1)
    many = plain + "".join(f"{at},a,R,{of.getrandbits(40) * 512},512\n"
                           for at in range(5000)).encode()
    for name, pack in COMPRESSIONS.items():
        path.write_bytes(pack(plain))
        check(convert(path).requests == FOUND, name)
        path.write_bytes(pack(plain[:40]) + pack(plain[40:]))
        check(convert(path).requests == FOUND, f"{name}, joined from two")
        path.write_bytes(pack(many)[:-9000])
        done = convert(path)
        check(done.status == 1 and done.said.startswith(f"trace-to-fio: {path}: ") and
              done.said.count("\n") == 1, f"{name}, cut: {done.said}")
        path.write_bytes(gzip.compress(pack(plain)))
        check(convert(path).requests == FOUND, f"{name} in gz")
        broken = bytearray(pack(plain))
        broken[len(broken) // 2] ^= 1
        for rest in (bytes(broken), b"something else"):
            path.write_bytes(pack(plain) + rest)
            done = convert(path)
            check(done.status == 1 and not done.output and done.said.count("\n") == 1,
                  f"{name}, damaged after the first part: {done.said}")
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        path.write_bytes(pack(plain[:40]) + bytes(512) + pack(plain[40:]) + bytes(512))
        check(convert(path).requests == FOUND, "zeros between the parts and behind them")
    path.write_bytes(zstd(plain))
    with unittest.mock.patch.dict(os.environ, PATH=str(folder)):
        with unittest.mock.patch("trace_to_fio.child.with_sbin", lambda: {"PATH": str(folder)}):
            done = convert(path)
    check(done.said == f"trace-to-fio: {path}: zstd is missing: install zstd\n", done.said)


def archives(folder):
    """All traces of an archive are read, also compressed ones; other files are named."""
    path = folder / "archive"
    other = b"ts_us,dev,op,offset,size\n3,b,R,0,512\n"
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        path.write_bytes(archive(mode, {
            "README.txt": b"What this is: a trace\n", "MD5.txt": b"", "a.csv": LINES.encode(),
            "b.csv.gz": gzip.compress(other), "._b.csv": b"from a Mac"}))
        done = convert(path)
        check(done.requests == [FOUND[0], (3, "read", 1024, 512), FOUND[1]],
              f"tar, {mode}: {done.requests} {done.said}")
        check(done.said == f"trace-to-fio: note: {path}:folder/README.txt, {path}:folder/MD5.txt: "
              "no trace, left out\n", done.said)
    path.write_bytes(archive("w", {"README.txt": b"nothing\n"}))
    done = convert(path)
    check(done.status == 1 and "none of the formats" in done.said, f"no trace: {done.said}")
    path.write_bytes(archive("w", {"a.csv": LINES.encode() * 100})[:1500])
    done = convert(path)
    check(done.status == 1 and done.said.count("\n") == 1, f"a cut archive: {done.said}")
    two = bytearray(archive("w", {"a.csv": LINES.encode(), "b.csv": other, "c.csv": other}))
    for content, what in ((two[:1024], "ends before a header"),
                          (two[:1024] + b"x" + two[1025:], "a damaged header"),
                          (two[:2048] + bytes(100) + two[2148:], "zeros in a header"),
                          (two[:1300], "ends in a header")):
        path.write_bytes(content)
        done = convert(path)
        check(done.status == 1 and not done.output and "damaged, or ends early" in done.said and
              done.said.count("\n") == 1, f"an archive, {what}: {done.said}")
    path.write_bytes(archive("w", {"README.txt": b"What: this\n", "a.csv": LINES.encode()}))
    check(convert("--format=csv", path).requests == FOUND, "a format that is named")
    path.write_bytes(archive("w", {"a.csv": LINES.encode(), "b.csv.gz": gzip.compress(other)[:20]}))
    done = convert(path)
    check(done.status == 1 and "b.csv.gz" in done.said and done.said.count("\n") == 1,
          f"a damaged member: {done.said}")
    # Members are counted, not listed.
    path.write_bytes(archive("w", {"a.csv": LINES.encode(),
                                   **{f"n{n}": b"x y\n" for n in range(20)}}))
    check("and 17 more: no trace" in convert(path).said, "20 other files")


def encodings(folder):
    """Byte order marks, ends of lines of Windows and broken characters do no harm."""
    path = folder / "trace"
    for content in (b"\xef\xbb\xbf" + LINES.encode(), LINES.replace("\n", "\r\n").encode("utf-16"),
                    LINES.encode("utf-16-be").join([b"\xfe\xff", b""]),
                    LINES.replace("a,", "\xfc,").encode("latin-1"),
                    LINES.replace("\n", "\n\n\n").encode(), LINES.rstrip("\n").encode(),
                    (LINES + "# the end\n" + LINES).encode()):
        path.write_bytes(content)
        done = convert(path)
        check(done.status == 0 and set(done.requests) == set(FOUND), f"{content[:30]}: {done.said}")


def events(cpu, *sectors):
    """Return the binary trace of a CPU: a queued read at each sector, 100 ns apart."""
    return b"".join(struct.pack("<IIQQIIIIIHH", 0x65617407, number, 100000 * sector, sector, 4096,
                                0x110001, 100, 8 << 20, cpu, 0, 0)
                    for number, sector in enumerate(sectors, 1))


def blktrace(folder):
    """The binary files of all CPUs are one trace, whichever are named."""
    (folder / "-x.blktrace.0").write_bytes(events(0, 8, 24))
    (folder / "-x.blktrace.1").write_bytes(events(1, 16))
    expected = [(us, "read", 4096 * at, 4096) for us, at in ((0, 1), (800, 2), (1600, 3))]
    for names in (("-x.blktrace.0",), ("-x.blktrace.1", "-x.blktrace.0")):
        done = convert(*(folder / name for name in names))
        check(done.requests == expected, f"{names}: {done.requests} {done.said}")
    # Files of one trace that blkparse does not read together have no common clock.
    one, two = folder / "-x.blktrace.0.gz", folder / "-x.blktrace.1.gz"
    tar = folder / "tar"
    one.write_bytes(gzip.compress(events(0, 8, 24)))
    two.write_bytes(gzip.compress(events(1, 16)))
    tar.write_bytes(archive("w", {"-x.blktrace.0": events(0, 8, 24),
                                  "-x.blktrace.1": events(1, 16)}))
    for paths in ((one, two), (folder / "-x.blktrace.0", two), (two, folder / "-x.blktrace.0"),
                  (tar,)):
        done = convert(*paths)
        check(done.status == 1 and not done.output and done.said.count("\n") == 1 and
              "unpack them into a folder" in done.said, f"{paths}: {done.said}")
    done = convert(one)
    check(done.requests == [expected[0], expected[2]] and "note: " in done.said and
          "the requests of one CPU" in done.said, f"one of them: {done.said}")
    (folder / "links").mkdir()
    for cpu in "01":
        (folder / "links" / f"l.blktrace.{cpu}").symlink_to(folder / f"-x.blktrace.{cpu}")
    check(convert(folder / "links/l.blktrace.0").requests == expected, "links of other names")
    (folder / "one").write_bytes(gzip.compress(events(0, 8, 24)))
    check(convert(folder / "one").requests == [expected[0], expected[2]], "compressed, one CPU")
    (folder / "one").write_bytes(events(0, 8, 24) + b"no record of blktrace" * 10)
    done = convert(folder / "one")
    check(done.status == 1 and "blkparse: Bad magic" in done.said, f"damage: {done.said}")
    (folder / "one").write_bytes(events(0, 8, 24))
    with unittest.mock.patch("trace_to_fio.child.with_sbin", lambda: {"PATH": str(folder)}), \
            unittest.mock.patch.dict(os.environ, PATH=str(folder)):
        done = convert(folder / "one")
    check(done.said.endswith("blkparse is missing: install blktrace\n"), done.said)


def several(folder):
    """Traces are merged by time; a trace without devices is one device."""
    for name, lines in (("one", "0,0,512\n9,512,512\n"), ("two", "4,0,512\n")):
        (folder / name).write_text(lines)
    done = convert("--op=read", "--columns=time_us,offset,size", folder / "one", folder / "two")
    check(done.requests == [(0, "read", 0, 512), (4, "read", 1024, 512), (9, "read", 512, 512)],
          f"two traces: {done.requests}")
    done = convert(folder / "one", folder / "none")
    check(done.status == 1, f"one that is not there: {done.said}")
    for path, said in ((folder / "none", "No such file"), (folder, "Is a directory"),
                       ("a\0b", "null")):
        done = convert(path)
        check(done.status == 1 and said in done.said and done.said.count("\n") == 1, done.said)


def standard_input():
    """A compressed trace may come through a pipe."""
    done = subprocess.run([TOOL / "trace-to-fio", "-"], input=gzip.compress(LINES.encode()),
                          stdout=subprocess.PIPE, check=True)
    check(done.stdout.count(b" read ") == done.stdout.count(b" write ") == 1, "standard input")


def closed(folder):
    """Streams that the caller closed are told in a line."""
    path = folder / "closed"
    path.write_text(LINES)
    tool = f"{TOOL / 'trace-to-fio'}"
    for words, said in ((f"{path} >&-", "standard output is closed"),
                        (f"--info {path} >&-", "standard output is closed"),
                        (f"--json --picture={folder}/p.svg {path} >&-",
                         "standard output is closed"),
                        ("- <&-", "standard input is closed")):
        done = subprocess.run(["sh", "-c", f"{tool} {words}"], capture_output=True, text=True,
                              check=False)
        check(done.returncode == 1 and done.stderr == f"trace-to-fio: {said}\n" and not done.stdout,
              f"{words}: {done.stderr}")
    for words in (f"{path} <&-", f"{path} 2>&-", f"--picture={folder}/p.svg {path} >&-"):
        done = subprocess.run(["sh", "-c", f"{tool} {words}"], capture_output=True, check=False)
        check(done.returncode == 0, f"{words}: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for test in (compressed, archives, encodings, blktrace, several, closed):
            test(folder)
    standard_input()


if __name__ == "__main__":
    main()
