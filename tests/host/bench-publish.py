#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A part that was measured with another preset or job is added to published results only if it
# replaces each cell that was made with the old one
# timeout: 60
# quick: host
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "lib")]

from checks import check  # noqa: E402  (beside this folder)
import model  # noqa: E402  (beside the benchmark)
import publish  # noqa: E402


def part(cells, mbps, **texts):
    """Return the results of a part: @cells (device, job), of which each read so many MB/s."""
    made = [{"kind": "benefit", "device": device, "workload": job, "job": job, "paper": "",
             "ordering": None, "bounds": {"none": [], "pass": []},
             "results": {label: {"read_mbps": [mbps] * 3} for label in ("none", "pass")}}
            for device, job in cells]
    found = {"presets": {device: "one" for device, _ in cells},
             "jobs": {job: "one" for _, job in cells}}
    for kind, name in (name.split("_") for name in texts):
        found[kind][name] = texts[f"{kind}_{name}"]
    return {**dict.fromkeys(publish.SAME, "same"), **found, "cells": made, "runs": [],
            "schedulers": {"peers": ["none"], "ours": ["pass"]}, "command": ["bench"],
            "commit": "c", "host": "h", "image": "i", "cpu_seconds": 1, "only": ["benefit"],
            "locks": {}, "papers": []}


def refused(kept, more):
    """Return True if @more cannot be added."""
    try:
        publish.added(kept, more)
    except model.Failed as error:
        print(f"      {error}")
        return True
    return False


def main():
    sata, qlc = [("sata", "mixed"), ("sata", "threads")], [("qlc", "mixed")]
    kept = part(sata + qlc, 1)
    both = publish.added(kept, part([("sd", "mixed"), ("sata", "mixed")], 2))
    check([cell["results"]["none"]["read_mbps"][0] for cell in both["cells"]] == [2, 1, 1, 2],
          "same texts: added, and replaced")
    check(refused(kept, part(sata[:1], 2, presets_sata="two")), "another preset, one of two cells")
    check(not refused(kept, part(sata, 2, presets_sata="two")), "another preset, all of its cells")
    check(refused(kept, part(sata, 2, jobs_mixed="two")), "another job, without qlc's cell")
    check(not refused(kept, part(sata + qlc, 2, jobs_mixed="two")), "another job, all of its cells")
    check(not refused(kept, part([("sd", "bursts")], 2, presets_nvme="two")), "a new preset")
    check(refused(kept, part(qlc, 2) | {"kernel": "another"}), "another kernel")
    check(refused(kept, part(qlc, 2) | {"sources": "another"}), "other sources")
    both = publish.added(kept, part(qlc, 2) | {"image": "another"})
    check([part["image"] for part in both["parts"]] == ["i", "another"],
          "another image of the same sources, named")


if __name__ == "__main__":
    main()
