# SPDX-License-Identifier: GPL-2.0
"""Keep a scheduler across boots, by a udev rule, and select it now: the named one; without a name,
the advised one if nothing was selected since the advice, otherwise the present one."""
import argparse
import os
import shutil
import sys

from ssd_ctl import apply, drives, rules, saved, schedulers, udev
from ssd_ctl.choice import Choice
from ssd_ctl.said import Said, add_option
from ssd_probe.drive import Drive

OK = 0


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    parser.add_argument("--by-model", action="store_true",
                        help="for all drives of this model, not only for this one")
    apply.add_choice(parser)
    add_option(parser)


def present(drive: Drive) -> Choice:
    """Return what a drive has, without defaults."""
    now = schedulers.read_choice(drive)
    former = saved.before(drive)
    needed = Choice.recommended(now.scheduler).queue
    queue = {name: value for name, value in now.queue.items()
             if name in needed or name in apply.STAY and former and
             former.queue.get(name, value) != value}
    return Choice(now.scheduler, dict(schedulers.changed(drive)), queue)


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
    """Return the path of ssdctl that a rule calls."""
    return shutil.which("ssdctl", path="/usr/sbin:/usr/local/sbin") or os.path.realpath(sys.argv[0])


def made(drive: Drive, choice: Choice, match: dict[str, str], by_model: bool) -> rules.Rule:
    """Return the rule that keeps a choice. @match: what it recognizes the drive by."""
    return rules.Rule(choice, rules.kernel_names(drive.name), match,
                      str(drive.identity()["model"]), by_model, program())


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    words = apply.named(args)
    with saved.alone(), Said(args.json) as said:
        drive = drives.find(args.device)
        match = rules.recognized_by(drive, args.by_model)
        with apply.changing(drive):
            advice = None if words else advised(drive)
            if words or advice:
                choice = advice or apply.typed(drive, words)
                apply.select_held(drive, choice)
                choice = schedulers.as_shown(drive, choice)
            else:
                choice = present(drive)
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
