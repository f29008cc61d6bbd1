#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# trace-to-fio reads each format that it names: the format is found by the records, columns by the
# header's names or by --columns; what may be meant in two ways is said, with the option that
# decides; what cannot be read is an error of a few lines
# timeout: 120
# quick: host
import pathlib
import random
import struct
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "lib"))

import checks  # noqa: E402  (in a folder added above)
from checks import check, run  # noqa: E402
from trace_samples import PAIR, R, SAMPLES, SECTOR, W  # noqa: E402
from traces import convert  # noqa: E402

from trace_to_fio.formats.known import all_formats  # noqa: E402

TRACES = TESTS / "host/traces"
# Bytes of a sample that is also read with damage.
MOST = 1 << 16


class Files:
    """Makes files of lines."""

    def __init__(self, folder):
        self.folder, self.number = pathlib.Path(folder), 0

    def __call__(self, content):
        self.number += 1
        path = self.folder / f"t{self.number}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def samples(file):
    """Each format's sample gives its requests, and by --format the same."""
    check(set(SAMPLES) | {"blkparse-f"} == set(all_formats()), "each format has a sample")
    for name, of_format in SAMPLES.items():
        for content, expected in of_format:
            path = file(content)
            done = convert(path)
            check(done.status == 0 and done.requests == expected,
                  f"{name}: {done.requests} {done.said}")
            done = convert("--format", name, path)
            check(done.requests == expected, f"--format {name}: {done.requests} {done.said}")


def vscsi(file):
    """Both versions of the binary records are told apart and read; a cut one is an error."""
    rows = [(0x28, 4096, 2048, 1000), (0x12, 512, 0, 1100), (0x8a, 8192, 4096, 1300)]
    first = b"".join(struct.pack("<IIIHHQQ", 1, size, 1, code, 1 << 8, block, time)
                     for code, size, block, time in rows)
    second = b"".join(struct.pack("<HHIIIQQQ", code, 2 << 8, 1, size, 1, block, time, 5)
                      for code, size, block, time in rows)
    for content in (first, second):
        done = convert(file(content))
        check(done.requests == PAIR and "1 other commands" in done.said,
              f"vscsi: {done.requests} {done.said}")
    done = convert("--time-unit=ms", file(first))
    check(done.status == 1 and "times of vscsi are in us" in done.said, done.said)
    done = convert(file(first[:-3]))
    check(done.status == 1 and "ends within record 3" in done.said, f"a cut record: {done.said}")


def about(requests, expected):
    """Return true if requests are as expected, but for 1 us."""
    return [each[1:] for each in requests] == [each[1:] for each in expected] and \
        all(abs(each[0] - meant[0]) <= 1 for each, meant in zip(requests, expected, strict=True))


def inputs():
    """Inputs that once failed give the requests that they hold."""
    spc = [(0, W, 20941264 * SECTOR, 8192), (2335, W, 20939840 * SECTOR, 8192)]
    one = PAIR[:1]
    for name, words, expected in (
            ("blkparse-q.txt", (), PAIR), ("blkparse-s.txt", (), PAIR),
            ("x.blktrace.0", (), PAIR), ("blkparse-capture.txt", (), one),
            ("blkparse-comment.txt", (), one), ("blkparse-passthrough.txt", (), one),
            ("blkparse-passthrough.txt", ("--event=D",),
             [(0, *PAIR[0][1:]), (299, *PAIR[1][1:])]),
            ("blkparse-passthrough.txt", ("--event=C",), PAIR),
            ("blkparse-passthrough.txt", ("--event=I",), []),
            # 8,0 is before 8,16, and ends at 4112 sectors.
            ("blkparse-two-runs.txt", (), [PAIR[0], (0, R, (4112 + 9999) * SECTOR, 4096), PAIR[1],
                                           (300, W, (4112 + 5000) * SECTOR, 8192)]),
            ("alibaba.csv", (), [(0, R, 126703661056, 4096),
                                 (380, W, 126703665152 + 19496058880, 77824)]),
            ("biosnoop.txt", (), [(0, W, 26236512 * SECTOR, 8192)]),
            ("blkparse-f.txt", ("--op=read", "--blkparse-format=%5T.%9t, %p, %C, %a, %S, %n, %N\n"),
             one),
            ("fiu.blkparse", (), [(0, W, 904265560 * SECTOR, 4096),
                                  (0, W, 904265568 * SECTOR, 4096)]),
            ("ftrace.txt", (), [(0, R, 1000 * SECTOR, 4096)]),
            # Device 3 is before 4.
            ("mqsim.trace", (), [(0, W, (197570586 + 264719034) * SECTOR, 8192),
                                 (315, R, 197570570 * SECTOR, 8192)]),
            ("own.csv", (), [(0, R, 8192000, 4096)]), ("msr.csv", (), [(0, W, 7014912, 4096)]),
            *((name, (), spc) for name in ("f.spc", "f.spc.gz", "f.spc.bz2", "f.spc.xz",
                                           "f.spc.zst", "t.tar.gz"))):
        done = convert(*words, TRACES / name)
        check(about(done.requests, expected), f"{name} {words}: {done.requests} {done.said}")
        check(done.status == (0 if expected else 1), f"{name} {words}: status {done.status}")


