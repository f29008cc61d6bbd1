#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl advise runs job files as people have them: with others that they include, which are below
# their folder and their owner's, jobs after each other, discards, which are refused where fio or
# the drive has none, and flushes
# quick: host
"""How the jobs that a job may do (ssdctl-jobs.py) are put together."""

import contextlib
import itertools
import os
import pathlib
import random
import sys
import tempfile
import types
import unittest.mock

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from host import need  # noqa: E402  (in a folder added above)

need("numpy", "scipy")

import numpy  # noqa: E402  (in a folder added above)
from checks import check  # noqa: E402
from ssd_ctl import CtlError  # noqa: E402
from ssd_ctl.advice import engine, job_text, report, rounds, sequential, workload  # noqa: E402
from ssd_ctl.advice.workload import FLUSH, READ, TRIM, WRITE, Figures  # noqa: E402



def refused(call, because):
    """Check that a call is refused in one line that a terminal may have."""
    try:
        call()
    except CtlError as error:
        check(because in str(error) and str(error).isprintable(), f"refused: {error}")
    else:
        check(False, f"not refused: {because}")


class Tree:
    """A folder with a job file, and others."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def add(self, name, text):
        """Write a file in the folder."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def load(self, text):
        """Return the load of a job file."""
        return workload.load(str(self.add("job.fio", text)))


def includes():
    """A job file includes files below its folder, and they others, by the same rules as its own
    lines; no links, pipes, folders, files elsewhere or of another user, and not without end."""
    with tempfile.TemporaryDirectory() as outside, tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        tree.add("shared.inc", "# weight=3\nioengine=libaio\nfilename=/dev/sda\ninclude sub/more\n")
        tree.add("sub/more", "iodepth=8\ninclude=./last ; a comment\n")
        tree.add("sub/last", "direct=1\ninclude ../top\n")
        tree.add("top", "\ufeffbs=8k\n")
        load = tree.load("[a]\ninclude shared.inc\nrw=write\n[b]\nbs=4k\n")
        check(load.options(load.jobs[0]) == {
            "ioengine": "libaio", "iodepth": "8", "direct": "1", "bs": "8k", "rw": "write"} and
            load.options(load.jobs[1]) == {"bs": "4k"} and load.jobs[0].weight == 3,
            "of one job, in order")
        load = tree.load("[global]\ninclude top\n[a]\nrw=read\n")
        check(load.options(load.jobs[0]) == {"bs": "8k", "rw": "read"}, "of all jobs")
        secret = Tree(outside).add("secret", "bs=64k\n")
        tree.add("evil", "exec_prerun=reboot\n")
        tree.add("sections", "[c]\nrw=read\n")
        tree.add("loop", "include loop\n")
        tree.add("large", "#" * (1 << 20) + "\n")
        tree.add("binary", "bs=4k\0\0\0")
        (tree.folder / "link").symlink_to(secret)
        (tree.folder / "far").symlink_to(outside)
        os.mkfifo(tree.folder / "pipe")
        if not os.getuid():
            os.chown(tree.add("foreign", "bs=4k\n"), 1234, 1234)
        where = f"{tree.folder}/job.fio:2: include "
        for name, because in (
                ("none", f"{where}none: No such file"), (secret, "below the folder"),
                (f"../{pathlib.Path(outside).name}/secret", "below the folder"),
                ("sub/../../x", "below the folder"), (".", "below the folder"), ("", "below the"),
                ("link", "it is a link, or below one"), ("far/secret", "it is a link, or"),
                ("pipe", "it is no file of the job file's owner"), ("sub", "Is a directory"),
                ("evil", "evil:1: exec_prerun=reboot in [a]: it runs a program"),
                ("sections", "sections:1: [c]: an included file has no sections"),
                ("loop", "include each other too deep"), ("large", "larger than 1 MiB"),
                ("binary", "binary is no text"), ("${HOME}", "No such file"),
                *([] if os.getuid() else [("foreign", "it is no file of the job file's owner")])):
            refused(lambda name=name: tree.load(f"[a]\ninclude {name}\n"), because)
        refused(lambda: tree.load("include top\n[a]\n"), "top:1: bs=8k is in no section")
        tree.add("some", "#" * 100)
        refused(lambda: tree.load("[a]\n" + "include some\n" * 20000), "larger than 1 MiB")
        # A pipe has no folder.
        reader, writer = os.pipe()
        os.write(writer, b"[a]\ninclude top\n")
        os.close(writer)
        refused(lambda: workload.load(f"/proc/self/fd/{reader}"), "only a job file in a folder")
        os.close(reader)
        text, made = job_text.read(tree.folder / "job.fio")
        check(made.owner == os.getuid() and "include" in text, "the owner is the job file's")


