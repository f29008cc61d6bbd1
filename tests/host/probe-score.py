#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssd-probe says nothing wrong of some random emulated drives, and as much as it does of others
# timeout: 1200
import json
import os
import pathlib
import subprocess
import sys

from scipy import stats

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "tests/lib"))

from checks import check  # noqa: E402  (in a folder added above)

# Drives of which no answer was wrong: how many are on others is in Documentation/results/probe.md.
SEEDS = (5002, 5006, 5012)
# Share of the answers that are right there. Fewer than the bound would be by chance once in a
# thousand times.
RIGHT, CHANCE = 0.94, 1e-3


def main():
    folder = pathlib.Path(os.environ["RESULTS"]) / "probe-score"
    subprocess.run([PROJECT / "tests/bench/probe-score.py", "--just", *map(str, SEEDS),
                    "--jobs=1", f"--folder={folder}"], check=True)
    counts = json.loads((folder / "score.json").read_text())["counts"]["all"]
    number = sum(counts.values())
    bound = stats.binom.ppf(CHANCE, number, RIGHT)
    check(not counts.get("wrong"), f"{counts.get('wrong', 0)} of {number} answers are wrong")
    check(counts["right"] >= bound, f"{counts['right']} are right, at least {bound:.0f} have to be")


if __name__ == "__main__":
    main()
