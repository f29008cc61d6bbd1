#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""`make demo`: PASS beside the kernel's own schedulers, in a virtual machine.

Boots a stock kernel in virtual time, runs fio jobs on emulated SSDs under each
scheduler and prints a table a job; then has PASS serve an ext4 file system and
checks every byte. Results: build/demo/demo.json and build/demo/demo.png.
"""
import functools
import hashlib
import io
import json
import random
import sys
import tarfile

import harness
import report

FOLDER = harness.PROJECT / "build/demo"
SCHEDULERS = (*harness.PEERS, report.OURS)
# A device of the PASS paper, and one of today's on which PASS must not lose.
CELLS = (("pass-ssd1", "files"), ("sata", "readers"))
PANELS = ("mbps", "read_mean", "read_p99", "write_mean", "write_p99")
TREE_BYTES = 8 << 20


def generated_files():
    """Names and contents of some files, the same each time: empty ones, small
    ones, large ones, in a deep tree."""
    chance = random.Random(1)
    total = number = 0
    while total < TREE_BYTES:
        size = int(2 ** chance.uniform(0, 20)) - 1
        depth = chance.randrange(1, 6)
        folder = "/".join(f"d{chance.randrange(4)}" for _ in range(depth))
        yield f"generated/{folder}/{number}", chance.randbytes(size)
        total += size
        number += 1


def project_files():
    """Names and contents of the project's own files."""
    for path in sorted(harness.PROJECT.rglob("*")):
        name = path.relative_to(harness.PROJECT)
        if path.is_file() and name.parts[0] not in ("build", ".git"):
            yield f"project/{name}", path.read_bytes()


def make_tree():
    """Write the tar file, and what sha256sum is to find; return their paths
    and the number of bytes in the files."""
    tar_path, sums_path = FOLDER / "tree.tar", FOLDER / "tree.sha256"
    sums, size = [], 0
    with tarfile.open(tar_path, "w") as tar:
        for name, data in (*project_files(), *generated_files()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
            size += len(data)
    sums_path.write_text("".join(sums))
    return tar_path, sums_path, size


def ext4_tree(progress, outcome):
    """Unpack a tree on ext4 under PASS and verify it; tell of it in @outcome."""
    tar, sums, size = make_tree()

    def hear(line):
        if line.startswith("{"):
            outcome.update(json.loads(line), bytes=size)

    harness.lab([harness.BENCH / "ext4-tree.sh", tar.name, sums.name],
                FOLDER / "ext4.log", hear, files=[(path.name, path) for path in (tar, sums)])
    progress.step(f"ext4 under pass: {outcome['files']} files, all verified")


def results_of(runs):
    """{scheduler: figures} of a cell."""
    return {run.label: run.result["figures"] for run in runs}


def show(cells, ext4):
    """Print tables and what came of ext4."""
    for runs in cells:
        title = f"{harness.job_says(runs[0].job)}; drive: {runs[0].device}"
        print(*report.table(title, results_of(runs)), "", sep="\n")
    print(report.LEGEND)
    print(f"ext4 under pass: {ext4['files']} files, {ext4['bytes'] / 1e6:.1f} MB "
          f"unpacked; after mounting again all checksums are right, fsck finds "
          f"nothing ({ext4['inserted']} requests, {ext4['merged']} merged)")


def draw(path, cells):
    """The chart."""
    columns = [column for column in report.COLUMNS if column.key in PANELS]
    groups = [(f"{harness.job_says(runs[0].job)}  ·  drive: {runs[0].device}",
               results_of(runs), columns) for runs in cells]
    report.chart(path, "PASS beside the kernel's own I/O schedulers",
                 f"{report.LABEL}  ·  Linux {harness.release()}  ·  "
                 "ssd-iosched, make demo", groups)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    cells = [[harness.Run(preset, job, scheduler) for scheduler in SCHEDULERS]
             for preset, job in CELLS]
    ext4 = {}
    progress = harness.Progress(sum(map(len, cells)) + 1)
    print(f"demo: {len(SCHEDULERS)} schedulers, {len(CELLS)} fio jobs, then ext4; "
          f"some minutes, {harness.GUESTS} guests side by side", file=sys.stderr)
    tasks = [functools.partial(harness.run_guest, runs, f"{preset}-{job}", FOLDER,
                               progress)
             for (preset, job), runs in zip(CELLS, cells, strict=True)]
    harness.run_all([*tasks, functools.partial(ext4_tree, progress, ext4)])
    runs = [run for cell in cells for run in cell]
    harness.save(FOLDER / "demo.json", runs, ext4=ext4,
                 cpu_seconds=round(harness.cpu_seconds(), 1))
    draw(FOLDER / "demo.png", cells)
    print()
    show(cells, ext4)
    print("results: build/demo/demo.json, chart: build/demo/demo.png")
    return 0


if __name__ == "__main__":
    harness.finish(main)
