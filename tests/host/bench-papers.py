#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The papers' scripts measure our schedulers in their paper mode, with tunables that exist, and
# with files that fit on their drives
# timeout: 60
# quick: host
import importlib
import math
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "lib")]

from checks import check  # noqa: E402  (beside this folder)
import model  # noqa: E402  (beside the benchmark)
import paper  # noqa: E402

# These groups need recorded traces.
TRACED = ("traces", "orders", "dynamic")
# What has no paper mode, as it shows what a user gets.
AS_SELECTED = ("PAI, defaults",)
TUNABLE = re.compile(r"\b[TC]\(\w+, (\w+),")


def tunables(name):
    """Return the names of a scheduler's tunables."""
    sources = (f"{name}-iosched.c", "include/tmpl/tunables.h")
    return {found for source in sources
            for found in TUNABLE.findall((model.PROJECT / source).read_text())}


def ours(script, name):
    """Yield (group, run) of a script's runs of a scheduler."""
    for group, tables in script.GROUPS.items():
        if group not in TRACED:
            for run in (run for table in tables() for run in table.runs()):
                if run.scheduler == name and run.label not in AS_SELECTED:
                    yield group, run


def in_mode(name, run, swept):
    """Return True if a run has each tunable of the paper mode, and its value unless the group has
    several."""
    return all(key in run.tunables and (run.tunables[key] == value or key in swept)
               for key, value in paper.mode(name).items())


def drive_mb(preset):
    """Return the capacity of a preset's drive."""
    keys = model.preset_keys(preset)
    each = ("channels", "chips", "dies", "planes", "blocks", "pages", "page_size")
    return keys.get("capacity_mb") or \
        math.prod(keys[key] for key in each) * (100 - keys["spare"]) // 100 >> 20


def fits(run):
    """Return True if a run's files leave a twentieth of the drive to the file system."""
    if "FILE_MB" not in run.variables:
        return True
    files = int(run.variables["FILES"]) * int(run.variables["FILE_MB"])
    return files <= 0.95 * run.keys.get("capacity_mb", drive_mb(run.preset))


def check_script(name):
    """Check all runs of paper_NAME.py."""
    script = importlib.import_module(f"paper_{name}")
    known, runs = tunables(name), list(ours(script, name))
    unknown = {key for _, run in runs for key in run.tunables
               if key.startswith("iosched/") and key.removeprefix("iosched/") not in known}
    check(not unknown, f"{name}: tunables that exist: {' '.join(unknown)}")
    values = {}
    for group, run in runs:
        for key, value in run.tunables.items():
            values.setdefault((group, key), set()).add(value)
    swept = {group: {key for (of, key), found in values.items() if of == group and len(found) > 1}
             for group in script.GROUPS}
    other = {group for group, run in runs if not in_mode(name, run, swept[group])}
    check(runs and not other, f"{name}: {len(runs)} runs in paper mode: {' '.join(other)}")
    large = {f"{group} on {run.preset}" for group, run in runs if not fits(run)}
    check(not large, f"{name}: files that fit: {', '.join(large)}")


def main():
    for name in model.ours():
        if (model.BENCH / f"paper_{name}.py").exists():
            check_script(name)


if __name__ == "__main__":
    main()
