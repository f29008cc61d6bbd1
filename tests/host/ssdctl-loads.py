#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl advise runs what people have: command lines of fio as they are pasted, job files that
# include others, jobs after each other, discards and flushes. What a job file includes is below its
# folder and its owner's; discards are refused where fio or the drive has none
# quick: host
"""How the jobs that a job may do (ssdctl-jobs.py) are put together."""

import contextlib
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/ssd-probe")]
SKIP = 4
if subprocess.run([sys.executable, "-c", "import numpy, scipy"], check=False,
                  capture_output=True).returncode:
    print("python3-numpy or python3-scipy is missing: scripts/setup tools")
    sys.exit(SKIP)

import job_fuzz  # noqa: E402  (in a folder added above)
import numpy  # noqa: E402
from checks import SEED, check  # noqa: E402
from ssd_ctl import CtlError, UsageError  # noqa: E402
from ssd_ctl import advise_options  # noqa: E402
from ssd_ctl.advice import engine, job_text, report, rounds, sequential, workload  # noqa: E402
from ssd_ctl.advice.workload import FLUSH, READ, TRIM, WRITE, Figures  # noqa: E402
from ssd_probe.arguments import Parser  # noqa: E402

COMMANDS = 500
# A command line as a report has it.
PASTED = """$ sudo fio --name=randwrite --filename=/dev/sdb --ioengine=libaio --iodepth=32 \\
    --rw=randwrite --bs=4k --direct=1 --size=10G --numjobs=4 --runtime=60 \\\t
    --time_based --group_reporting --output-format=json --output out.json | tee log
"""


def refused(call, because):
    """Check that a call is refused in one line that a terminal may have."""
    try:
        call()
    except CtlError as error:
        check(because in str(error) and str(error).isprintable(), f"refused: {error}")
    else:
        check(False, f"not refused: {because}")


def jobs_of(text):
    """Return the jobs of a command line: their names and options."""
    load = workload.of_command(text)
    return {job.name: load.options(job) for job in load.jobs}


def command_lines():
    """A command line is taken as a report has it: with fio before it and a pipe behind it, over
    several lines, with values in words of their own, and with the dashes of a word processor."""
    plain = {"rw": "randread", "bs": "4k"}
    check(jobs_of(PASTED) == {"randwrite": {
        "ioengine": "libaio", "iodepth": "32", "rw": "randwrite", "bs": "4k", "direct": "1",
        "numjobs": "4"}}, f"as pasted: {jobs_of(PASTED)}")
    for text in ("--rw=randread --bs=4k", "-rw=randread -bs=4k", "--rw randread --bs 4k",
                 "fio --rw=randread --bs=4k 2>&1", "# /usr/bin/fio --readwrite=randread --bs '4k'",
                 "\u2013rw=randread \u2014bs=4k", "\u2013-rw=\u201crandread\u201d --bs=4k",
                 "--rw=randread\n--bs=4k\n", "fio --rw=randread \\ --bs=4k > out; rm out",
                 "numactl -N 0 fio --rw=randread\xa0--bs=4k --name=fio --eta always --minimal",
                 "--thread --rw=randread --bs=4k --thread=0"):
        found = jobs_of(text)
        check([{key: value for key, value in job.items() if key != "thread"}
               for job in found.values()] == [plain] and list(found) == ["fio"], f"{text!r}")
    check(jobs_of("--bs=4k --name=a --rw=read --name=b --rw=write --bs=8k") == {
        "a": {"bs": "4k", "rw": "read"}, "b": {"bs": "8k", "rw": "write"}}, "two jobs")
    check(jobs_of("--name=global --bs=4k --name a --stonewall") ==
          {"a": {"bs": "4k", "stonewall": ""}}, "a shared section")
    check(jobs_of("--thread --numjobs=2 --size=25% --filename=/etc/shadow --write_bw_log=x") ==
          {"fio": {"thread": "", "numjobs": "2", "size": "25%"}}, "what is ours is dropped")
    check("/etc" not in workload.of_command("--filename=/etc/shadow").job_file(
        "/dev/measured", 64 << 20, "/logs", 1), "the file that it names is not measured")
    for text, because in (
            ("fio job.fio", "job.fio is no option of fio (a job file is given with --workload)"),
            ("--bs=4k x", "x is no option"), ("--bs", "--fio: bs= in [global]: write a number"),
            ("--rw=randread --ioengine=cpuio", "ioengine=cpuio in [global]: it does no I/O"),
            ("--exec_prerun=reboot", "it runs a program"), ("--client=host", "it runs elsewhere"),
            ("--trigger='rm -rf /'", "it runs a program"), ("--section=a", "use a job file"),
            ("--name=a --read_iolog=/etc/shadow", "in [a]: it replays a trace"),
            ("--name= --bs=4k", "is no section"), ("--name='a\x1b'", "is no section"),
            ("--newoption=1", "it is not known here"), ("--bs='4k", "No closing quotation"),
            ("fio --rw=read\nfio --rw=write", "there are several commands"),
            ("--bs=4k\nrw=trim", "rw=trim is no option"), ("--bs='4k\nrw=trim'", "write a number"),
            ("--iodepth=${NONE}", "NONE is not set"), ("--include=/etc/shadow", "not known")):
        refused(lambda text=text: workload.of_command(text), because)


