# SPDX-License-Identifier: GPL-2.0
"""What ssdctl advise does; its options are in advise_options.py."""
import argparse
import contextlib
import os

from ssd_common import files, former, load, output, packages
from ssd_common.asking import confirmed
from ssd_common.drive import Drive, amount, device_number
from ssd_common.lines import duration
from ssd_common.output import as_json
from ssd_common.signals import Interrupted, interruptible
from ssd_ctl import CtlError, UsageError, apply, drives, saved, schedulers, udev
from ssd_ctl.advice import (candidates, engine, report, rounds, sandbox, sequential, target,
                            workload)
from ssd_ctl.advice.progress import Shown
from ssd_ctl.advise_options import DEFAULT, check_options
from ssd_ctl.choice import Choice
from ssd_ctl.report import contributed

OK, UNDECIDED = 0, 3
# What is measured with: the kernel counts what the drive does.
MEASURING = {"iostats": "1"}
# The part of the drive's bytes that may be others' than fio's, and of fio's that may not be the
# drive's.
MOST_FOREIGN = 0.05
# Seconds of the look at the machine before.
LOOK_S = 1
# The longest wait for udev before the drive is changed.
SETTLE_S = 10


def progress_text(measured: rounds.Rounds) -> str:
    """Return how far a measurement is, and what is known so far."""
    race = measured.race
    text = f"round {measured.round + 1}: {len(race.running())} of {len(race.names)} candidates left"
    if race.runs > 1:
        ahead = race.ahead()
        bounds = report.between(*measured.gain(ahead)[1:])
        text += f", {ahead} leads{'' if ahead == race.names[0] else f', {bounds}'}"
    if race.runs >= sequential.LEAST_RUNS:
        text += f"; decided in time: {race.chance(measured.runs_left()):.0%}"
    return f"{text}; {duration(measured.left_s())} left at most"


def told(text: str):
    """Say what is no result and no progress."""
    output.say(f"ssdctl: {text}")


def give_back(drive: Drive, had: Choice):
    """Select what a drive had before it was measured, for the time until it is."""
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
    left out and why. @had: what the drive had before."""
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
        made = rounds.Rounds(drive, where, jobs, found, plan, engine.program(args.fio_program),
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
        shown.clear()


def advise(args: argparse.Namespace, drive: Drive) -> dict:
    """Measure; return the report."""
    # What would fail at the end fails now.
    jobs = workload.of_command(args.fio) if args.fio else workload.load(args.workload or DEFAULT)
    engine.program(args.fio_program)
    if args.contribute:
        contributed.text(drive, None)
    found = candidates.candidates(schedulers.available(drive),
                                  candidates.probed_tunables(args.probe))
    with target.held(args.on, drive, args.size, args.destroy) as where:
        jobs.check_place(where.size, where.kind, drive.number_of("discard_max_bytes") > 0)
        if where.held and not confirmed(where.held.device, "ssdctl",
                                        " (--on FILE measures on a file instead)"):
            raise CtlError("something else was typed: nothing was written")
        with apply.locked(drive):
            if where.held:
                # The answer may have taken long.
                where.held.refuse()
            apply.finish_left(drive, told)
            had = schedulers.read_choice(drive)
            with former.changed(drive, MEASURING, told):
                measured, disturbed, left_out = measure(args, drive, where, jobs, found, had)
    return report.made_of(measured, drive, where, disturbed, had) | {"left_out": left_out}


def leave(args: argparse.Namespace, drive: Drive, made: dict):
    """Print the report, write the files that the user has named, and store the advice. None of
    these is lost because another one fails."""
    try:
        write_report(args, drive, made)
    finally:
        saved.keep_advice(drive, made)


def write_report(args: argparse.Namespace, drive: Drive, made: dict):
    """Print the report, and write the files that the user has named."""
    # The report comes first, since a file may not be writable.
    if files.STDOUT not in map(files.opened, filter(None, (args.json, args.html))):
        print(report.text(made))
    if args.json:
        files.write_named(args.json, as_json(made))
    if args.html:
        files.write_named(args.html, report.page(made))
    if args.contribute:
        files.write_named(args.contribute, contributed.text(drive, made))


def select(drive: Drive, choice: Choice):
    """Select what is recommended, or leads, until the next boot."""
    # The end of the hold is a change for udev, whose rule may select something else: that comes
    # first.
    with contextlib.suppress(CtlError):
        udev.udevadm("settle", f"--timeout={SETTLE_S}")
    with saved.alone():
        shown = apply.select(drive, choice)
        overruling = apply.overruling(drive)
    output.say(f"{drive.path} has {shown} until the next boot")
    if overruling:
        output.say(overruling)


def drive_named(args: argparse.Namespace) -> Drive:
    """Return the drive that the user means. Who names a partition does not mean to lose all of the
    drive."""
    drive = drives.find(args.device)
    named = drives.device_path(args.device) if "/" not in args.device else args.device
    if args.destroy and not args.on and device_number(os.stat(named).st_rdev) != drive.number:
        raise UsageError(f"{named} is a partition: name the drive, and the partition with --on")
    return drive


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    check_options(args)
    saved.root()
    packages.need("jsonschema")
    drive = drive_named(args)
    try:
        with interruptible():
            made = advise(args, drive)
    except Interrupted as signalled:
        told(f"interrupted: {drive.path} has {schedulers.present(drive)} as before")
        return 128 + signalled.number
    leave(args, drive, made)
    if args.apply and (made["sure"] or args.even_unsure):
        select(drive, Choice.from_json(made["leading"]["choice"]))
    elif args.apply:
        told(f"undecided: {drive.path} keeps {schedulers.present(drive)} ({apply.EVEN_UNSURE} "
             f"selects {made['leading']['name']})")
    return OK if made["sure"] else UNDECIDED
