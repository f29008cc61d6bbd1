# SPDX-License-Identifier: GPL-2.0
"""Keep a scheduler across boots, by a udev rule, and select it now: the named one; without a name,
the advised one if it is decided and nothing was selected since, otherwise the present one."""
import argparse
import fcntl
import json
import pathlib
import shutil
import sys

from ssd_common.drive import Drive
from ssd_ctl import (
    CtlError, UsageError, apply, by_kind, drives, keeping, persist_kinds, recommend, rules, saved,
    schedulers, udev)
from ssd_ctl.choice import Choice, parse
from ssd_ctl.said import Said, add_option
from ssd_ctl.setters import Setter, boot

OK = 0


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", nargs="?", metavar="DEVICE", help="the drive, as in /dev/sdb")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--by-model", action="store_true",
                     help="for all drives of this model, not only for this one")
    how.add_argument("--by-path", action="store_true",
                     help="for whichever drive is attached where this one is")
    parser.add_argument("--recommended", action="store_true",
                        help="keep what ssdctl recommend says")
    how.add_argument("--all", action="store_true",
                     help="with --recommended, for all drives by their kinds, also for those that "
                          "come")
    parser.add_argument("--print", action="store_true", dest="shown",
                        help="print the rules and where they belong, and change nothing")
    apply.add_choice(parser)
    apply.add_even_unsure(parser)
    add_option(parser)


def check(args: argparse.Namespace):
    """Raise UsageError if the arguments do not go together."""
    if args.all and not args.recommended:
        raise UsageError("--all goes with --recommended")
    if args.all and args.device:
        raise UsageError(f"--all is for all drives: without {args.device}")
    if not args.all and not args.device:
        raise UsageError("name a drive, or give --recommended --all")
    if args.recommended and args.scheduler:
        raise UsageError(f"either {args.scheduler}, or --recommended")
    if args.recommended and args.even_unsure:
        raise UsageError(f"either {apply.EVEN_UNSURE}, or --recommended: not both")


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


def advised(drive: Drive) -> saved.Advice | None:
    """Return the advice if the drive still has the scheduler and the tunables that it had before
    it, otherwise None: what was selected since counts."""
    advice = saved.advised(drive)
    if not advice or not advice.had:
        return None
    had = Choice(advice.had.scheduler, advice.had.tunables)
    return advice if schedulers.holds(drive, had) else None


def taken_of(drive: Drive, wanted: Choice | None, even_unsure: bool
             ) -> tuple[saved.Advice | None, saved.Advice | None]:
    """Return the advice that counts, None if a choice is @wanted or there is none; and the same if
    it is taken, because it is decided, or undecided advice is taken, too, @even_unsure."""
    advice = None if wanted else advised(drive)
    return advice, advice if advice and (advice.sure or even_unsure) else None


def program() -> str:
    """Return the path of ssdctl that a rule calls, "" if others than root may change it."""
    installed = shutil.which("ssdctl", path="/usr/sbin:/usr/local/sbin")
    if installed:
        return installed
    path = pathlib.Path(sys.argv[0]).resolve()
    states = [place.stat() for place in (path, *path.parents)]
    return "" if any(state.st_uid or state.st_mode & 0o022 for state in states) else str(path)


def made_for(drive: Drive, choice: Choice, match: dict[str, str], by_model: bool) -> rules.Rule:
    """Return the rule that keeps a choice. @match: what it recognizes the drive by."""
    rule = rules.Rule(choice, rules.kernel_names(drive.name), match,
                      str(drive.identity()["model"]), by_model, program())
    if not rule.named(drive):
        raise CtlError(f"no rule is for drives with names as {drive.path}: it is a part of another "
                       "one")
    return rule


def alike(drive: Drive, rule: rules.Rule) -> list[str]:
    """Return the paths of other drives that are present and that a rule is for: not of another
    path of a multipath device to the same drive."""
    above = set(schedulers.multipaths(drive))
    return [other.path for other in drives.every(others=True)
            if other.name != drive.name and rule.named(other) and
            not above & set(schedulers.multipaths(other)) and rules.fitting(other, [rule])]


def replaced_by_place(drive: Drive, rule: rules.Rule) -> list[rules.Rule]:
    """Return the rules by a drive's serial number, which would decide before one by its place."""
    return [each for each in rules.of(drive)
            if not each.by_kind and each.path.name > rule.path.name]


def replaced(rule: rules.Rule, others: list[str]) -> list[str]:
    """Return what is lost of the rule's file when the rule is written. @others: drives that it is
    for, too."""
    old = rules.read_rule(rule.path)
    lost = rules.lost(rule.path, old and old.text())
    if old and old.choice != rule.choice:
        whose = " and ".join([old.model if old.model != rule.model else "this drive", *others])
        lost.append(f"until now that rule kept {old.choice} for {whose}")
    return lost


def removed(rules_of: list[rules.Rule], drive: Drive) -> list[str]:
    """Return what to say of rules that are removed, and of which other drives they were."""
    return [f"removed {rule.path}, which kept {rule.choice}" +
            (f", also for {' '.join(others)}" if (others := alike(drive, rule)) else "")
            for rule in rules_of]


