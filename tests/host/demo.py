#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# `make demo` succeeds: every scheduler has figures on both drives, there is a chart, and all
# files of a tree on ext4 under pass are right
# timeout: 1800
import json
import pathlib
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = PROJECT / "build/demo"
SCHEDULERS = {"none", "mq-deadline", "kyber", "bfq", "pass"}
PNG = b"\x89PNG\r\n\x1a\n"


def failures(output):
    """Yield what is wrong with the output and the files of the demo."""
    made = json.loads((FOLDER / "demo.json").read_text())
    cells = {}
    for run in made["runs"]:
        cells.setdefault((run["preset"], run["job"]), {})[run["label"]] = run["result"]["figures"]
    if len(cells) != 2:
        yield f"{len(cells)} loads instead of 2"
    for (preset, job), figures in cells.items():
        if set(figures) != SCHEDULERS:
            yield f"{preset}, {job}: {', '.join(sorted(figures))} only"
        idle = [name for name, found in figures.items() if not found["mbps"] > 0]
        if idle:
            yield f"{preset}, {job}: no throughput under {', '.join(idle)}"
        if f"drive: {preset}" not in output:
            yield f"no table of {preset}"
    if not made["ext4"].get("files") or "all checksums are right" not in output:
        yield "no file tree on ext4"
    if not (FOLDER / "demo.png").read_bytes().startswith(PNG):
        yield "demo.png is no picture"


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    done = subprocess.run(["make", "--no-print-directory", "demo"], cwd=PROJECT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=False)
    print(done.stdout)
    found = [f"make demo ended with status {done.returncode}"] if done.returncode else \
        list(failures(done.stdout))
    for text in found:
        print(f"fail: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
