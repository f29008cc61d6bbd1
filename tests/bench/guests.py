# SPDX-License-Identifier: GPL-2.0
"""Runs in guests of scripts/lab, several guests in parallel."""
import collections.abc
import concurrent.futures
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time

import model
import storage

sys.path.insert(0, str(model.PROJECT / "scripts"))

from kbuild import quiet  # noqa: E402  (in a folder added above)

# Emulation occupies a CPU: more guests than CPUs only slow each other down.
GUESTS = int(os.environ.get("GUESTS", min(2, os.cpu_count())))
# The processes of the guests that run at the moment.
labs = set()


def cpu_seconds() -> float:
    """Return the seconds of CPU time, user and system, of all programs started so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Progress:
    """Report each of @steps steps on stderr, and an estimate of the time that is left."""

    def __init__(self, steps: int):
        self.steps = steps
        self.done = 0
        self.started = time.monotonic()
        self.lock = threading.Lock()

    @staticmethod
    def clock(seconds: float) -> str:
        """Return a time as minutes:seconds."""
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

    def step(self, text: str):
        """Report one more finished step."""
        with self.lock:
            self.done += 1
            passed = time.monotonic() - self.started
            left = passed / self.done * (self.steps - self.done)
            print(f"[{self.done:{len(str(self.steps))}}/{self.steps}] "
                  f"{self.clock(passed)}, about {self.clock(left)} left  {text}",
                  file=sys.stderr, flush=True)


def lab(command: list, log: pathlib.Path, handle: collections.abc.Callable[[str], None],
        options=("--virtual-time", f"--kernel={model.KERNEL}"), files=()):
    """Run @command in a guest of scripts/lab with @options and @files, pairs of a path in the
    guest's project and a path on the host. Call @handle with each line that it prints. Write
    its output and the lab's messages to @log."""
    options = [*options, *(f"--file={name}={path}" for name, path in files)]
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
            [model.PROJECT / "scripts/lab", *options, "--timeout=36000", "--", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out,
            cwd=model.PROJECT, text=True) as process:
        labs.add(process)
        for line in process.stdout:
            out.write(line)
            out.flush()
            handle(line)
        status = process.wait()
        labs.discard(process)
    if status:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = [f"    {line}" for line in lines if line and len(line) < 300][-8:]
        raise model.Failed("\n".join([f"guest ended with status {status}, log: {log}", *tail]))


def run_script(command: list, log: pathlib.Path):
    """Run a program of this folder on the host; write its output to @log."""
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              cwd=model.PROJECT, check=False)
    if done.returncode:
        raise model.Failed(f"{command[0].name} ended with status {done.returncode}, log: {log}")


def program_command(program: str, plan: str | pathlib.Path) -> list:
    """Return the command that makes the runs of a @plan in a guest. The lab replaces the
    project's path by its path in the guest, which is the same for every checkout: the length
    of a path changes the last digit of a figure."""
    return ["env", f"PYTHONPATH={model.PROJECT}/tests/lib", model.GUEST / program, plan]


def write_plan(path: pathlib.Path, runs: list[model.Run]):
    """Write the plan of @runs for a guest's program (guest/common.py). It has nothing that
    does not decide a result: a guest whose plan differs may give other figures."""
    path.write_text(json.dumps(list(map(model.plan_of, runs))))


def take_result(run: model.Run, printed: dict):
    """Set the result of a run to what the guest's program has @printed, with figures. The output
    of pass_runs.py (file_fio) is large and is not kept."""
    file_fio = printed.pop("file_fio", None)
    run.result = printed
    if file_fio:
        printed["figures"] = model.figures(file_fio, {})
    printed["figures"] = model.figures_of(run)


def run_guest(runs: list[model.Run], name: str, folder: pathlib.Path, progress: Progress,
              store: storage.Store | None = None, program: str = storage.PROGRAM):
    """Make @runs, all of them simulated or none, one after another in a guest, with a @program of
    the folder guest/. Set each run's result and put it into the @store as soon as the run has
    ended. The plan and the log are files of @folder that start with @name."""
    if store:
        store.check(runs)
    plan, log = folder / f"{name}.plan.json", folder / f"{name}.log"
    write_plan(plan, runs)
    waiting, clock = iter(runs), time.monotonic()

    def handle(line):
        nonlocal clock
        if not line.startswith("{"):
            return
        run = next(waiting)
        run.seconds, clock = time.monotonic() - clock, time.monotonic()
        take_result(run, json.loads(line))
        if store:
            store.keep(run)
        what = ", ".join([run.device, run.job, *(
            value for name, value in run.variables.items() if name != "LOG"), run.label])
        progress.step(f"{what}: {run.result['figures']['mbps']:.1f} MB/s")

    files = sorted({path for run in runs for path in storage.run_files(run)})
    lab(program_command(program, "plan.json"), log, handle,
        storage.options_of(runs[0], program),
        [("plan.json", plan), *((path.relative_to(model.PROJECT), path) for path in files)])
    if next(waiting, None):
        raise model.Failed(f"a result is missing, log: {log}")


def run_all(tasks: list[collections.abc.Callable[[], None]]):
    """Call @tasks, GUESTS of them in parallel. If one fails, end all guests and raise its
    exception."""
    with concurrent.futures.ThreadPoolExecutor(GUESTS) as pool:
        jobs = [pool.submit(task) for task in tasks]
        try:
            for job in concurrent.futures.as_completed(jobs):
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in tuple(labs):
                process.terminate()
            raise


def finish(main: collections.abc.Callable[[], int]):
    """Call the main function of a program and exit with its status. The guests end with the
    program, also when it is interrupted."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        quiet.finish(main)
    except model.Failed as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
