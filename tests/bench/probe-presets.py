#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Probe the presets' drives, and keep what is found for the benchmark, which takes the tunables
of this project's schedulers from it.

    tests/bench/probe-presets.py [PRESET...]      (default: all that the benchmark uses)

The answers of ssd-probe go to tests/bench/probed/PRESET.json. Logs are left in build/probed/.
"""
import argparse
import importlib
import json

import guests
import matrix
import model
import probe_draw
import probed
import tables

score = importlib.import_module("probe-score")

FOLDER = model.PROJECT / "build/probed"
# Of a finding, what is kept.
KEPT = ("value", "unit", "confidence", "why")


def drive_of(preset: str) -> probe_draw.Drive:
    """Return the drive as the benchmark has it: in simulated guests with its own times. The SLC
    cache stays: a probe finds it."""
    return probe_draw.Drive(preset, preset, matrix.ADAPTED.get(preset, {}) | {"time_scale": 1})


def keep(one: score.Probed):
    """Write what was found on a drive."""
    if one.problems or not one.found:
        raise model.Failed(f"{one.drive.name}: {'; '.join(one.problems) or 'nothing found'}")
    findings = {name: {key: found[key] for key in KEPT}
                for name, found in sorted(one.found.items())}
    path = probed.file_of(one.drive.name)
    path.write_text(json.dumps({"drive": probed.digest(one.drive.preset), "keys": one.drive.keys,
                                "findings": findings}, indent=1) + "\n")


def rows(preset: str) -> list[list[str]]:
    """Return the rows of the table of a drive: what is set for each scheduler."""
    return [[preset, name, " ".join(f"{key}={value}" for key, value in
                                    probed.tunables(name, preset).items()) or "defaults"]
            for name in model.ours()]


def main() -> int:
    """Probe, write the files, print the tunables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="*", default=matrix.presets())
    presets = parser.parse_args().preset
    unknown = set(presets).difference(matrix.presets())
    if unknown:
        raise model.Failed(f"no preset of the benchmark: {' '.join(sorted(unknown))}")
    for one in score.probe([drive_of(preset) for preset in presets], FOLDER):
        keep(one)
    print(*tables.markdown(["drive", "scheduler", "tunables"],
                           [row for preset in presets for row in rows(preset)]), sep="\n")
    return 0


if __name__ == "__main__":
    guests.finish(main)
