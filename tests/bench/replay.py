# SPDX-License-Identifier: GPL-2.0
"""Traces for the jobs that replay them.

During a replay fio reaps completions only when all slots are in use, and with
iodepth_batch_complete_min=0 it waits for each request before it submits the next: in both cases
its latencies mean nothing. So a trace is dealt out, request by request, to JOBS synchronous jobs,
each of which replays its part at the recorded times, within 1 ms. Up to JOBS requests are
outstanding, and each latency is measured when the request completes.
"""
import pathlib
import subprocess

import model

# More than any drive that replays traces takes at a time; numjobs of the jobs' files.
JOBS = 128
# ms after the start of fio at which the trace begins: by then all jobs run, in a guest, too.
START_MS = 2000


def deal(lines: list[str], folder: pathlib.Path):
    """Write the @lines of a log of trace-to-fio to JOBS logs in @folder. Times are whole ms since
    the start of fio, as the jobs begin one after the other."""
    requests = [line.split(maxsplit=2) for line in lines[1:]
                if line.split()[2] in ("read", "write")]
    name = requests[0][1]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(JOBS):
        part = ["fio version 2 iolog", f"{name} add", f"{name} open"]
        for us, _, what in requests[number::JOBS]:
            part += [f"{name} wait {START_MS + int(us) // 1000} 0", f"{name} {what}"]
        (folder / str(number)).write_text("\n".join(part) + "\n")


def logs(trace: pathlib.Path, folder: pathlib.Path, *options: str) -> str:
    """Convert a trace with these options of trace-to-fio, to logs in a @folder of the project;
    return their paths as the variable LOG."""
    done = subprocess.run([model.PROJECT / "tools/trace-to-fio/trace-to-fio", *options, trace],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise model.Failed(f"trace-to-fio fails for {trace}")
    deal(done.stdout.splitlines(), folder)
    return ":".join(str((folder / str(number)).relative_to(model.PROJECT))
                    for number in range(JOBS))