def in_phases(text):
    """Return the names of the jobs by phase."""
    load = workload.Workload("x", text, "x.fio")
    return [[load.jobs[number].name for number in phase] for phase in load.phases]


PHASES = """[global]
rw=randread
[a]
[b]
# weight=3
[c]
stonewall
rw=randwrite
rate_iops=100
"""


def phases():
    """Jobs that wait for others run in a phase of their own, as stonewall and wait_for say."""
    for text, meant in (
            ("[a]\n[b]\n", "ab"), ("[a]\n[b]\nstonewall\n[c]\n", "a bc"),
            ("[a]\nstonewall\n[b]\nstonewall=1\n[c]\nwait_for_previous\n", "a b c"),
            ("[global]\nstonewall\n[a]\n[b]\n[c]\nstonewall=0\n", "a bc"),
            ("[global]\nstonewall=0\n[a]\n[b]\n", "ab"), ("[a]\n[b]\nwait_for=a\n[c]\n", "ac b"),
            ("[a]\n[b]\nstonewall\n[c]\nwait_for=b\n[d]\nwait_for=a\n", "a bd c"),
            ("[a]\n[b]\nexitall\nstartdelay=5\n", "ab"),
            ("[fill]\n# weight=0\n[a]\nstonewall\n[b]\n# weight=0\n", "ab")):
        found = in_phases(text)
        check([" ".join(names) for names in found] == [" ".join(each) for each in meant.split()]
              or ["".join(names).replace("fill", "") for names in found] == meant.split(),
              f"{text!r}: {found}")
    refused(lambda: workload.Workload("x", "[a]\n# weight=0\n", "x.fio"), "all weights are 0")
    load = workload.Workload("x", PHASES, "x.fio")
    made = [load.job_file("/dev/measured", 64 << 20, "/logs", 1, phase) for phase in (0, 1)]
    check("[0]" in made[0] and "[1]" in made[0] and "[2]" not in made[0] and "[2]" in made[1] and
          "[0]" not in made[1] and "stonewall" not in made[1], "fio gets the jobs of one phase")


def window(name, number, phase, flushes=(0, 0)):
    """Return a window of 2 s."""
    return engine.Window(name, number, 0, 2000, (4096, 4096), phase, flushes)


def measured_in_phases():
    """A round has a window of each phase; the jobs of a phase count by its windows alone."""
    load = workload.Workload("x", PHASES, "x.fio")
    figures = Figures(200, 819200, 4.0, 9.0)
    done = [[{READ: figures}, {READ: figures}, {}], [{}, {}, {WRITE: figures}]]
    parts = sum(load.served(done[phase], 2.0, phase) for phase in (0, 1))
    check(parts.tolist() == [[200, 2.0], [200, 2.0], [200, 800.0]], f"of both phases: {parts}")
    made = rounds.Rounds.__new__(rounds.Rounds)
    made.load, made.measured, made.settle_s = load, [], 0.1
    made.race = sequential.Race(["none", "bp"], load.weights())
    made.candidates = {name: types.SimpleNamespace(choice=types.SimpleNamespace(
        as_json=lambda: {})) for name in made.race.names}
    made.outcome = sequential.Outcome("none", False, [])
    # The second round of the second phase was cut for want of memory.
    made.take([rounds.Measured(window(name, number, phase, (10, 30)), done[phase])
               for phase, numbers in ((0, (0, 1)), (1, (0,))) for number in numbers
               for name in made.race.names])
    check([len(runs[0]) for runs in made.race.served.values()] == [1, 1], "rounds with all phases")
    check(made.uneven() == [] and made.waits_s() == 0.004, f"even, and short: {made.waits_s()}")
    found = report.candidate(made, "bp")
    check([job.get("read", job.get("write"))["iops"] for job in found["jobs"]] == [100, 100, 100],
          f"of the seconds of its phase: {found['jobs']}")
    check(found["flushes"] == {"iops": 5.0, "mean_ms": 3.0}, f"flushes: {found['flushes']}")
    made.windows, made.before_s, made.before_ios, made.plan = 8, 0.0, 0.0, rounds.Plan()
    made.passed, made.ios = lambda: 16.0, lambda: 800
    check(made.cost() == (16.0, 800.0), f"a run of two phases has eight windows: {made.cost()}")