def warnings(drive: Drive, rule: rules.Rule, others: list[str]) -> list[str]:
    """Return what to say of a rule that is for @others, too, unless it is for a model."""
    if rule.by_model or not others:
        return []
    what = "path" if rules.PATH in rule.match else "model and serial number"
    if what != "path" and udev.properties(drive).get(rules.PATH):
        way = ("; for a rule by the place instead: ssdctl persist --by-path "
               f"{drive.path} {rule.choice}")
    else:
        way = ", and udev knows nothing that tells them apart"
    have = "have" if len(others) > 1 else "has"
    return [f"{' '.join(others)} {have} the same {what}, so the rule is for "
            f"{'them' if len(others) > 1 else 'it'}, too{way}"]


def named(drive: Drive, args: argparse.Namespace) -> tuple[Choice | None, str]:
    """Return the choice that the arguments name, or that is recommended, None if they name none;
    and why no rule is made, "" if one is."""
    words = apply.named(args)
    if not args.recommended:
        return parse(words) if words else None, ""
    made = recommend.of(drive)
    return made.choice, "" if made.choice else (
        f"{drive.path} ({made.kind.title}) keeps what it has, and no rule is made: {made.why}")


def shown(args: argparse.Namespace) -> int:
    """Print the files of rules that would be installed; return the exit status."""
    if args.all:
        made = persist_kinds.texts(by_kind.File.recommended(program()))
    else:
        drive = drives.find(args.device)
        wanted, why = named(drive, args)
        if why:
            raise CtlError(why)
        match = rules.recognized_by(drive, args.by_model, args.by_path)
        _, taken = taken_of(drive, wanted, args.even_unsure)
        chosen = wanted or taken and taken.choice
        choice = (schedulers.possible(drive, chosen) if chosen else
                  present(drive, rules.choices(drive)))
        rule = made_for(drive, choice, match, args.by_model)
        made = {rule.path: rule.text()}
    if args.json:
        print(json.dumps({"files": {str(path): text for path, text in made.items()}}, indent=1))
    else:
        print("\n".join(f"# File: {path}\n{text}" for path, text in made.items()), end="")
    return OK


def selected(drive: Drive, wanted: Choice | None, taken: saved.Advice | None, kept: list[Choice]
             ) -> Choice:
    """Select what is to be kept, what is @wanted, the advice that is @taken or what the drive has;
    return it. @kept: what rules select when the drive appears."""
    if wanted or taken:
        return apply.select_held(drive, wanted or taken.choice, kept)
    return present(drive, kept)


def install(drive: Drive, rule: rules.Rule, instead: list[rules.Rule], lock: int
            ) -> tuple[rules.Rule, list[Setter], str]:
    """Install a rule and prove that the drive keeps what its rules say; return the one that
    decides, what may set something else, and why no event has proved it, "" if one has. @instead:
    rules to remove; @lock: the drive's."""
    with rules.installed(rule, drive, instead):
        # udev shares it for an event; programs that measure the drive still wait.
        fcntl.flock(lock, fcntl.LOCK_SH)
        failed = udev.reload() or keeping.stopped(drive)
        decides = (rules.of(drive) or [rule])[-1]
        return decides, keeping.prove(drive, decides, not failed), failed


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    check(args)
    if args.shown:
        return shown(args)
    with saved.alone(), Said(args.json) as said:
        if args.all:
            persist_kinds.keep(program(), said)
        else:
            keep(args, said)
    return OK


def keep(args: argparse.Namespace, said: Said):
    """Keep a drive's choice."""
    drive = drives.find(args.device)
    wanted, why = named(drive, args)
    if why:
        said(why, drive=drive.path, choice=None, rule=None)
        return
    match = rules.recognized_by(drive, args.by_model, args.by_path)
    with apply.locked(drive) as lock:
        apply.finish_left(drive, said)
        kept = rules.choices(drive)
        with saved.changing(drive, kept):
            advice, taken = taken_of(drive, wanted, args.even_unsure)
            choice = selected(drive, wanted, taken, kept)
            rule = made_for(drive, choice, match, args.by_model)
            others = alike(drive, rule)
            instead = replaced_by_place(drive, rule) if args.by_path else []
            lost = replaced(rule, others) + removed(instead, drive)
            decides, unsure, failed = install(drive, rule, instead, lock)
    source = "" if not taken else (
        ", as ssdctl advise recommends" if taken.sure else ", which leads by ssdctl advise")
    whose = drive.path if decides.path == rule.path else f"the model {rule.model}"
    said(f"{whose} keeps {choice}{source}: {rule.path}", drive=drive.path,
         choice=choice.as_json(), advised=bool(taken), rule=str(rule.path), also=others,
         unsure=list(map(str, unsure)))
    if advice and not taken:
        said(f"the advice is undecided, so {drive.path} keeps what it has: {apply.EVEN_UNSURE} "
             f"keeps {advice.choice}, which leads, instead")
    if decides.path != rule.path:
        said(f"{drive.path} itself keeps {decides.choice} by another rule, which decides: "
             f"{decides.path}")
    for line in (*lost, *warnings(drive, rule, others), *map(str, unsure), *boot.notes()):
        said(line)
    if failed:
        said(f"{failed}; no event has shown that the drive keeps it")
