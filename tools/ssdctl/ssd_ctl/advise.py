# SPDX-License-Identifier: GPL-2.0
"""Measure the schedulers on a drive and recommend one.

Each candidate (none, the kernel's schedulers, ours with their defaults, and with the tunables that
a report of ssd-probe gives) serves a load for a short time in turn, again and again, until it is
known which is best. The load runs on a file that is made for it and removed (--on FILE). With
--destroy and a question it runs on a free partition (--on PARTITION), or on the whole drive. The
scheduler that the drive has is restored.
"""
import argparse
import contextlib
import os
import pathlib

from ssd_ctl import CtlError, UsageError, apply, drives, hwdb, saved, schedulers
from ssd_ctl.advice import candidates, engine, report, rounds, sandbox, target, workload
from ssd_ctl.advice.progress import Shown
from ssd_ctl.choice import Choice
from ssd_probe import load, output
from ssd_probe.asking import confirmed
from ssd_probe.command import parse_size
from ssd_probe.drive import Drive, amount, read
from ssd_probe.run import duration
from ssd_probe.signals import Interrupted, interruptible, uninterrupted

OK = 0
MINUTES = 30.0
# The part of the drive's bytes that may be others' than fio's, and of fio's that may not be the
# drive's.
MOST_FOREIGN = 0.05
# Seconds of the look at the machine before.
LOOK_S = 1


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    add = parser.add_argument
    add("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add("--workload", default="desktop", metavar="LOAD",
        help="desktop, database, copy, or a job file of fio (default: desktop)")
    add("--on", metavar="PATH",
        help="a folder on the drive, or a new file in it: measure on a file there, which is "
             "removed; or, with --destroy, a partition of the drive")
    add("--destroy", action="store_true",
        help="measure on the whole drive, or on the partition that --on names; all data on it are "
             "lost. Asks before")
    add("--size", type=parse_size, metavar="SIZE",
        help="bytes to measure on, as in 8G (default: 4G; of a file, a quarter of what is free at "
             "most)")
    add("--probe", metavar="FILE",
        help="a report of ssd-probe (JSON), for tunables that fit the drive")
    add("--minutes", type=float, default=MINUTES, metavar="N",
        help=f"end after so long, decided or not (default: {MINUTES:g})")
    add("--seed", type=int, default=1, metavar="N",
        help="seed of the random orders and addresses (default: 1)")
    add("--json", nargs="?", const="-", metavar="FILE",
        help="write the report as JSON (without FILE, or with -: on stdout)")
    add("--html", metavar="FILE", help="write the report with plots as HTML (- for stdout)")
    add("--contribute", metavar="FILE",
        help="write an entry for the hardware database, to send to the project")
    add("--apply", action="store_true", help="select what is recommended, as ssdctl apply does")
    add("--fio", default="fio", metavar="COMMAND", help="the command that runs fio (default: fio)")
    add("-q", "--quiet", action="store_true", help="no progress")


def check_options(args: argparse.Namespace):
    """Raise UsageError if an option cannot be meant, CtlError if a file cannot be written."""
    if not args.minutes > 0:
        raise UsageError("--minutes has to be above 0")
    if args.seed < 0:
        raise UsageError("--seed is below 0")
    for path in filter(None, (args.json, args.html, args.contribute)):
        folder = pathlib.Path(path).absolute().parent
        if path != "-" and os.path.isdir(path):
            raise CtlError(f"{path} is a folder: name a file")
        if pathlib.Path(path).is_block_device():
            raise CtlError(f"{path} is a drive: name a file")
        if path != "-" and not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise CtlError(f"{folder} is not a folder that can be written to")


def progress_text(measured: rounds.Rounds) -> str:
    """Return how far a measurement is."""
    race = measured.race
    ahead, left = race.ahead(), len(race.running())
    gain = f", ahead: {ahead} {report.signed(measured.gain(ahead)[0])}" if race.rounds else ""
    return (f"round {measured.round + 1}: {left} of {len(race.names)} candidates left{gain}; "
            f"{duration(measured.left_s())} left at most")


def told(text: str):
    """Say what is no result and no progress."""
    output.say(f"ssdctl: {text}")


def give_back(drive: Drive, had: Choice):
    """Select what a drive had before it was measured."""
    if not drive.exists():
        return
    try:
        wrong = schedulers.restore(drive, had)
    except CtlError as error:
        wrong = [str(error)]
    if wrong:
        told(f"{drive.path} does not take back its former {' '.join(wrong)}")


