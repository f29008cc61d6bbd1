#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: python3-numpy python3-scipy liburing2
"""Inside the guest: probe the drives of a plan of probe-score.py, as a user does. Print a line of
JSON for each, and what the command says meanwhile."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from common import FIO, PROJECT
from ssd import Device

COMMAND = PROJECT / "tools/ssd-probe/ssd-probe"


# Starts the command after the first argument, which is a load that waits for a line from descriptor
# 3. The load is the command's child, because the command ends where it finds other processes that
# use the drive. It stands for I/O that does not end it, such as that of a partition.
STARTED = 'load=$1; shift; (read -r _ && exec $load) <&3 >/dev/null 2>&1 & exec "$@" 3<&-'


def load_beside(device, options):
    """Return the command line of a load on the device, of fio with these options."""
    return [*FIO, "--name=beside", f"--filename={device.path}", "--direct=1", "--bs=4k",
            "--ioengine=psync", "--rate_process=poisson", "--time_based", "--runtime=1000000",
            "--norandommap", *options]


def started(command, load, gate):
    """Return a process of the command. A line that is written to the pipe @gate starts the load."""
    with open(gate[0], "rb") as waiting:
        return subprocess.Popen(
            ["sh", "-c", f"exec 3<&{waiting.fileno()}; {STARTED}", "sh", " ".join(load), *command],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, text=True, start_new_session=True,
            pass_fds=(waiting.fileno(),))


def probe(device, report, beside):
    """Probe the device; return what the command has said. It writes the file @report. @beside:
    options of fio for a load, which begins after the first procedure."""
    said, gate = [], os.pipe()
    with open(gate[1], "w", encoding="ascii") as begin, started(
            [COMMAND, "--destroy", "--fresh", f"--json={report}", device.path],
            load_beside(device, beside), gate) as process:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{device.name}\n")
            process.stdin.close()
        for line in process.stderr:
            print("@", line, end="", flush=True)
            said.append(line)
            if beside and line.startswith("[2/"):
                print("begin", file=begin, flush=True)
                beside = ()
        process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            while True:
                os.killpg(process.pid, 0)
                time.sleep(0.05)
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
