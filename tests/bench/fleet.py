# SPDX-License-Identifier: GPL-2.0
"""Imported by bench.py: the same jobs on real drives of other machines, through ssh.

The file HOSTS names one drive in a line; '#' starts a comment:

    [USER@]ADDRESS[,PORT] /dev/NAME

All data on these drives is lost. A process on each machine (fleet_agent.py) holds the drive from
before the question to the last job, and checks it, with the modules that ssd-probe and ssdctl have
for that: it has to be a whole, empty, unused drive, and before each job the same one as when the
user was asked. It restores the drive's scheduler and settings when the connection ends. These
modules are sent through the connection: there are no files of them on the machine, which needs
Python, fio, util-linux, and root or sudo.

Times are wall-clock times of real machines: they do not repeat, and must not be compared with those
of emulated devices.
"""
import collections.abc
import contextlib
import dataclasses
import functools
import json
import pathlib
import re
import shlex
import string
import subprocess
import sys

import guests
import matrix
import model

# No '-' at first: it would be an option of ssh.
LINE = re.compile(r"([A-Za-z0-9_:][A-Za-z0-9_.:@-]*)(?:,(\d+))?\s+(/dev/[A-Za-z0-9_/-]+)")
LABEL = "real drives, wall-clock time"
# For the depth of the deep writers: the requests that such a drive is taken to take at a time.
TAGS = 64
# What is sent to a machine, each after what it imports.
AGENT = pathlib.Path(__file__).with_name("fleet_agent.py")
COMMON = model.PROJECT / "tools/common/ssd_common"
PARTS = ("drive", "output", "packages", "checked", "files", "signals", "former", "openers",
         "holding", "asking")
# Reads that from its input and starts it. It has no single quotes: the shell takes it as it is.
START = '''import json, sys, types
if sys.version_info < (3, 10):
    sys.exit("Python 3.10 or newer is needed there, it has " + sys.version.split()[0])
for name, text in json.loads(sys.stdin.readline()):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules["fleet_agent"].main()'''
# Seconds after which a connection without an answer is ended.
SSH = ("ssh", "-T", "-o", "ServerAliveInterval=15", "-o", "ConnectTimeout=15")
# What an answer of the agent has one of (fleet_agent.py).
ANSWERS = {"facts", "fio", "missing", "refused", "left"}
NO_PYTHON = 127


@dataclasses.dataclass
class Drive:
    """A drive of another machine."""
    host: str
    port: str | None
    device: str

    def __str__(self):
        return f"{self.host}{f',{self.port}' if self.port else ''} {self.device}"

    def command(self) -> list[str]:
        """Return the command that starts the agent."""
        # Isolated: otherwise modules in the folder of the login would replace Python's own.
        start = f"python3 -I -c '{START}' {shlex.quote(self.device)}"
        return [*SSH, *(("-p", self.port) if self.port else ()), "--", self.host,
                f"if [ $(id -u) = 0 ]; then exec {start}; else exec sudo -n {start}; fi"]


def modules() -> str:
    """Return the agent and what it imports, as START reads them: a line."""
    files = [("ssd_common", COMMON / "__init__.py"),
             *((f"ssd_common.{name}", COMMON / f"{name}.py") for name in PARTS),
             ("fleet_agent", AGENT)]
    return json.dumps([(name, path.read_text(encoding="utf-8")) for name, path in files])


