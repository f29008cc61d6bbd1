#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: python3-numpy python3-scipy liburing2
"""Inside the guest: probe the drives of a plan of probe-score.py, as a user does. Print a line of
JSON for each, and what the command says meanwhile."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import FIO, PROJECT
from ssd import Device

COMMAND = PROJECT / "tools/ssd-probe/ssd-probe"


@contextlib.contextmanager
def load_beside(device, options):
    """Run fio with these options on the device meanwhile."""
    with subprocess.Popen(
            [*FIO, "--name=beside", f"--filename={device.path}", "--direct=1", "--bs=4k",
             "--ioengine=psync", "--rate_process=poisson", "--time_based", "--runtime=1000000",
             "--norandommap", *options], stdout=subprocess.DEVNULL) as load:
        try:
            yield
        finally:
            load.terminate()


def probe(device, report, beside):
    """Probe the device; return what the command has said. It writes the file @report. @beside:
    options of fio for a load, which begins with the first procedure: the command refuses to
    write to a drive that a program has open."""
    said = []
    with contextlib.ExitStack() as stack, subprocess.Popen(
            [COMMAND, "--destroy", "--fresh", f"--json={report}", device.path],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, text=True) as process:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{device.name}\n")
            process.stdin.close()
        for line in process.stderr:
            print("@", line, end="", flush=True)
            said.append(line)
            if beside and line.startswith("[2/"):
                stack.enter_context(load_beside(device, beside))
                beside = ()
        process.wait()
    return said


def measure(drive):
    """Probe a drive; return the report, and what was said if it is not complete."""
    with tempfile.TemporaryDirectory() as folder, \
            Device(drive["preset"], **drive["keys"]) as device:
        report = pathlib.Path(folder, "report.json")
        said = probe(device, report, drive["beside"])
        made = json.loads(report.read_text()) if report.exists() else {}
    failed = [line for line in said if "failed" in line]
    return {"found": made.get("findings", {}), "procedures": made.get("procedures", {}),
            "problems": failed if made else said[-5:]}


def main():
    """Probe the drives of the plan."""
    # On a drive of slow blocks a flush of a buffer may take minutes, which is no hang.
    pathlib.Path("/proc/sys/kernel/hung_task_timeout_secs").write_text("0")
    for drive in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        print(f"@@ {drive['name']}", flush=True)
        print(json.dumps(measure(drive)), flush=True)


if __name__ == "__main__":
    main()
