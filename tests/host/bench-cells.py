#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The benchmark's cells measure used drives (SLC cache full, block-mapped drives full), in windows
# that serve a queue several times, in simulated guests; each peer is in each cell
# timeout: 60
# quick: host
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "lib")]

from checks import check  # noqa: E402  (beside this folder)
import matrix  # noqa: E402  (beside the benchmark)
import model  # noqa: E402

CELLS = [*matrix.benefit_cells(False), *matrix.depth_cells(False)]


def keys(cell):
    """Return the keys of a cell's drive."""
    return model.preset_keys(cell.device) | cell.runs[0].keys


def caches():
    """Check that the SLC cache is there for bursts only."""
    cached = [cell for cell in CELLS if model.preset_keys(cell.device).get("slc_mb")]
    check(cached and all(bool(keys(cell)["slc_mb"]) == (cell.runs[0].job == "bursts")
                         for cell in cached), f"{len(cached)} cells behind an SLC cache, or bursts")


def merges():
    """Check that block-mapped drives are full, that their windows turn a queue of 64 over three
    times, and that writes within few erase blocks merge."""
    merging = [cell for cell in CELLS if keys(cell).get("mapping") == "block"]
    check(merging and all(keys(cell).get("fill") == 100 for cell in merging),
          f"{len(merging)} cells on full block-mapped drives")
    for cell in {cell.device: cell for cell in merging
                 if "randwrite" in cell.runs[0].variables.values()}.values():
        window = float(cell.runs[0].variables["RUNTIME"].removesuffix("ms"))
        merge = merge_ms(keys(cell))
        check(window > 3 * 64 * merge,
              f"{cell.device}: {window:.0f} ms for merges of {merge:.0f} ms")
    few = [cell for cell in merging if "erase blocks" in cell.workload]
    check(few and all(int(cell.workload.split(" in ")[1].split()[0]) > keys(cell)["open_blocks"]
                      for cell in few), f"{len(few)} cells with more blocks than are open")


def merge_ms(drive):
    """Return the least ms of a merge of a full block: each unit reads, transfers and programs its
    pages one after the other, units of a channel share it, and then erases the block."""
    units = drive.get("chips", 4) * (drive.get("planes", 1) if drive.get("unit") == "plane" else 1)
    page_us = drive["page_size"] / drive["channel_mbps"]
    cell_us = (drive["read_ns"] + drive["program_ns"]) / 1e3
    bus_us = 0 if drive.get("gc_copyback") else 2 * page_us * units
    return (drive["pages"] * max(cell_us, bus_us) + drive["erase_ns"] / 1e3) / 1e3


def guests():
    """Check that the CPU is no drive's limit, and that instructions are counted where they take
    time."""
    simulated = {run.simulate for cell in CELLS for run in cell.runs}
    check(simulated == {True}, "all cells of emulated drives are simulated")
    counted = {run.simulate for cell in matrix.cpu_cells(False) for run in cell.runs}
    check(counted == {False}, "the cost in instructions is not")


def queues():
    """Check that no request waits for a place in the scheduler."""
    places = [(run.tunables["nr_requests"], matrix.WORKLOADS[cell.workload].on(
        matrix.queue_depth(cell.device)).outstanding or 0)
        for cell in CELLS if cell.workload in matrix.WORKLOADS
        for run in cell.runs if "nr_requests" in run.tunables]
    check(all(have >= need for have, need in places),
          f"up to {max(need for _, need in places)} requests have a place in the scheduler")


def rows():
    """Check which schedulers are compared, with three seeds: each peer in each cell, each of ours
    on at least one drive of each paper and on all of today, tuned values in each class."""
    for cell in CELLS:
        labels = [run.label for run in cell.runs]
        ours = {label for label in labels if label in model.ours()}
        own = {model.paper_of(cell.device)}
        if not {*model.PEERS} <= {*labels} or ours != {*model.ours()} and (
                ours != own or cell.device not in matrix.FURTHER):
            check(False, f"{cell.device}, {cell.workload}: {', '.join(labels)}")
        if len(labels) != matrix.SEEDS * len({*labels}):
            check(False, f"{cell.device}, {cell.workload}: {len(labels)} runs")
    for paper in {model.paper_of(preset) for preset in matrix.presets()}:
        found = {run.label for cell in CELLS if model.paper_of(cell.device) == paper
                 for run in cell.runs}
        check({*model.ours()} <= found and any(label.startswith("bfq ") for label in found),
              f"{paper or 'today'}: {len(found)} rows, tuned ones too")


def seeds():
    """Check that no process with one seed has the random numbers of another with another seed."""
    for job in sorted({cell.runs[0].job for cell in CELLS}):
        found = re.search(r"^randseed=(.+)$", (model.JOBS / f"{job}.fio").read_text(), re.MULTILINE)
        numbers = [int(found[1].replace("${SEED}", str(seed))) * number
                   for seed in range(1, matrix.SEEDS + 1) for number in range(1, 129)]
        check(len(set(numbers)) == len(numbers), f"{job}: {len(numbers)} different sequences")


def main():
    caches()
    merges()
    guests()
    queues()
    rows()
    seeds()


if __name__ == "__main__":
    main()
