# SPDX-License-Identifier: GPL-2.0
"""Keep a scheduler across boots, by a udev rule, and select it now: the named one; without a name,
the advised one if nothing was selected since the advice, otherwise the present one."""
import argparse
import pathlib
import shutil
import sys

from ssd_ctl import apply, drives, rules, saved, schedulers, udev
from ssd_ctl.choice import Choice, parse
from ssd_ctl.said import Said, add_option
from ssd_probe.drive import Drive

OK = 0


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--by-model", action="store_true",
                     help="for all drives of this model, not only for this one")
    how.add_argument("--by-path", action="store_true",
                     help="for whichever drive is attached where this one is")
    apply.add_choice(parser)
    add_option(parser)


def present(drive: Drive, kept: list[Choice]) -> Choice:
    """Return what a drive has, without defaults. @kept: what rules select when it appears."""
    now, former = schedulers.read_choice(drive), saved.before(drive, kept)
    needed = Choice.recommended(now.scheduler).queue
    usual = apply.former_queue(now, former) if former else {}
    queue = {name: value for name, value in now.queue.items()
             if name in needed or usual.get(name, value) not in (value, schedulers.USUAL)}
    tunables = schedulers.changed(drive)
    # Of tunables without a known default the drive does not tell which are meant.
    for choice in filter(None, (*kept[-1:], saved.applied(drive))):
        meant = schedulers.held(drive, choice)
        # Each value once.
        for name in meant.tunables:
            tunables.pop(schedulers.SAME.get(name, name), None)
        tunables, queue = tunables | meant.tunables, queue | meant.queue
    return Choice(now.scheduler, dict(tunables), queue)


def advised(drive: Drive) -> Choice | None:
    """Return the advised choice if the drive still has the scheduler and the tunables that it had
    before the advice, otherwise None: what was selected since counts."""
    made = saved.advice(drive)
    if not made or "had" not in made:
        return None
    had = saved.choice_in(made, "had", drive, saved.advice_path)
    unchanged = schedulers.holds(drive, Choice(had.scheduler, had.tunables))
    return saved.choice_in(made, "choice", drive, saved.advice_path) if unchanged else None


def program() -> str:
    """Return the path of ssdctl that a rule calls, "" if others than root may change it."""
    installed = shutil.which("ssdctl", path="/usr/sbin:/usr/local/sbin")
    if installed:
        return installed
    path = pathlib.Path(sys.argv[0]).resolve()
    states = [place.stat() for place in (path, *path.parents)]
    return "" if any(state.st_uid or state.st_mode & 0o022 for state in states) else str(path)


def made(drive: Drive, choice: Choice, match: dict[str, str], by_model: bool) -> rules.Rule:
    """Return the rule that keeps a choice. @match: what it recognizes the drive by."""
    return rules.Rule(choice, rules.kernel_names(drive.name), match,
                      str(drive.identity()["model"]), by_model, program())


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    words = apply.named(args)
    with saved.alone(), Said(args.json) as said:
        drive = drives.find(args.device)
        match = rules.recognized_by(drive, args.by_model, args.by_path)
        with apply.changing(drive) as kept:
            advice = None if words else advised(drive)
            if words or advice:
                choice = apply.select_held(drive, advice or parse(words), kept)
            else:
                choice = present(drive, kept)
            rule = made(drive, choice, match, args.by_model)
            rules.install(rule, drive)
        source = ", as ssdctl advise recommends" if advice else ""
        said(f"{drive.path} keeps {choice}{source}: {rule.path}", drive=drive.path,
             choice=choice.as_json(), advised=bool(advice), rule=str(rule.path))
        decides = rules.of(drive)[-1]
        if decides.path != rule.path:
            said(f"{drive.path} itself has another rule, which decides: {decides.path}")
        failed = udev.reload()
        if failed:
            said(failed)
    return OK