class Once(rounds.Rounds):
    """Rounds whose fio and windows are made up."""

    def __init__(self, load):
        # pylint: disable=super-init-not-called
        self.load, self.race = load, sequential.Race(["none", "bp"], load.weights())
        self.plan, self.random, self.told = rounds.Plan(), random.Random(1), lambda _: None
        self.measured, self.lines_s, self.round, self.started = [], 0.0, 0, []

    def fio(self, phase):
        self.started.append(phase)
        log = numpy.array([[100, 1_000_000, READ, 4096]] * 5)
        logs = [log if number in self.load.phases[phase] else numpy.empty((0, 4))
                for number in range(len(self.load.jobs))]
        return contextlib.nullcontext(types.SimpleNamespace(check=lambda: None, logs=lambda: logs))

    def one_round(self, fio, order, phase):
        made = [window(name, self.round, phase) for name in order]
        self.round += 1
        return made


def run_in_phases():
    """A run starts fio once for each phase, and has the same rounds of all."""
    made = Once(workload.Workload("x", PHASES, "x.fio"))
    for number in (1, 2):
        made.take(made.one_run())
        check(made.started == [0, 1] * number and made.round == rounds.RUN * number,
              f"after run {number}: fio of phases {made.started}, {made.round} rounds")
    check(made.race.lengths == [rounds.RUN] * 2 and
          [len(one.jobs[0]) + len(one.jobs[2]) for one in made.measured] == [1] * 16,
          "each phase has figures of its jobs only")


def discards():
    """Jobs that discard count, are refused on a file and on a drive without discards, and need no
    reads or writes beside them."""
    load = workload.Workload("x", "[t]\nrw=randtrim\nbs=64k\n[w]\nrw=trimwrite\nrate_iops=5\n"
                             "[r]\nrw=randread\n", "x.fio")
    check([load.ways(job) for job in load.jobs] == [[TRIM], [WRITE, TRIM], [READ]], "directions")
    check([part[1] for part in load.parts()] == [None, WRITE, TRIM, None], f"{load.parts()}")
    load.check_place(64 << 20, "drive", True)
    refused(lambda: load.check_place(64 << 20, "file", True), "[t]: rw=randtrim discards: fio does "
            "that on a drive or a partition (--destroy), not on a file")
    refused(lambda: load.check_place(64 << 20, "partition", False), "the drive has no discards")
    workload.Workload("x", "[r]\nrw=read\n", "x.fio").check_place(64 << 20, "file", False)
    log = numpy.array([[100, 2_000_000, TRIM, 65536], [110, 4_000_000, TRIM, 65536]])
    found = workload.figures(log, 100, 200)
    check(found[TRIM] == Figures(2, 131072, 3.0, found[TRIM].p99), "discards in a log")
    check(load.served([found, found, {}], 0.1).tolist() ==
          [[32, 0.1], [0, 100], [2, 6], [0, 0.1]], "what they did")
    with tempfile.TemporaryDirectory() as folder:
        fields = "1 0 8 1 2 0 16 1 0 9 9 30 3 64 7 5 40"
        pathlib.Path(folder, "stat").write_text(fields)
        drive = types.SimpleNamespace(path="/dev/x", sysfs=pathlib.Path(folder))
        check(engine.completions(drive) == 36 and engine.moved(drive) == (4096, 8192) and
              engine.flushed(drive) == (5, 40), "of the kernel's counters")