def random_commands():
    """Of random command lines fio gets nothing but what a job may have."""
    dice, accepted = random.Random(SEED), 0
    for _ in range(COMMANDS):
        words = [f"--{dice.choice(job_fuzz.USUAL + job_fuzz.CRAFTED + job_fuzz.EVIL)}"
                 for _ in range(dice.randint(1, 3))]
        try:
            load = workload.of_command(" ".join(words))
        except CtlError as error:
            check(str(error).isprintable(), "printable") if not str(error).isprintable() else None
            continue
        accepted += 1
        made = load.job_file("/dev/measured", 64 << 20, "/logs", 1)
        if any(evil in made for evil in (job_fuzz.DRIVE, job_fuzz.FOLDER)):
            check(False, f"fio gets {made!r}")
    check(COMMANDS / 10 < accepted < COMMANDS, f"accepted: {accepted} of {COMMANDS}")


def words_of_ssdctl():
    """--fio takes the next word whatever it begins with, and no --workload beside it."""
    def parsed(*words):
        parser = Parser(prog="ssdctl advise")
        advise_options.add_options(parser)
        args = parser.parse(["sdb", *words])
        advise_options.check_options(args)
        return args
    for text in ("--size=1g --rw=read", "--rw=read", "--json", "-rw read", "fio --rw=read"):
        args = parsed("--fio", text, "--json")
        check((args.fio, args.json, args.device) == (text, "-", "sdb"), f"--fio {text!r}")
    check(parsed("--fio=--rw=read").fio == "--rw=read" and parsed().fio is None and
          parsed("--fio-program", "fio --x").fio_program == "fio --x", "in one word, and without")
    for words in (("--fio", "--rw=read", "--workload", "copy"), ("--fio", " ")):
        try:
            parsed(*words)
            check(False, f"not refused: {words}")
        except UsageError as error:
            check("--fio" in str(error), f"refused: {error}")


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
    """The latencies of flushes count for jobs that a rate limits, if the drive has flushes."""
    load = workload.Workload("x", "[a]\nrw=write\nrate_iops=50\nfsync=1\ndirect=1\n[b]\nrw=write\n"
                             "fsync=1\n[c]\nrw=write\nrate=1m\nfdatasync=4\n", "x.fio")
    check([part[1] for part in load.parts()] == [WRITE, None, WRITE], "a drive without flushes")
    check(load.unlogged() == ["c"], f"through the page cache: {load.unlogged()}")
    load.flushes = True
    check(load.parts() == [(0, WRITE, 1 / 6), (0, FLUSH, 1 / 6), (1, None, 1 / 3),
                           (2, WRITE, 1 / 6), (2, FLUSH, 1 / 6)], f"with: {load.parts()}")
    done = [{WRITE: Figures(100, 409600, 1.0, 2.0)}] * 3
    check(load.served(done, 2.0, 0, (80, 400)).tolist() ==
          [[100, 100], [80, 400], [100, 2], [100, 100], [80, 400]], "in a window with flushes")
    check(load.served(done, 2.0).tolist()[1] == [0, 2000], "in one without")


def said():
    """The report says which jobs ran after each other, and shows what there is of discards and
    flushes."""
    job = {"name": "a", "read": {"mbps": 1.0, "iops": 10.0, "mean_ms": 1.0, "p99_ms": 2.0}}
    found = {"name": "none", "gain": 1.0, "low": None, "high": None, "verdict": "leads",
             "jobs": [job], "flushes": {}, "aside": False, "runs": 1}
    made = {"candidates": [found], "leading": found, "disturbed": [], "unsettled": False,
            "uneven": [], "unlogged": ["log"], "changes": 0, "phases": [["a", "b"], ["c"]]}
    text = " ".join(report.notes(made))
    check("after each other, as stonewall and wait_for say" in text and "[a], [b], then [c]" in text
          and "[log] are those of the page cache" in text, text)
    check("flushes" not in report.table(made) and "discard" not in report.table(made), "without")
    made["phases"] = [["a"]]
    check("after each other" not in " ".join(report.notes(made)), "one phase")
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
    command_lines()
    random_commands()
    words_of_ssdctl()
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