def told(file):
    """What may be meant in two ways is said with the option that decides."""
    sectors = "13.191135 0 2048 8 1\n13.491135 0 4096 16 0\n"
    whole = "938513000 0 2048 8 1\n938813000 0 4096 16 0\n"
    two = (TRACES / "blkparse-two-runs.txt")
    for path, words, said in (
            (file(whole), (), "may be traces for DiskSim, ASCII (ms, sectors) (--format disksim)"),
            (file(sectors), (), ""),
            (two, (), "2 runs of blkparse, replayed together"),
            (TRACES / "ftrace.txt", (), "without event Q, each D (issued) is a request (--event)"),
            (file("time_s,op,lba,size\n0,R,8,8\n1,W,16,8\n"), (),
             "'lba' is taken as sectors of 512 bytes, 'size' too (--columns)"),
            (file("time_s,op,lba,size\n0,R,8,4096\n1,W,16,512\n"), (),
             "'size' as bytes (--columns)"),
            *((file(content), (), "not all requests begin and end at multiples of 512 bytes: are "
               "those sectors? (--columns sector, sectors)") for content in (
                   "0,R,126703,8,1577808000\n", "0,20941264,16,W,0.55\n",
                   "time_us,op,address,size\n1,R,1024,8\n")),
            (file("time_us,op,offset,size_blocks\n1,R,1024,8\n"), (),
             "'size_blocks' is taken as blocks of 512 bytes (--columns)"),
            (file("time_us,op,lba,size_blocks\n1,R,1024,8\n"), (),
             "'lba' is taken as sectors of 512 bytes, 'size_blocks' too (--columns)"),
            (TRACES / "x.blktrace.0", (), "left out: 1 flushes"),
            (file((TRACES / "blkparse-capture.txt").read_text() + "CPU0 (sda):\n"
                  "Skips: 3 forward (900 -  12.0%)\n"), (), "left out: 1 gaps of lost events"),
            (file("CPU:1 [LOST 28 EVENTS]\nCPU:0 [EVENTS DROPPED]\n"
                  " a-1 [000] .... 1.000000: block_bio_queue: 8,0 R 2048 + 8 [a]\n"), (),
             "left out: 2 gaps of lost events"),
            (TRACES / "blkparse-passthrough.txt", ("--event=C",),
             "left out: 1 passthrough commands, 1 ends of flushes")):
        done = convert(*words, path)
        check(done.status == 0 and said in done.said and done.said.count("\n") == bool(said),
              f"said: {done.said}")
        check(not convert("-q", *words, path).said, "nothing with --quiet")
    done = convert("--runs=after", two)
    check([request[0] for request in done.requests] == [0, 300, 300, 600],
          f"one run after the other: {done.requests}")
    one = ("Input file a.blktrace.0 added\nInput file a.blktrace.1 added\n"
           "  8,0    1        1     0.000100000   697  Q   R 2048 + 8 [fio]\n"
           "  8,0    1        2     0.000400000   697  Q   W 4096 + 16 [fio]\n")
    for words, times in (((), [0, 0, 300, 300]), (("--runs=after",), [0, 300, 400, 700])):
        done = convert(*words, file(one * 2))
        check([request[0] for request in done.requests] == times and "2 runs" in done.said,
              f"runs without sums, {words}: {done.requests} {done.said}")
    check(not convert(file(one)).said, "several binary files of one run")
    done = convert("--format=disksim", file(whole))
    check([request[0] for request in done.requests] == [0, 300000 * 1000],
          f"--format disksim: {done.requests}")
    done = convert("--time-unit=us", file(whole))
    check([request[0] for request in done.requests] == [0, 300000], f"--time-unit: {done.requests}")
    done = convert("--format=csv", "--time-unit=ms", file("0,a,R,0,512\n5,a,R,512,512\n"))
    check([request[0] for request in done.requests] == [0, 5000],
          f"--time-unit without a header: {done.requests}")
    for name in ("blkparse", "ftrace", "biosnoop", "fiu"):
        for words in ((), (f"--format={name}",)):
            done = convert("--time-unit=ms", *words, file(SAMPLES[name][0][0]))
            check(done.status == 1 and f"the times of {name} are in" in done.said and
                  done.said.count("\n") == 1, f"--time-unit with {name}: {done.said}")


