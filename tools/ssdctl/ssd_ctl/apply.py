# SPDX-License-Identifier: GPL-2.0
"""Select the named scheduler until the next boot; without a name, the advised one."""
import argparse
import contextlib
from collections.abc import Callable

from ssd_common import ToolError, former, output
from ssd_common.drive import Drive, read
from ssd_ctl import CtlError, UsageError, drives, rules, saved, schedulers
from ssd_ctl.choice import QUEUE, Choice, parse
from ssd_ctl.said import Said, add_option

OK = 0
EVEN_UNSURE = "--even-unsure"
# PAI has limits of its own for the queue while it is selected.
LIMITING = "pai"


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add_choice(parser)
    add_even_unsure(parser)
    add_option(parser)


def add_even_unsure(parser: argparse.ArgumentParser):
    """Add the option that takes advice that is undecided."""
    parser.add_argument(EVEN_UNSURE, action="store_true",
                        help="if the advice is undecided, take the scheduler that leads")


def add_choice(parser: argparse.ArgumentParser):
    """Add the arguments that name a choice."""
    parser.add_argument("scheduler", nargs="?", metavar="SCHEDULER",
                        help=", ".join(schedulers.ALL[:-1]) + f" or {schedulers.ALL[-1]}")
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE", default=[],
                        help="a tunable of the scheduler, or of the queue " +
                             ", ".join(QUEUE) + "; other tunables get their defaults")


def named(args: argparse.Namespace) -> list[str]:
    """Return the words that name a choice, none if there are none."""
    if args.scheduler is None:
        return []
    if "=" in args.scheduler:
        raise UsageError(f"name a scheduler before {args.scheduler}")
    return [args.scheduler, *args.settings]


def former_queue(choice: Choice, former: Choice) -> dict[str, str]:
    """Return the values that settings of the queue have for a choice that does not name them, by
    what the drive had before."""
    names = (choice.scheduler, former.scheduler)
    # A change of the scheduler resets nr_requests.
    reset = {"nr_requests"} if names[0] != names[1] else set()
    if LIMITING in names:
        reset.add(schedulers.LIMIT)
    found = {name: value for name, value in former.queue.items()
             if name in QUEUE and name not in reset}
    if schedulers.WBT in found:
        found[schedulers.WBT] = schedulers.throttling(choice.scheduler, former.scheduler,
                                                      found[schedulers.WBT])
    return found


def with_former_queue(choice: Choice, former: Choice | None) -> Choice:
    """Return a choice with the former values of the settings of the queue that another choice may
    have changed. @former: what the drive had before, if that is known."""
    if not former:
        return choice
    return Choice(choice.scheduler, choice.tunables,
                  former_queue(choice, former) | choice.queue)


def advised(drive: Drive, even_unsure: bool) -> Choice:
    """Return the advised choice, or the one that leads if the advice is undecided and @even_unsure
    is true."""
    advice = saved.advised(drive)
    if not advice:
        raise CtlError(f"no advice is stored for {drive.path}: run ssdctl advise "
                       f"{drive.path}, or name a scheduler")
    if not advice.sure and not even_unsure:
        raise CtlError(f"the advice for {drive.path} is undecided ({advice.choice.scheduler} "
                       f"leads): run ssdctl advise {drive.path} for longer (--minutes), name a "
                       f"scheduler, or give {EVEN_UNSURE}")
    return advice.choice


@contextlib.contextmanager
def locked(drive: Drive):
    """Hold the drive's lock, which a program holds that measures the drive. Gives the lock's
    descriptor."""
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(drive.locked())
        except ToolError as error:
            raise CtlError(str(error)) from None
        yield lock


def finish_left(drive: Drive, say: Callable[[str], None]) -> list[str] | None:
    """Restore what a measurement that was killed has changed on a drive, whose lock is held; return
    None if there was none, otherwise what the drive does not take back, which is given up. @say: is
    called with what was done."""
    differ = former.restore_left(drive)
    if differ is not None:
        how = (f" and does not take back its former {' '.join(differ)}" if differ else
               " again, as before")
        say(f"a measurement of {drive.path} was killed: it has {schedulers.present(drive)}{how}")
    return differ


@contextlib.contextmanager
def changing(drive: Drive):
    """Hold the drive's lock, remember what was there before, and restore it after an error. Gives
    what rules select when the drive appears."""
    with locked(drive):
        finish_left(drive, lambda line: output.say(f"ssdctl: {line}"))
        kept = rules.choices(drive)
        with saved.changing(drive, kept):
            yield kept


def select_held(drive: Drive, choice: Choice, kept: list[Choice]) -> Choice:
    """Select a choice inside changing(), which gives what is @kept; return it as far as the drive
    can have it, with the values as the kernel shows them."""
    choice = schedulers.possible(drive, choice)
    schedulers.apply(drive, with_former_queue(choice, saved.before(drive, kept)))
    shown = schedulers.as_shown(drive, choice)
    saved.keep_applied(drive, shown)
    return shown


def select(drive: Drive, choice: Choice) -> Choice:
    """Select a choice, and remember what was there before; return it as select_held() does."""
    with changing(drive) as kept:
        return select_held(drive, choice, kept)


def overruling(drive: Drive) -> str:
    """Return a line about the rule that selects something else than what a drive has, "" if there
    is none."""
    kept = rules.of(drive)
    if not kept or schedulers.holds(drive, kept[-1].choice):
        return ""
    return (f"{kept[-1].path} selects {kept[-1].choice} when the drive appears or changes: ssdctl "
            "persist keeps the present choice instead")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    words = named(args)
    with saved.alone(), Said(args.json) as said:
        drive = drives.find(args.device)
        choice = parse(words) if words else advised(drive, args.even_unsure)
        choice = select(drive, choice)
        said(f"{drive.path} has {choice} until the next boot", drive=drive.path,
             choice=choice.as_json())
        if read(drive.queue / "rotational") == "1" and choice.scheduler in schedulers.OURS:
            said(f"the kernel takes {drive.path} for a hard disk: if it is one, {choice.scheduler} "
                 "is not for it")
        if line := overruling(drive):
            said(line)
    return OK
