#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The cells of the benchmark measure drives in the state of use: a drive with an SLC cache behind it
# timeout: 60
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import matrix  # noqa: E402  (beside the benchmark)
import model  # noqa: E402

CELLS = [*matrix.benefit_cells(False), *matrix.depth_cells(False)]


def check(condition, text):
    """Print what was checked; end the test unless @condition holds."""
    print(("ok    " if condition else "FAIL  ") + text, flush=True)
    if not condition:
        sys.exit(1)


def keys(cell):
    """Return the keys of a cell's drive."""
    return model.preset_keys(cell.device) | cell.runs[0].keys


def caches():
    """Check that the SLC cache is there for bursts only."""
    cached = [cell for cell in CELLS if model.preset_keys(cell.device).get("slc_mb")]
    check(cached and all(bool(keys(cell)["slc_mb"]) == (cell.runs[0].job == "bursts")
                         for cell in cached), f"{len(cached)} cells behind an SLC cache, or bursts")


def main():
    caches()


if __name__ == "__main__":
    main()
