#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: python3-numpy python3-scipy python3-matplotlib liburing2
"""Inside the guest: probe the drives of a plan of probe-score.py. Print a line of JSON for each."""
import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import traceback

from common import FIO, PROJECT
from ssd import Device

sys.path.insert(0, str(PROJECT / "tools/ssd-probe"))

from ssd_probe import engine, probe  # noqa: E402  (in a folder added above)

MODULES = ("reads", "units", "regions", "writes", "blocks")


@contextlib.contextmanager
def load_beside(device, options):
    """Run fio with these options on the device meanwhile; without options nothing."""
    if not options:
        yield
        return
    with subprocess.Popen(
            [*FIO, "--name=beside", f"--filename={device.path}", "--direct=1", "--bs=4k",
             "--ioengine=psync", "--rate_process=poisson", "--time_based", "--runtime=1000000",
             "--norandommap", *options], stdout=subprocess.DEVNULL) as load:
        try:
            yield
        finally:
            load.terminate()


def modules(problems):
    """Import the modules with procedures; add those that cannot be to @problems."""
    for name in MODULES:
        if (PROJECT / f"tools/ssd-probe/ssd_probe/{name}.py").exists():
            try:
                importlib.import_module(f"ssd_probe.{name}")
            except Exception:  # pylint: disable=broad-except
                problems[name] = traceback.format_exc(limit=-2)


def in_order(procedures):
    """Yield procedures, each behind those that give what it needs."""
    left = list(procedures)
    while left:
        missing = {name for each in left for name in each.gives}
        ready = [each for each in left if not missing & (set(each.needs) - set(each.gives))]
        for each in ready or left:
            yield each
            left.remove(each)
            break


def bench_of(device, player):
    """Return the Bench of a device."""
    queue = pathlib.Path("/sys/block", device.name, "queue")
    size = int((queue.parent / "size").read_text()) << 9
    return probe.Bench(player, size, int((queue / "logical_block_size").read_text()),
                       int((queue / "nr_requests").read_text()),
                       int((queue / "max_sectors_kb").read_text()) << 10)


def run_all(bench, problems):
    """Run all procedures; return {name: Finding}."""
    found = {}
    for each in in_order(probe.PROCEDURES):
        name = each.function.__name__
        before = dict(bench.engine.bytes)
        print(f"@ {name}", flush=True)
        try:
            found |= {finding.name: finding for finding in each.function(bench, found)}
        except Exception:  # pylint: disable=broad-except
            problems[name] = traceback.format_exc(limit=-3)
        moved = {op: bench.engine.bytes[op] - before[op] for op in before}
        print(f"@ end {name} {moved}", flush=True)
    return found


def plain(value):
    """Return a value as JSON knows it."""
    return value.item() if hasattr(value, "item") else value


def measure(drive):
    """Probe a drive; return what was found, and what went wrong."""
    problems = {}
    modules(problems)
    with Device(drive["preset"], **drive["keys"]) as device:
        device.queue("nomerges", "2")
        with contextlib.suppress(OSError):
            device.queue("wbt_lat_usec", "0")
        with load_beside(device, drive["beside"]), \
                engine.Engine(device.path, True, engine.find_program()) as player:
            found = run_all(bench_of(device, player), problems)
    return {"problems": problems, "found": {
        name: {"value": plain(finding.value), "unit": finding.unit,
               "confidence": plain(finding.confidence), "why": finding.why}
        for name, finding in found.items()}}


def main():
    """Probe the drives of the plan."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for drive in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        print(f"@@ {drive['name']}", flush=True)
        try:
            made = measure(drive)
        except (Exception, SystemExit):  # pylint: disable=broad-except
            made = {"problems": {"drive": traceback.format_exc(limit=-2)}, "found": {}}
        print(json.dumps({"name": drive["name"], **made}), flush=True)


if __name__ == "__main__":
    main()
