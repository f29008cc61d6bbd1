#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A trace is replayed with many requests outstanding; fio notices each completion at its time, and
# a run in which it misses one is refused
# timeout: 120
# quick: host
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "lib")]

from checks import check  # noqa: E402  (beside this folder)
import model  # noqa: E402  (beside the benchmark)
import replay  # noqa: E402

REQUESTS = 1024
STEP_US = 10
SIZE = 4096


def trace():
    """Yield the lines of a trace: every third request is a read."""
    yield "ts_us,dev,op,offset,size"
    for at in range(REQUESTS):
        yield f"{at * STEP_US},0,{'W' if at % 3 else 'R'},{at * SIZE},{SIZE}"


def dealt(names):
    """Check the logs: each request in one of them, at its time, waits and requests in turn."""
    found = []
    for name in names:
        lines = [line.split()[1:] for line in (model.PROJECT / name).read_text().splitlines()[3:]]
        for wait, request in zip(lines[::2], lines[1::2], strict=True):
            assert wait[0] == "wait", wait
            found.append((int(request[1]), int(wait[1]), request[0]))
    check(len(names) == replay.JOBS and len(found) == REQUESTS, f"{len(found)} requests dealt out")
    # The converter's times begin with 1 us.
    check(sorted(found) == [(at * SIZE, replay.START_MS + (at * STEP_US + 1) // 1000,
                             "write" if at % 3 else "read") for at in range(REQUESTS)],
          "each at its time, in ms")


def replayed(device, log):
    """Replay the logs on a file; return the result of a run."""
    done = subprocess.run(
        ["fio", "--output-format=json", "--lat_percentiles=1", "--clat_percentiles=0",
         f"--percentile_list={':'.join(map(str, model.PERCENTILES))}", model.JOBS / "replay.fio"],
        env={**os.environ, "DEVICE": str(device), "LOG": log}, cwd=model.PROJECT,
        stdout=subprocess.PIPE, text=True, check=True)
    fio = json.loads(done.stdout[done.stdout.index("{"):])
    counts = {"read": -(-REQUESTS // 3), "write": REQUESTS - -(-REQUESTS // 3)}
    return {"fio": fio, "ssdemu": {},
            "kernel": {f"{way}_bytes": count * SIZE for way, count in counts.items()}}


def outstanding(result):
    """Return the mean number of outstanding requests while there are any, by Little's law. At the
    recorded speed there are for all of the trace's duration, or longer as the file is slower."""
    ways = [result["fio"]["jobs"][0][way] for way in ("read", "write")]
    slowest = max(way["lat_ns"]["max"] for way in ways) / 1e6
    return (sum(way["lat_ns"]["N"] * way["lat_ns"]["mean"] for way in ways) / 1e6
            / (REQUESTS * STEP_US / 1e3 + slowest))


def refused(result, log):
    """Return True if the benchmark refuses the result of a run."""
    try:
        model.figures_of(model.Run("", "replay", "none", variables={"LOG": log}, result=result))
    except model.Failed:
        return True
    return False


def main():
    os.makedirs(model.PROJECT / "build", exist_ok=True)
    with tempfile.TemporaryDirectory(dir=model.PROJECT / "build") as name:
        folder = pathlib.Path(name)
        (folder / "trace.csv").write_text("\n".join(trace()) + "\n")
        log = replay.logs(folder / "trace.csv", folder / "r")
        dealt(log.split(":"))
        device = folder / "device"
        device.write_bytes(bytes(REQUESTS * SIZE))
        result = replayed(device, log)
        check(not refused(result, log), "fio has seen each I/O complete")
        made = model.figures_of(model.Run("", "replay", "none", variables={"LOG": log},
                                          result=result))
        check("read_p99" in made and "read_mbps" not in made, "latencies, but no rate of a trace")
        check(outstanding(result) > 1.5,
              f"{outstanding(result):.1f} requests outstanding on average")
        result["fio"]["jobs"][0]["read"]["lat_ns"]["N"] -= 1
        check(refused(result, log), "a run with an I/O that was not reaped is refused")
    check([percentile for percentile in model.PERCENTILES if model.beyond(1000, percentile)]
          == [99.95, 99.99], "of 1000 I/Os, p99.95 is the maximum and p99.9 is not")


if __name__ == "__main__":
    main()