def answer_in(line: str) -> dict:
    """Return the agent's answer that a line is, {} if it is something else: a login may print
    anything before."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and ANSWERS & found.keys() else {}


class Machine:
    """The agent beside a drive, which holds it until the end of the with block."""

    def __init__(self, drive: Drive):
        self.drive = drive
        try:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(drive.command(), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise model.Failed("ssh is missing: install openssh-client") from None
        try:
            self.found = self.ask(modules())
        except BaseException:
            self.close()
            raise

    def ask(self, line: str) -> dict:
        """Send a line; return the answer. Raise Failed if the machine refuses."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        answer = next(self.answers(), None)
        if answer is None:
            raise model.Failed(f"{self.drive}: {self.ended()}")
        if "refused" in answer:
            raise model.Failed(f"{self.drive}: refused: {answer['refused']}")
        return answer

    def answers(self) -> collections.abc.Iterator[dict]:
        """Give the agent's answers. Print what it could not restore."""
        for answer in filter(None, map(answer_in, self.process.stdout)):
            if "left" in answer:
                print(f"{self.drive}: {answer['left']}", file=sys.stderr)
            else:
                yield answer

    def ended(self) -> str:
        """Return why there is no answer."""
        said = self.process.stderr.read().strip()
        if self.process.wait() == NO_PYTHON:
            return f"Python 3.10 or newer is needed there ({said})"
        return said.splitlines()[-1] if said else "the connection has ended"

    def fio(self, text: str, scheduler: str) -> dict | None:
        """Run the job file @text under a scheduler. Return fio's result, None if the machine does
        not have this scheduler."""
        answer = self.ask(json.dumps({"job": text, "scheduler": scheduler}))
        try:
            return None if "missing" in answer else json.loads(answer["fio"])
        except ValueError:
            raise model.Failed(f"{self.drive}: fio printed no JSON") from None

    def close(self):
        """End the agent, which restores the drive's settings."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for _ in self.answers():
            pass
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def read_hosts(path: pathlib.Path) -> list[Drive]:
    """Return the drives that a HOSTS file names."""
    drives = []
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise model.Failed(f"{path}: {error.strerror}") from None
    for number, whole in enumerate(lines, 1):
        line = whole.partition("#")[0].strip()
        found = LINE.fullmatch(line)
        if line and not found:
            raise model.Failed(f"{path}:{number}: not '[USER@]ADDRESS[,PORT] /dev/NAME'")
        if line:
            drives.append(Drive(*found.groups()))
    if not drives:
        raise model.Failed(f"{path} names no drive")
    return drives


def confirm(machine: Machine):
    """Ask whether a drive may be overwritten; raise Failed if it may not."""
    drive, (meant, what) = machine.drive, machine.found["answer"]
    print(f"{drive}:", *machine.found["facts"], sep="\n    ")
    try:
        typed = input(f"Type {what}, to destroy all data on {drive}: ")
    except (EOFError, UnicodeDecodeError):
        typed = ""
    if " ".join(typed.split()).lower() != meant.lower():
        raise model.Failed(f"{drive} was not confirmed: nothing was written")


def job_text(machine: Machine, run: model.Run) -> str:
    """Return a run's job file with the values of its variables. Its jobs are threads of a process:
    nothing of fio outlives that."""
    text = string.Template((model.JOBS / f"{run.job}.fio").read_text()).substitute(
        {**run.variables, "DEVICE": machine.found["device"]})
    percentiles = ":".join(map(str, model.PERCENTILES))
    return (f"[global]\nthread=1\nlat_percentiles=1\nclat_percentiles=0\n"
            f"percentile_list={percentiles}\n") + text


def measure_cell(machine: Machine, name: str, workload: matrix.Workload, times: dict[str, str],
                 seeds: int, progress: guests.Progress) -> matrix.Cell:
    """Measure a workload on a drive with each of @seeds. fio counts what it gets done by its own
    runtime."""
    drive = machine.drive
    cell = matrix.Cell("fleet", str(drive), name)
    for seed in range(1, seeds + 1):
        for scheduler in (*model.PEERS, *model.ours()):
            run = model.Run("", workload.job, scheduler, device=str(drive),
                            variables=workload.variables | times | {"SEED": str(seed)})
            got = machine.fio(job_text(machine, run), scheduler)
            if got is None:
                progress.step(f"{drive}, {name}, {scheduler}: not run, the machine does "
                              "not have this scheduler")
                continue
            run.result = {"fio": got, "ssdemu": {}}
            run.result["figures"] = model.figures_of(run)
            cell.runs.append(run)
            progress.step(f"{drive}, {name}, {scheduler}: "
                          f"{run.result['figures']['mbps']:.1f} MB/s")
    return cell


def measure_drives(machines: list[Machine], measured: collections.abc.Callable[..., matrix.Cell],
                   workloads: dict[str, matrix.Workload]) -> tuple[list[matrix.Cell], list[str]]:
    """Return a cell, as @measured returns it, for each drive and workload, and why drives have
    ended before their last one: what was measured before is kept, but for the cell under way, in
    which schedulers would have different seeds."""
    cells, ended = [], []
    for machine in machines:
        try:
            for name, workload in workloads.items():
                cells.append(measured(machine, name, workload))
        except model.Failed as error:
            print(f"error: {error}", file=sys.stderr)
            ended.append(str(error))
    return cells, ended


def measure(path: pathlib.Path, quick: bool) -> tuple[list[matrix.Cell], list[str]]:
    """Hold, check, confirm and measure the drives of a HOSTS file; return what measure_drives()
    does. Raise Failed if there is nothing to return."""
    drives = read_hosts(path)
    seconds = 1 if quick else 30
    times = {"RAMP": "1500ms" if quick else "5s", "RUNTIME": f"{seconds}s"}
    workloads = {name: workload.on(TAGS) for name, workload in
                 (matrix.WORKLOADS_QUICK if quick else matrix.WORKLOADS).items()
                 if not workload.drives}
    seeds = matrix.SEEDS_QUICK if quick else matrix.SEEDS
    progress = guests.Progress(len(drives) * len(workloads) * seeds
                               * len((*model.PEERS, *model.ours())))
    with contextlib.ExitStack() as stack:
        machines = [stack.enter_context(Machine(drive)) for drive in drives]
        for machine in machines:
            confirm(machine)
        cells, ended = measure_drives(machines, functools.partial(
            measure_cell, times=times, seeds=seeds, progress=progress), workloads)
    if not cells:
        raise model.Failed("; ".join(ended))
    return cells, ended
