#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark's intervals hold the true mean in 95 % of random samples; equal schedulers are
# ahead or behind in 5 %, also if seeds differ by much; a real difference is found; the matrix
# counts each cell on the right side and never adds up reads and writes; a scheduler that starves
# reads is behind; a time scale makes the times of a run longer and leaves its figures
# timeout: 120
# quick: host
import math
import pathlib
import random
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "lib")]

from checks import check  # noqa: E402  (beside this folder)
import matrix as bench_matrix  # noqa: E402  (beside the benchmark)
import model  # noqa: E402
import results  # noqa: E402
from intervals import interval, logarithms, percent  # noqa: E402

SAMPLES = 20_000
READ, P99 = results.RATES[0], results.TIMES["read", "p99"]


def coverage(chance, seeds):
    """Return the share of samples whose interval holds the true mean."""
    held = 0
    for _ in range(SAMPLES):
        found = interval([chance.gauss(100, 7) for _ in range(seeds)])
        held += abs(found.mean - 100) <= found.half
    return held / SAMPLES


def found(chance, seeds, gain):
    """Return the shares of pairs in which a scheduler with a @gain is ahead and behind. Seeds
    differ by 30 %, schedulers with the same seed by 1 %."""
    signs = []
    for _ in range(SAMPLES):
        base = [math.exp(chance.gauss(0, 0.3)) for _ in range(seeds)]
        ours = [gain * value * math.exp(chance.gauss(0, 0.01)) for value in base]
        theirs = [value * math.exp(chance.gauss(0, 0.01)) for value in base]
        signs.append(results.better(logarithms(ours, theirs), READ))
    return signs.count(1) / SAMPLES, signs.count(-1) / SAMPLES


def cell(read, p99, ordering):
    """Return a cell in which the scheduler "mine" has @read and @p99 times the peer's figures."""
    peer = {"read_mbps": [50, 60, 70], "write_mbps": [9, 9, 9], "read_p99": [3, 4, 5]}
    mine = peer | {"read_mbps": [read * value for value in peer["read_mbps"]],
                   "read_p99": [p99 * value for value in peer["read_p99"]]}
    return {"kind": "benefit", "ordering": ordering, "results": {"none": peer, "mine": mine},
            "bounds": {"none": [], "mine": []}}


def least():
    """Check that a difference that repeats exactly decides nothing below 0.5 %, and that depths do
    not count in the matrix."""
    for times, sign in ((1.001, 0), (1.0049, 0), (1.0051, 1), (1 / 1.001, 0), (1 / 1.0051, -1)):
        check(results.better(logarithms([times] * 3, [1] * 3), READ) == sign,
              f"{times:.4f} with each seed: {sign}")
    cells = [cell(2, 1, True) | {"kind": kind, "paper": ""} for kind in results.KINDS]
    saved = results.Results({"schedulers": {"peers": ["none"], "ours": ["mine"]}, "cells": cells})
    check([len(found) for found in saved.classes().values()] == [2], "depths do not count")


def matrix():
    """Check what the matrix says of cells with known ratios."""
    cells = [cell(2, 0.5, True), cell(0.5, 0.5, False), cell(2, 2, False), cell(1, 1, None)]
    read = results.standing(cells, "mine", "none", READ)
    check((read.ahead, read.behind, read.cells) == (2, 1, 4), f"read MB/s: {read.text()}")
    check(abs(read.ratio.mean - 100 * (2 ** 0.25 - 1)) < 1e-9, "geometric mean of 2, 1/2, 2, 1")
    p99 = results.standing(cells, "mine", "none", P99)
    check((p99.ahead, p99.behind) == (2, 1), f"a shorter p99 is ahead: {p99.text()}")
    write = results.standing(cells, "mine", "none", results.RATES[1])
    check((write.ahead, write.behind) == (0, 0), "writes are as fast, whatever reads are")
    check([len(results.in_group(cells, value)) for value in results.GROUPS.values()] == [4, 1, 2],
          "cells with a backlog are apart from those without")


def window(reads, latency, scale=1):
    """Return a run with a window of a second in which so many reads take @latency ms each; its
    device is busy all the time, and has the time scale."""
    found = {"count": reads} | ({"mean": latency, "max": latency} if reads else {})
    found |= {f"p{p:g}": latency for p in model.PERCENTILES if not model.beyond(reads, p)}
    drive = {"units_busy_milli": 1000, "write_amplification_milli": 1000, "flash_erases": 0,
             "units": 1, "time_scale": scale, "unit_busy_ns": 10 ** 9 // scale,
             "channel_utilisation_ppm": 0, "elapsed_ns": 10 ** 9,
             "host_read_bytes": 4096 * reads, "host_write_bytes": 0,
             "read_count": 1, "write_count": 0, "config": {}}
    return {"ssdemu": drive, "window": {
        "seconds": 1, "read": {"bytes": 4096 * reads, "latency": found},
        "write": {"bytes": 0, "latency": {"count": 0}}}}