def columns(file):
    """--columns and --op say what a trace does not."""
    done = convert("--align=1g", file(f"ts_us,dev,op,offset,size\n0,a,R,512,{1 << 31}\n"))
    check(done.requests == [(0, R, 0, 3 << 30)], f"the largest request: {done.requests}")
    done = convert(file("ts_us,dev,op,offset,size\n1000,a,R,0x100000,0x1000\n"
                        "1300,a,W,0x200000,0X2000\n"))
    check(done.requests == PAIR, f"hexadecimal: {done.requests} {done.said}")
    for words, content in (
            (("--columns=time_ms,sector,size,is_write",), "1,2048,4096,0\n1.3,4096,8192,1\n"),
            (("--columns=-,time_s,op,offset*4096,size*4096",),
             "x 0.001 R 256 1\nx 0.0013 WSM 512 2\n"),
            (("--columns=time,dev,is_read,sector,sectors", "--time-unit=us"),
             "when;dev;read;lba;n\n1000;a;1;2048;8\n1300;a;0;4096;16\n"),
            (("--columns=time_ns,scsi,sector,size",), "1000000 28 2048 4096\n"
             "1300000 2a 4096 8192\n")):
        done = convert(*words, file(content))
        check(done.requests == PAIR, f"{words}: {done.requests} {done.said}")
    done = convert("--columns=time_us,offset,size", "--op=write", file("0,0,512\n5,512,512\n"))
    check(done.requests == [(0, W, 0, 512), (5, W, 512, 512)], f"--op: {done.requests} {done.said}")
    words = "--blkparse-format=%D %3c %d%S+%n:%T.%9t\n"
    done = convert(words, file("  8,0    0   R2048+8:    0.001000000\n"
                               "  8,0    0  WS4096+16:    0.001300000\n"))
    check(done.requests == PAIR, f"{words}: {done.requests} {done.said}")


def by_event(file):
    """The formats of blkparse -F are read, beside that of -f or the default output."""
    option = "--blkparse-event-format"
    for given, words, left in (
            (("Q,%T.%9t %S %n %d %D\\n", "C,%T.%9t C %S %n %d\\n"), (), "1 events without sectors"),
            (("C,%T.%9t C %S %n %d\\n",), (), "1 flushes"),
            (("P,plug\\n", "Q,%a %T.%9t %S+%n %d\\n", "D,%a %T.%9t %S+%n %d\\n"), (),
             "1 events without sectors"),
            (("D,%T.%9t %N %S %d\\n",), ("--event=D",), "1 events without sectors"),
            (("D,%T.%9t %N %S %d\\n", "-f %a %D %3d %8S %4n %5T.%9t\\n"), (), "1 events")):
        each = [word.removeprefix("-f ") for word in given]
        blkparse = [part for word, text in zip(given, each, strict=True)
                    for part in ("-f" if word != text else "-F", text)]
        ours = [f"{option if word == text else '--blkparse-format'}={text}"
                for word, text in zip(given, each, strict=True)]
        path = file(run("blkparse", "-q", "-i", str(TRACES / "x.blktrace.0"), *blkparse))
        done = convert(*ours, *words, path)
        check(about(done.requests, PAIR) and left in done.said,
              f"blkparse {given}: {done.requests} {done.said}")
    path = file(run("blkparse", "-q", "-i", str(TRACES / "x.blktrace.0"), "-F",
                    "Q,%T.%9t %S %n %d\\n"))
    for words, said in (((), "for blkparse -F say the format strings"),
                        (("D,%T %S %n",), "D has no %d"), (("D,%T %d %n",), "D needs %S"),
                        (("Q,%T %S %n %d", "C,%T %S %n %d"), "C is that of Q without %a"),
                        (("Q %T",), "is not as in"), (("Q,%X",), "no field %X")):
        done = convert(*(f"{option}={word}" for word in words), path)
        check(done.status in (1, 2) and said in done.said and not done.output,
              f"{words}: {done.said}")


