#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# trace-to-fio --info says what a plain count of the requests says, as a table, JSON and a picture;
# requests that are not in order are sorted, those of the same time stay in order; memory does not
# grow with the trace
# timeout: 600
# quick: host
import collections
import json
import os
import pathlib
import random
import sys
import tempfile
import unittest.mock

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "lib"))

from host import need  # noqa: E402  (in a folder added above)

need("numpy", "matplotlib")

import numpy  # noqa: E402  (it is there)
from checks import check  # noqa: E402  (in a folder added above)
from traces import TOOL, convert  # noqa: E402

from trace_to_fio import picture as picture_of  # noqa: E402
from trace_to_fio import reading, spool, summary  # noqa: E402

HEAD = "ts_us,dev,op,offset,size\n"
UNIT = 4096
# Requests of a short and of a long trace, and MB by which memory may differ; the requests alone
# would take more.
SHORT, LONG, MORE = 300_000, 1_000_000, 10
# MB that the program may have, and by which a trace that is not in order may need more.
MOST, UNORDERED = 200, 70


def made(count):
    """Return requests: (us, device, operation, offset, size); streams among random ones."""
    of = random.Random(1)
    ends, found = {}, []
    for at in range(count):
        device, way = of.choice("ab"), of.choice("RRW")
        size = of.choice((512, 4096, 4096, 65536, 131072))
        place = ends.get((device, way), 0) if of.random() < 0.5 else of.randrange(1 << 20) * 512
        ends[device, way] = place + size
        found.append((at * 500 + of.randrange(2000), device, way, place, size))
    return found


def written(path, requests):
    """Write requests to a file."""
    path.write_text(HEAD + "".join(f"{us},{device},{way},{place},{size}\n"
                                   for us, device, way, place, size in requests))


def in_order(folder):
    """Requests are sorted by time, however few are sorted at a time."""
    path = folder / "trace"
    of = random.Random(2)
    requests = [(of.randrange(300), "a", of.choice("RW"), at * 512, 512) for at in range(3000)]
    written(path, requests)
    first = min(requests)[0]
    expected = [(us - first, "read" if way == "R" else "write", place, size)
                for us, _, way, place, size in sorted(requests, key=lambda each: each[0])]
    for chunk, block, merging in ((1 << 18, 1 << 16, 1 << 25), (50, 7, 1), (997, 10, 24 * 40)):
        with unittest.mock.patch.multiple(spool, BLOCK=block, MERGING=merging, SMALLEST=3), \
                unittest.mock.patch.object(reading, "CHUNK", chunk):
            check(convert(path).requests == expected, f"sorted by {chunk}, merged")