def starving():
    """Check a cell in which schedulers starve reads: two have none with one seed and with all, one
    has a few slow ones, one a few fast ones."""
    reads = {"none": [(5000, 1)] * 3, "once": [(5000, 1), (0, 0), (5000, 1)], "all": [(0, 0)] * 3,
             "slow": [(10, 900), (12, 800), (11, 850)], "few": [(10, 0.5)] * 3}
    made = bench_matrix.Cell("benefit", "small", "starving")
    for label, seeds in reads.items():
        for seed in seeds:
            run = model.Run("small", "interference", label, result=window(*seed))
            run.result["figures"] = model.figures_of(run)
            made.runs.append(run)
    starved = made.content()
    for label in ("once", "all", "slow"):
        for column in (READ, P99):
            found = results.standing([starved], label, "none", column)
            check((found.ahead, found.behind, found.cells) == (0, 1, 1),
                  f"starved {label}: {column.head} {found.text()}")
            back = results.standing([starved], "none", label, column)
            check((back.ahead, back.behind) == (1, 0), f"and none against it {back.text()}")
    check(results.spread(starved, "slow", P99).startswith("≥ 850"),
          f"p99 of 11 reads: {results.spread(starved, 'slow', P99)}")
    few = results.standing([starved], "few", "none", P99)
    check((few.ahead, few.behind) == (0, 0), f"a lower bound of p99 is not ahead: {few.text()}")
    check(results.standing([starved], "all", "once", P99) is None, "both starve: nothing is said")
    names = {"peers": ["none"], "ours": ["all"]}
    saved = results.Results({"schedulers": names, "cells": [starved]})
    check([item[0] for item in results.differences(saved, [starved])][0] is None,
          "no reads at all is the largest difference")


def scaled():
    """Check what a time scale does to a run and to its figures."""
    run = model.Run("sata", "bursts", "none", keys={"time_scale": 8}, variables={
        "RAMP": "250ms", "GAP": "20ms", "BS": "4k", "SIZE": "8m", "DEPTH": "64"})
    plan = model.plan_of(run)
    check(plan["variables"] == run.variables | {"RAMP": "2000ms", "GAP": "160ms"}
          and plan["time_scale"] == 8, f"a run of 8 times the times: {plan['variables']}")
    busy = window(5000, 1, 8)
    found = model.figures_of(model.Run("sata", "mixed", "none", keys={"time_scale": 8},
                                       result=busy))
    check(abs(found["of_bound"] - 1) < 1e-9 and abs(found["mbps"] - 8 * 20.48) < 1e-9,
          f"a busy drive is at its bound: {found['of_bound']:.3f} of {found['mbps']:.2f} MB/s")
    made = {"mbps": 2, "read_mbps": 2, "read_p99": 40, "write_amplification": 3, "of_bound": 0.5}
    check(model.undilated(made, 8) == made | {"mbps": 16, "read_mbps": 16, "read_p99": 5},
          "rates x 8, latencies / 8, ratios as they are")


def main():
    chance = random.Random(1)
    for seeds in (2, 3, 5):
        held = coverage(chance, seeds)
        check(abs(held - 0.95) < 0.006, f"{seeds} seeds: {100 * held:.1f} % hold the mean")
        ahead, behind = found(chance, seeds, 1)
        check(abs(ahead + behind - 0.05) < 0.006 and abs(ahead - behind) < 0.006,
              f"{seeds} seeds, equal: {100 * ahead:.1f} % ahead, {100 * behind:.1f} % behind")
    ahead, behind = found(chance, 3, 1.1)
    check(ahead > 0.95 and not behind, f"3 seeds, 10 % more: {100 * ahead:.1f} % ahead")
    check(interval([5]).half is None and interval([5]).sign() == 0, "one seed decides nothing")
    check(abs(percent(interval([math.log(1.1)] * 3)).mean - 10) < 1e-9, "percent of a ratio")
    wide = interval([math.log(value) for value in (100, 150, 400)])
    check(wide.sign() == percent(wide).sign() == 1, "percents say the same as the logarithms")
    least()
    matrix()
    starving()
    scaled()


if __name__ == "__main__":
    main()