def known_texts(file):
    """What people take for a trace is named, with what to do."""
    log = "0, 2640, 0, 4096, 1048576, 0\n1, 3000, 1, 8192, 2097152, 0x0\n"
    for content, said in (
            ('{"type": "attached_probes", "data": {"probes": 1}}\n'
             '{"type": "printf", "data": "1,2,R\\n"}\n', "JSON of bpftrace: jq"),
            ('{\n  "fio version" : "fio-3.33",\n', "a result of fio as JSON"),
            ('note: both engines\n{\n  "fio version" : "fio-3.33",\n', "a result of fio as JSON"),
            ("x: (g=0): rw=read, bs=(R) 4096B\nfio-3.33\nStarting 1\n", "a result of fio, "),
            ("3;fio-3.33;x;0;0;1024\n", "a result of fio, "), (log, "a log of fio"),
            ('[{"time": 1}]\n', "this is JSON: "), ('\n{\n "a": 1\n', "this is JSON: "),
            ("Event Name,       Type,  Event ID\nDiskIo, Read, 0\n", "CSV of tracerpt"),
            ('"Time of Day","Process Name","PID","Operation"\n', "of Process Monitor"),
            ('openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY) = 3\nclose(3) = 0\n', "of strace"),
            ("12 10:00:00.1 pread64(3, \"\", 4096, 0) = 4096\n", "of strace"),
            ("Linux 6.1 (a)\nDevice            r/s     rkB/s\nsda 1 2\n", "of iostat"),
            ("   8       0 sda 1 2 3 4 5 6 7\n", "/proc/diskstats"),
            ("<?xml version='1.0'?>\n", "XML or HTML"),
            ("version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 9\n", "of Git LFS"),
            # The header is known, the records are not.
            ("ts_us,dev,op,offset,size\n0,a,WRITE_10,0,512\n", "line 2: neither read nor write: "
             "'WRITE_10'"),
            ("# mine\nts_us;op;offset;size\n0,5;R;0;512\n", "line 3: ts_us is no time: '0,5'"),
            (" fio-697 [001] ..... 100.0: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1\n",
             "without those of the block layer"),
            (b"\xc1\x1f\xfc\xc1\0\0", "binary trace of LTTng")):
        path = file(content)
        done = convert(path)
        check(done.status == 1 and not done.output and said in done.said and
              done.said.count("\n") == 1, f"{said}: {done.said}")
    done = convert("--columns=time_ms,-,is_write,size,offset,-", file(log))
    check(done.requests == [(0, R, 1048576, 4096), (1000, W, 2097152, 8192)],
          f"a log of fio: {done.requests} {done.said}")
    path = file(b"\0\0\1\0 more").rename(file("").with_suffix(".etl"))
    check("binary trace of Windows (ETW)" in convert(path).said, convert(path).said)


