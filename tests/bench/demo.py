#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""`make demo`: PASS beside the kernel's schedulers, in a virtual machine.

Boots a stock kernel in virtual time, runs fio jobs on emulated SSDs under each scheduler and
prints a table for each job; then unpacks files on ext4 under PASS and checks every byte.
Results: build/demo/demo.json and build/demo/demo.png.
"""
import functools
import hashlib
import io
import json
import random
import sys
import tarfile

import charts
import guests
import model
import storage
from results import LABEL
from tables import Column, align, labelled, number

FOLDER = model.PROJECT / "build/demo"
OURS = "pass"
SCHEDULERS = (*model.PEERS, OURS)
# A drive of the PASS paper, and a drive of today on which PASS must not lose.
CELLS = (("pass-ssd1", "files", {}),
         ("sata", "readers", {"DELAY": "1000ms", "RAMP": "1250ms", "RUNTIME": "2000ms"}))
COLUMNS = (*(Column(way, f"{way}_mbps", "MB/s", more=True) for way in ("read", "write")),
           *(Column(f"{way} {key}", f"{way}_{key}", "ms") for way, key in (
               ("read", "mean"), ("read", "p99"), ("read", "p99.9"), ("write", "mean"),
               ("write", "p99"))))
TREE_BYTES = 8 << 20


def generated_files():
    """Yield names and contents of files from 0 bytes to 1 MiB in a deep tree, the same each
    time."""
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
    """Yield names and contents of the project's files."""
    for path in sorted(model.PROJECT.rglob("*")):
        name = path.relative_to(model.PROJECT)
        if path.is_file() and name.parts[0] not in ("build", ".git"):
            yield f"project/{name}", path.read_bytes()


def make_tree():
    """Write the tar file and its list for sha256sum; return their paths and the number of
    bytes in the files."""
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
    """Unpack a tree on ext4 under PASS and verify it; fill @outcome."""
    tar, sums, size = make_tree()

    def hear(line):
        if line.startswith("{"):
            outcome.update(json.loads(line), bytes=size)

    guests.lab([model.GUEST / "ext4-tree.sh", tar.name, sums.name],
               FOLDER / "ext4.log", hear, files=[(path.name, path) for path in (tar, sums)])
    progress.step(f"ext4 under pass: {outcome['files']} files, all verified")


def title(runs, joint):
    """Return the title of a cell."""
    return f"{model.job_says(runs[0].job)}{joint}drive: {runs[0].device}"


def comparison(runs):
    """Return the lines of a table of a cell: the best of each column marked, and the gain of
    PASS over each of the others."""
    columns = [column for column in COLUMNS if None not in map(column.value, runs)]
    best = [number(column.best(list(map(column.value, runs)))) for column in columns]
    rows = [["", *(column.head for column in columns)],
            ["scheduler", *(column.unit for column in columns)]]
    for run in runs:
        cells = [column.cell(run) for column in columns]
        rows.append([run.label, *("*" * (cell == most) + cell
                                  for cell, most in zip(cells, best, strict=True))])
    *peers, ours = runs
    rows += [[f"{OURS} against {peer.label}", *(
        f"{column.gain(column.value(ours), column.value(peer)):+.1f} %" for column in columns)]
        for peer in peers]
    return align(rows)


def show(cells, ext4):
    """Print the tables of @cells, lists of runs, and the outcome on ext4."""
    for runs in cells:
        print(f"{title(runs, '; ')} ({LABEL})", *comparison(runs), "", sep="\n")
    print("* best of its column; + PASS is better (more MB/s, less latency), - it is worse")
    print(f"ext4 under pass: {ext4['files']} files, {ext4['bytes'] / 1e6:.1f} MB "
          f"unpacked; after mounting again all checksums are right, fsck finds "
          f"nothing ({ext4['inserted']} requests, {ext4['merged']} merged)")


def draw(path, cells):
    """Draw the chart of @cells, lists of runs."""
    columns = [column for column in COLUMNS if column.get in charts.PANELS]
    charts.beside_peers(path, "PASS beside the kernel's own I/O schedulers",
                        f"{LABEL}  ·  Linux {storage.release()}  ·  ssd-iosched, make demo",
                        OURS, [(title(runs, "  ·  "), dict(labelled(runs)), columns)
                               for runs in cells])


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    cells = [[model.Run(preset, job, scheduler, variables=variables)
              for scheduler in SCHEDULERS] for preset, job, variables in CELLS]
    ext4 = {}
    progress = guests.Progress(sum(map(len, cells)) + 1)
    print(f"demo: {len(SCHEDULERS)} schedulers, {len(CELLS)} fio jobs, then ext4; "
          f"some minutes, {guests.GUESTS} guests side by side", file=sys.stderr)
    tasks = [functools.partial(guests.run_guest, runs, f"{preset}-{job}", FOLDER,
                               progress)
             for (preset, job, _), runs in zip(CELLS, cells, strict=True)]
    guests.run_all([*tasks, functools.partial(ext4_tree, progress, ext4)])
    runs = [run for cell in cells for run in cell]
    storage.save(FOLDER / "demo.json", runs, ext4=ext4,
                 cpu_seconds=round(guests.cpu_seconds(), 1))
    draw(FOLDER / "demo.png", cells)
    print()
    show(cells, ext4)
    print("results: build/demo/demo.json, chart: build/demo/demo.png")
    return 0


if __name__ == "__main__":
    guests.finish(main)