def measure(args: argparse.Namespace, drive: Drive, where: target.Target,
            jobs: workload.Workload, found: list[candidates.Candidate], had: Choice
            ) -> tuple[rounds.Rounds, list[str], list[str]]:
    """Measure on a target; return what was measured, what disturbed it, and which candidates were
    left out and why. @had: what the drive has, and gets back."""
    shown, left_out = Shown(args.quiet), []

    def leave_out(line: str):
        left_out.append(line)
        told(line)
    try:
        found = candidates.selectable(drive, found, leave_out)
        give_back(drive, had)
        disturbed = sandbox.lacking() + load.watch(drive, LOOK_S)
        target.fill(where, lambda part: shown(f"write {amount(where.size)} once: {part:.0%}"))
        plan = rounds.Plan(limit_s=args.minutes * 60, seed=args.seed)
        # The text takes some ms, between windows: not for a line that is not shown.
        made = rounds.Rounds(drive, where, jobs, found, plan, engine.program(args.fio),
                             lambda now: shown.due() and shown(progress_text(now)))
        made.run()
        if made.foreign() > MOST_FOREIGN:
            disturbed.append(f"{made.foreign():.0%} of what the drive moved was not fio's (other "
                             "programs, or the file system)")
        if made.cached() > MOST_FOREIGN:
            disturbed.append(f"{made.cached():.0%} of what fio read came from the page cache "
                             "(direct=1 reads from the drive)")
        return made, disturbed, left_out
    finally:
        with uninterrupted():
            shown.clear()
            give_back(drive, had)


@contextlib.contextmanager
def counting(drive: Drive):
    """Have the kernel count what the drive does."""
    file = drive.queue / "iostats"
    off = read(file) == "0"
    if off:
        file.write_text("1")
    try:
        yield
    finally:
        if off:
            with contextlib.suppress(OSError):
                file.write_text("0")


def advise(args: argparse.Namespace, drive: Drive) -> dict:
    """Measure; return the report."""
    # What would fail at the end fails now.
    jobs = workload.load(args.workload)
    engine.program(args.fio)
    if args.contribute:
        hwdb.entry(drive, Choice(schedulers.NONE), [])
    found = candidates.candidates(schedulers.available(drive),
                                  candidates.probed_tunables(args.probe))
    with target.held(args.on, drive, args.size, args.destroy) as where:
        for job in jobs.jobs:
            jobs.parts_of(job, where.size)
        if where.held and not confirmed(where.held.device, "ssdctl",
                                        " (--on FILE measures on a file instead)"):
            raise CtlError("something else was typed: nothing was written")
        with apply.locked(drive):
            if where.held:
                # The answer may have taken long.
                where.held.refuse()
            had = schedulers.read_choice(drive)
            with counting(drive):
                measured, disturbed, left_out = measure(args, drive, where, jobs, found, had)
    return report.made_of(measured, drive, where, disturbed, had) | {"left_out": left_out}


def write(path: str, text: str):
    """Write a file that the user has named; - is stdout. It may be a device, a pipe or a link, so
    it is not replaced."""
    if path == "-":
        print(text, end="")
        return
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CtlError(f"{path} cannot be written: {error.strerror}") from None


def leave(args: argparse.Namespace, drive: Drive, made: dict):
    """Print the report, write the files that the user has named, and store the advice."""
    # The report comes first, since a file may not be writable; the advice last, since /var/lib may
    # not be either.
    if "-" not in (args.json, args.html):
        print(report.text(made))
    if args.json:
        write(args.json, report.as_json(made))
    if args.html:
        write(args.html, report.page(made))
    if args.contribute:
        write(args.contribute, hwdb.entry(drive, Choice.from_json(made["choice"]),
                                          report.evidence(made)))
    saved.keep_advice(drive, made)


def select(drive: Drive, choice: Choice):
    """Select what is recommended until the next boot."""
    with saved.alone():
        shown = apply.select(drive, choice)
    output.say(f"{drive.path} has {shown} until the next boot")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    check_options(args)
    saved.root()
    drive = drives.find(args.device)
    try:
        with interruptible():
            made = advise(args, drive)
    except Interrupted as signalled:
        told(f"interrupted: {drive.path} has {schedulers.present(drive)} as before")
        return 128 + signalled.number
    leave(args, drive, made)
    if args.apply:
        select(drive, Choice.from_json(made["choice"]))
    return OK