def refused(file):
    """What cannot be read is an error of five lines at most, which says what to do."""
    numbers = "".join(f"{at},{at * 7},{at % 5},{at * 3}\n" for at in range(5000))
    late = "ts_us,dev,op,offset,size\n" + "0,a,R,0,512\n" * 2000 + "something else\n" * 5000
    for words, content, said in (
            ((), "", "is empty"), ((), "\n\n", "is empty"),
            ((), numbers, "none of the formats can read it; line 1: '0,0,0,0'"),
            ((), "1000,2048,4096,0,0\n", "none of the formats can read it"),
            ((), "\x1b[31mred\n", "line 1: '?[31mred'"),
            ((), bytes(range(256)) * 50, "binary file of an unknown format"),
            ((), b"PK\x03\x04rest", "unzip it first"),
            ((), b"\x17\x08\x44tracing6\0", "trace-cmd report -i"),
            ((), "fio version 2 iolog\n/dev/a add\n", "a replay log of fio already"),
            ((), "TIME(ms)     COMM             PID    LAT(ms)\n611  bash   4179  10\n",
             "not printed sector and size"),
            ((), "COMM PID TYPE DEV   BLOCK BYTES LATms\na    1   R    202,1 2048  4096  0.6\n",
             "iosnoop has not printed times: record with iosnoop -s"),
            ((), "Attaching 1 probe...\nsector,nr_sector,rwbs\n2048,8,R\n",
             "the header has no time: --columns names them"),
            ((), "Attaching 1 probe...\n2048 8 R\n", "line 2: '2048 8 R'"),
            ((), (TRACES / "blkparse-f.txt").read_text(), "this seems to be blkparse -f"),
            (("--blkparse-format=%T %a %S %n",), "0 Q 1 1\n", "has no %d"),
            (("--blkparse-format=%T %a %d %S",), "0 Q R 1\n", "needs %n or %N"),
            ((), "timestamp,op,offset,size\n1,R,0,512\n", "the unit of 'timestamp': --time-unit"),
            ((), "time_s,rw,lba,bytes\n1,0,0,512\n",
             "--columns time_s,is_read,sector,size, or is_write"),
            (("--format=csv",), "time_s,op,size\n1,R,512\n", "the header has no offset or sector"),
            (("--columns=time_s,op,size",), "1,R,512\n", "--columns has no offset or sector"),
            (("--columns=time_s,op,size,offset,offset",), "1,R,512,0,0\n", "has offset twice"),
            (("--columns=time_s,op,size,place",), "1,R,512,0\n", "'place' is none of"),
            ((), late, "at least 2001 lines were malformed; the format csv was a guess"),
            (("--format=msr",), "ts_us,dev\n" + "0,a,R,0,512\n" * 5000,
             "at least 1000 lines were malformed"),
            (("--device=b",), "ts_us,dev,op,offset,size\n0,a,R,0,512\n", "no request of b: --info"),
            (("--event=X",), (TRACES / "blkparse-q.txt").read_text(), "no request with event X"),
            ((), f"ts_us,dev,op,offset,size\n0,a,R,{1 << 63},512\n", "beyond any drive"),
            ((), "ts_us,dev,op,offset,size\n0,a,R,0,99999999999\n", "99999999999 bytes exceed"),
            ((), f"ts_us,dev,op,offset,size\n0,a,R,0,512\n{10**22},a,R,0,512\n", "70 years"),
            ((), "ts_us,dev,op,offset,size\n0,a,R,0,512\n" + "x" * (1 << 22), "is longer than"),
            (("--columns=time_s,op,offset,size", "--format=msr"), "1,R,0,1\n", "not with msr"),
            ((), f"ts_us,dev,op,offset,size\n0,a,R,0,{(1 << 31) + 1}\n", "exceed 2 GiB"),
            (("--capacity=1t",), f"ts_us,dev,op,offset,size\n0,a,R,0,{1 << 32}\n", "2 GiB"),
            (("--capacity=4k",), "ts_us,dev,op,offset,size\n0,a,R,0,8192\n", "exceed --capacity"),
            (("--align=2g",), "ts_us,dev,op,offset,size\n0,a,R,0,512\n", "at most 1G"),
            *((("--compress", factor), "ts_us,dev,op,offset,size\n0,a,R,0,512\n9,a,R,0,512\n",
               "longer than fio can count") for factor in ("1e-300", "5e-324", "9e-16")),
            (("--picture=a.gif",), "1,R,0,1\n", "has to end in .svg, .png, .pdf")):
        done = convert(*words, file(content))
        check(done.status in (1, 2) and not done.output and said in done.said and
              done.said.count("\n") <= 5 and "\x1b" not in done.said,
              f"{said}: {done.said or done.output[:80]}")


def mutated(content, of):
    """Return a sample with a part cut, repeated, or replaced by something of a trace."""
    data = bytearray(content.encode())
    for _ in range(of.randrange(1, 4)):
        at = of.randrange(len(data) + 1)
        end = at + of.randrange(20)
        part = of.choice((b"", data[at:end] * 3, b'"', b"\r", b",,", b"\0", b"\xff", b" -1 ",
                          b"1e400", b"9" * 30, b"NaN", b"\n", b"time_s,op,lba,size\n", b"Q",
                          b"(", b"#"))
        data[at:end] = part
    return bytes(data)


def anything(file):
    """Whatever a trace has in it, it is converted or refused; nothing else ends the program."""
    of = random.Random(checks.SEED)
    count = 0
    for name, of_format in SAMPLES.items():
        for content, _ in of_format:
            for _ in range(12 if len(content) < MOST else 0):
                broken = mutated(content, of)
                for words in ((), (f"--format={name}",), ("--columns=time_s,dev,op,offset,size",)):
                    done = convert(*words, file(broken))
                    count += 1
                    said = [line for line in done.said.splitlines() if ": note: " not in line]
                    if done.status not in (0, 1) or len(said) > 5:
                        check(False, f"{words} {broken}: {done.status} {done.said}")
    check(True, f"{count} broken traces")


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = Files(folder)
        samples(file)
        vscsi(file)
        inputs()
        told(file)
        columns(file)
        by_event(file)
        known_texts(file)
        refused(file)
        anything(file)


if __name__ == "__main__":
    main()
