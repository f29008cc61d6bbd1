#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""ssd-probe with procedures whose I/O and findings are known, for tests of the command itself.

`long` reads for as many seconds as $LONG_S says (default: 0), and a whole number of times.
"""
import os
import pathlib
import sys
import time

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path[:0] = [str(TOOLS / "ssd-probe"), str(TOOLS / "common")]

from ssd_probe import command, engine, session  # noqa: E402
from ssd_probe.probe import Curve, Finding, procedure  # noqa: E402

KB = 1024
READS, WRITES = 100, 50


@procedure(gives="alpha")
def short(bench, found):
    """A few reads"""
    times = bench.latencies(bench.places(READS, 4 * KB), 4 * KB)
    curve = Curve("Reads <in order>", "read", "us", {"time": (list(range(READS)), times / 1000)})
    return [Finding("alpha", len(times), "reads", 0.5, "made so many", curve)]


@procedure(gives="beta", needs="alpha")
def long(bench, found):
    """Reads for some time"""
    end = time.monotonic() + float(os.environ.get("LONG_S") or 0)
    while True:
        bench.latencies(bench.places(8, 4 * KB), 4 * KB)
        left = end - time.monotonic()
        if left <= 0:
            break
        bench.progress(0.5)
    return [Finding("beta", found["alpha"].value * 2, "reads", 1.0, "twice as many")]


@procedure(gives="gamma delta", needs="beta")
def broken(bench, found):
    """Says little, or fails if $BROKEN is set"""
    if os.environ.get("BROKEN"):
        raise ValueError("a defect")
    return [Finding("gamma", None, why="nothing was looked for")]


@procedure(gives="mapping", needs="alpha", destroys=True)
def writes(bench, found):
    """A few writes"""
    count = int(os.environ.get("WRITES") or WRITES)
    bench.latencies(bench.places(count, 4 * KB), 4 * KB, engine.WRITE)
    return [Finding("mapping", "page", "", 0.9, "it is assumed")]


session.MODULES = ()
sys.exit(command.main())