def counted(requests):
    """Count what --info says, in the plain way."""
    ends = {device: max(place + size for _, name, _, place, size in requests if name == device)
            for device in "ab"}
    base = {"a": 0, "b": ends["a"]}
    ordered = sorted(requests, key=lambda each: each[0])
    start, last = ordered[0][0], ordered[-1][0]
    found = {"requests": len(requests), "bytes": sum(each[4] for each in requests),
             "duration_s": (last - start) / 1e6, "span_bytes": sum(ends.values())}
    seconds = collections.Counter((us - start) // 1000000 for us, *_ in requests)
    touched = {"R": set(), "W": set()}
    recent = {way: collections.deque(maxlen=summary.BEFORE) for way in "RW"}
    follows = collections.Counter()
    for _, device, way, place, size in ordered:
        begin = base[device] + place
        follows[way] += begin in recent[way]
        recent[way].append(begin + size)
        touched[way] |= set(range(begin // UNIT, (begin + size - 1) // UNIT + 1))
    for name, way in (("read", "R"), ("write", "W")):
        sizes = sorted(each[4] for each in requests if each[2] == way)
        found[name] = {
            "requests": len(sizes), "bytes": sum(sizes),
            "median": sizes[-(-len(sizes) // 2) - 1], "p99": sizes[-(-len(sizes) * 99 // 100) - 1],
            "smallest": sizes[0], "largest": sizes[-1],
            "sequential_percent": round(100 * follows[way] / len(sizes), 2),
            "footprint_bytes": UNIT * len(touched[way])}
    found["footprint_bytes"] = UNIT * len(touched["R"] | touched["W"])
    found["busiest"] = max(seconds.values())
    return found


def described(folder):
    """The figures are those of a plain count, whatever the blocks are."""
    path = folder / "trace"
    requests = made(5000)
    written(path, requests)
    expected = counted(requests)
    for block in (1 << 16, 11):
        with unittest.mock.patch.object(spool, "BLOCK", block):
            found = json.loads(convert("--json", path).output)
        found["busiest"] = found["rate"]["busiest_second_requests"]
        for way in ("read", "write"):
            found[way] |= found[way]["size_bytes"]
            same = {name: found[way][name] for name in expected[way]}
            check(same == expected[way], f"{way}s: {same}, expected {expected[way]}")
        for name in ("requests", "bytes", "duration_s", "span_bytes", "footprint_bytes", "busiest"):
            check(found[name] == expected[name],
                  f"{name}: {found[name]}, expected {expected[name]}")
        check([each["name"] for each in found["devices"]] in (["a", "b"], ["b", "a"]) and
              sum(each["requests"] for each in found["devices"]) == 5000, "devices")
    check(found["read"]["sequential_percent"] > 30, "streams are seen")
    table = convert("--info", path).output
    for text in (f"{expected['read']['requests']:,}", "128 KiB", f"{expected['busiest']:,} /s",
                 f"{expected['read']['sequential_percent']:.1f} %"):
        check(text in table, f"the table has {text}")
    for form, begin in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        picture = folder / f"p.{form}"
        done = convert("--picture", picture, path)
        check(done.status == 0 and picture.read_bytes().startswith(begin), f"{form} {done.said}")
        picture.unlink()
        picture.symlink_to(path)
        done = convert("--picture", picture, path)
        check(done.status == 1 and path.read_text().startswith(HEAD), f"a link: {done.said}")
        picture.unlink()
    # Sizes above those that are counted by sectors, also in the picture.
    way = summary.Way()
    sizes = numpy.array([4096, 5 << 20, 2000 << 20, 2000 << 20])
    way.add(sizes, sizes, numpy.zeros(4, int), numpy.zeros(4, int))
    found = picture_of.curve(way)
    check(found == ([4, 4, 5120, 2048000], [0, 25, 50, 100]), f"the curve of sizes: {found}")
    for sizes, median, p99 in (((5, 5, 5, 100), 5, 100), ((4, 4, 8, 16), 4, 16),
                               ((1024, 2048, 2048), 2048, 2048), ((5, 2000, 2000), 2000, 2000)):
        written(path, [(at, "a", "R", 0, size << 20) for at, size in enumerate(sizes)])
        found = json.loads(convert("--json", path).output)["read"]
        check((found["size_bytes"]["median"], found["size_bytes"]["p99"]) ==
              (median << 20, p99 << 20), f"{sizes} MiB: {found['size_bytes']}")
        expected_sizes = collections.Counter(size << 20 for size in sizes)
        check({each["bytes"]: each["requests"] for each in found["common_sizes"]} ==
              expected_sizes, f"common sizes: {found['common_sizes']}")
    written(path, [(at, "a", "R", 0, (77 << 20) + 512 * at) for at in range(9)])
    found = json.loads(convert("--json", path).output)["read"]["size_bytes"]["median"]
    check(abs(found / ((77 << 20) + 512 * 4) - 1) < 1 / 4096, f"exact to 1/4096: {found}")
    # One request, at no time; reads only; a huge one.
    written(path, [(5, "a", "R", 0, 4096 * 1000)])
    found = json.loads(convert("--json", path).output)
    check(found["duration_s"] == 0 and found["rate"]["requests_per_s"] is None and
          found["footprint_bytes"] == 4096000 and found["write"]["requests"] == 0, "one request")
    check(convert("--info", "--picture", folder / "p.svg", path).status == 0, "drawn, too")
    with unittest.mock.patch.object(summary, "MARKS", 8):
        found = json.loads(convert("--json", path).output)
    check(found["footprint_unit_bytes"] == 4096 * 128, "larger units of a larger trace")


def megabytes(*words):
    """Return the most memory that a call has in MB."""
    child = os.spawnv(os.P_NOWAIT, TOOL / "trace-to-fio", [str(TOOL / "trace-to-fio"), *words])
    _, status, used = os.wait4(child, 0)
    check(status == 0, f"{' '.join(words)}: status {status}")
    return used.ru_maxrss / 1024


def long_trace(path, count, step):
    """Write a trace; its times go up by @step, modulo a prime."""
    with open(path, "w", encoding="ascii") as file:
        file.write(HEAD)
        for start in range(0, count, 1 << 16):
            file.write("".join(
                f"{at * step % 15485863},a{at & 3},R,{at * 7919 % (1 << 30) * 512},4096\n"
                for at in range(start, min(start + (1 << 16), count))))


def memory(folder):
    """A trace four times as long takes no more memory."""
    path = str(folder / "long")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    used = []
    for count, step in ((SHORT, 1), (LONG, 1), (LONG, 7919)):
        long_trace(path, count, step)
        used.append(megabytes(path))
    return (*used, megabytes("--json", path))


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        in_order(folder)
        described(folder)
        out = os.dup(1)
        short, long, unordered, info = memory(folder)
        os.dup2(out, 1)
    check(long - short < MORE, f"{short:.0f} MB for {SHORT:,} requests, {long:.0f} for {LONG:,}")
    check(long < MOST and unordered < long + UNORDERED,
          f"{unordered:.0f} MB for requests that are not in order")
    check(info < MOST + UNORDERED, f"{info:.0f} MB for --json")


if __name__ == "__main__":
    main()