def flushes():
    """The latencies of flushes count for jobs that write with a rate, if the drive has flushes."""
    load = workload.Workload("x", "[a]\nrw=write\nrate_iops=50\nfsync=1\ndirect=1\n[b]\nrw=write\n"
                             "fsync=1\n[c]\nrw=write\nrate=1m\nfdatasync=4\n[d]\nrw=read\nrate=1m\n"
                             "fsync=1\n[e]\nstonewall\nrw=write\nrate=1m\nfsync=1\nbuffered=0\n",
                             "x.fio")
    check([part[1] for part in load.parts()] == [WRITE, None, WRITE, READ, WRITE],
          "a drive without flushes")
    check(load.unlogged() == ["c"], f"through the page cache: {load.unlogged()}")
    load.flushes = {0}
    check(load.parts() == [(0, WRITE, 0.1), (0, FLUSH, 0.1), (1, None, 0.2), (2, WRITE, 0.1),
                           (2, FLUSH, 0.1), (3, READ, 0.2), (4, WRITE, 0.2)], f"{load.parts()}")
    done = [{WRITE: Figures(100, 409600, 1.0, 2.0)}] * 5
    check(load.served(done, 2.0, 0, (80, 400)).tolist()[:5] ==
          [[100, 100], [80, 400], [100, 2], [100, 100], [80, 400]], "in a window with flushes")
    check(load.served(done, 2.0).tolist()[1] == [0, 2000], "in one without")
    load.flushes = set()
    made = Once(load)
    made.selector = types.SimpleNamespace(select=lambda _: None)
    made.candidates, made.drive = {"none": None, "bp": None}, None
    kernel, now = iter((0, 3, 5, 40)), itertools.count(0, 1000)
    with unittest.mock.patch.multiple(
            engine, flushed=lambda _: (next(kernel), 0), completions=lambda _: 0,
            pause=lambda *_: None, milliseconds=lambda: next(now)):
        made.plan.least_s = 0.0
        made.pilot()
    check(load.flushes == {1} and len(made.race.weights) == len(load.parts()) == 6,
          "what the pilot saw of each phase")


def said():
    """The report says which jobs ran after each other, and shows what there is of discards and
    flushes."""
    job = {"name": "a", "read": {"mbps": 1.0, "iops": 10.0, "mean_ms": 1.0, "p99_ms": 2.0}}
    found = {"name": "none", "gain": 1.0, "low": None, "high": None, "verdict": "leads",
             "jobs": [job], "flushes": {}, "aside": False, "runs": 1}
    made = {"candidates": [found], "leading": found, "disturbed": [], "unsettled": False,
            "uneven": [], "unlogged": ["log"], "changes": 0, "phases": [["a", "b"], ["c"]],
            "workload": "own.fio"}
    text = " ".join(report.notes(made))
    check("after each other, as stonewall and wait_for say" in text and "[a], [b], then [c]" in text
          and "[log] are those of the page cache" in text, text)
    check("flushes" not in report.table(made) and "discard" not in report.table(made), "without")
    made["phases"] = [["a"]]
    check("after each other" not in " ".join(report.notes(made)), "one phase")
    check("at once" not in " ".join(report.notes(made)), "one job")
    made["phases"] = [["a", "b"]]
    text = " ".join(report.notes(made))
    check("at once, as in fio without stonewall: [a], [b]." in text, text)
    check("at once" not in " ".join(report.notes(made | {"workload": "desktop"})), "a load of ours")
    made["phases"] = [[str(number) for number in range(40)]]
    check("[5] and 34 jobs more" in " ".join(report.notes(made)), "many jobs at once")
    made["phases"] = [[str(number)] for number in range(40)]
    check("[5], and 34 phases more" in " ".join(report.notes(made)), "many phases")
    found["flushes"] = {"iops": 7.0, "mean_ms": 3.0}
    job["discard"] = job["read"]
    check("flushes/s" in report.table(made) and "discard MB/s" in report.table(made), "with")


def ended_early():
    """A job that ends while others go on ends the measurement, named if fio says which."""
    load = workload.Workload("x", "[a]\nrw=read\n[b]\nrw=read\n", "x.fio")
    for reported, because in ((["3;fio-3.33;1;0;5;x"], "job [b] failed"), ([], "has ended while")):
        fio = engine.Fio([], load, None, None, 1)
        fio.check_runs, fio.end, fio.lines = (lambda: None), (lambda: None), (
            lambda name, reported=reported: reported if name == "report" else [])
        fio.processes, fio.running = (lambda: [10, 11]), 3
        refused(fio.check, because)


def main():
    includes()
    phases()
    measured_in_phases()
    run_in_phases()
    discards()
    flushes()
    said()
    ended_early()


if __name__ == "__main__":
    main()
