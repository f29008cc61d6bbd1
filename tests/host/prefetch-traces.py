#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The emulated SSD prefetches next to nothing for recorded traces, whose reads are mostly random
# kernels: 6.12
# timeout: 900
"""Traces are in the folder that $TRACES names; by default the benchmark's."""
import os
import pathlib
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
TRACES = pathlib.Path(os.environ.get("TRACES") or PROJECT.parent / "shared/traces")
SKIP = 4


def main():
    """Return the exit status."""
    found = sorted(TRACES.glob("*_first*.csv.gz")) + sorted(TRACES.glob("*_prefix.csv.gz"))
    if not found:
        print(f"no traces in {TRACES}")
        return SKIP
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for trace in found:
            log = pathlib.Path(folder, trace.name.removesuffix(".csv.gz") + ".log")
            with open(log, "w", encoding="ascii") as out:
                subprocess.run([PROJECT / "tools/trace-to-fio/trace-to-fio",
                                "--capacity=4096m", "--align=4k", trace], stdout=out, check=True)
            files.append(log)
        return subprocess.run(
            [PROJECT / "scripts/lab", "--virtual-time", f"--kernel={os.environ['KERNEL']}",
             *(f"--file={log.name}={log}" for log in files), "--", "env",
             "PYTHONPATH=tests/lib", "tests/vm/ssdemu-prefetch.py",
             *(log.name for log in files)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
