#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Let made-up candidates race by the rule of `ssdctl advise`, and by a former one.

    tests/bench/advise-races.py [--races N] [--former COMMIT] [--write]

Prints for each kind of race (tests/lib/advise_races.py) in what share of them it was decided and
wrong, and decided and right, and what share of the time was used. --former: the rule of that
commit, whose observations were rounds, races too. --write: replace the table in
Documentation/results/advise.md.
"""
import argparse
import concurrent.futures
import functools
import os
import pathlib
import subprocess
import sys
import types

# The matrices are small: threads cost more than they save.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / path) for path in ("tools/ssdctl", "tools/common", "tests/lib")]

import advise_races as races  # noqa: E402  (in a folder added above)
import guests  # noqa: E402
import judging  # noqa: E402
import numpy  # noqa: E402
import tables  # noqa: E402

PAGE = PROJECT / "Documentation/results/advise.md"
RULE = "tools/ssdctl/ssd_ctl/advice/sequential.py"
# What the table is between.
FROM, TO = "<!-- tests/bench/advise-races.py --write -->\n\n", "\n\n<!-- end -->"
# Of the former rule: the rounds of the first session, and of any later one at least.
LEAST_ROUNDS = 4
HEAD = ["better by", "start", "lag", "cliff", "wrong", "right", "time"]


def former_rule(commit: str) -> types.ModuleType:
    """Return the rule of a commit."""
    text = subprocess.run(["git", "show", f"{commit}:{RULE}"], cwd=PROJECT, check=True,
                          capture_output=True, text=True).stdout
    made = types.ModuleType("former")
    sys.modules["former"] = made
    exec(compile(text, RULE, "exec"), made.__dict__)
    return made


def former_race(rule: types.ModuleType, kind: races.Kind, seed: int) -> races.Ended:
    """Return how a race ended by the former rule and its control flow."""
    noise, race = races.Noise(kind, seed), rule.Race(races.NAMES, numpy.ones(1))
    used, most, outcome = 0, kind.rounds * len(races.NAMES), None
    while not outcome:
        noise.begin()
        used += races.START
        for _ in range(max(LEAST_ROUNDS, race.rounds // 2)):
            if race.rounds and used + len(race.running()) > most:
                break
            scores = noise.next()
            race.add({name: races.served(scores[name]) for name in race.running()})
            used += len(race.running())
        race.drop()
        outcome = race.decided()
        if not outcome and used + len(race.running()) > most:
            outcome = race.last()
        if not outcome and used > most / 2:
            race.set_aside()
    return races.Ended(outcome.name, outcome.sure, not noise.fallen(), used / most)


def figures(kind: races.Kind, ended: list[races.Ended]) -> list[str]:
    """Return the cells of a rule in the row of a kind."""
    shares = [judging.share(sum(each), len(ended)) for each in zip(
        *((one.wrong(kind), one.right(kind)) for one in ended), strict=True)]
    return [*shares, f"{100 * sum(one.used for one in ended) / len(ended):.0f}"]


def row(kind: races.Kind, number: int, commit: str | None) -> list[str]:
    """Return the row of a kind, by @number races."""
    cells, seeds = [], range(number)
    if commit:
        rule = former_rule(commit)
        cells = figures(kind, [former_race(rule, kind, seed) for seed in seeds])
    cells += figures(kind, [races.race(kind, seed) for seed in seeds])
    print(kind, *cells, sep="\t", flush=True)
    return [f"{numpy.expm1(kind.effect):.0%}", f"{kind.start:.1%}", f"{kind.lag:g}",
            str(kind.cliff) if kind.cliff else "", *cells]


def write(lines: list[str]):
    """Replace the table in the document."""
    text = PAGE.read_text()
    before, rest = text.split(FROM)
    PAGE.write_text(before + FROM + "\n".join(lines) + TO + rest.split(TO)[1])


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=100, metavar="N", help="of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="J")
    parser.add_argument("--former", metavar="COMMIT")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    make = functools.partial(row, number=given.races, commit=given.former)
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(make, races.kinds()))
    lines = tables.markdown([*HEAD[:4], *(f"before: {name}" for name in HEAD[4:] if given.former),
                             *HEAD[4:]], rows)
    print(*lines, sep="\n")
    if given.write:
        write(lines)


if __name__ == "__main__":
    guests.finish(main)
