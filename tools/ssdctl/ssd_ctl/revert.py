# SPDX-License-Identifier: GPL-2.0
"""Undo apply and persist of a drive: remove its rule, and select what it had before. If it has a
rule of its own and is kept by its kind, too, only the former is undone. If it is kept by its kind
alone, so are other drives: undo that for all of them. After a measurement that was killed, restore
what the drive had before that instead, if it takes that back."""
import argparse
import contextlib

from ssd_common.drive import Drive
from ssd_ctl import CtlError, apply, by_kind, drives, rules, saved, schedulers, udev
from ssd_ctl.choice import Choice
from ssd_ctl.said import Said, add_option

OK, FAILED = 0, 1


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add_option(parser)


def remove_rules(found: list[rules.Rule | by_kind.KindRule], said: Said):
    """Remove rules, and have udev forget them."""
    for rule in found:
        rules.remove(rule.path)
        said.facts["removed"].append(str(rule.path))
        said(f"removed {rule.path}" + (f", for all drives of the model {rule.model}"
                                       if rule.by_model else ", for drives of all kinds"
                                       if rule.by_kind else ""))
    if found:
        udev.reload()


def restore(drive: Drive, kept: list[Choice], said: Said) -> int:
    """Select what a drive had before; return the exit status. @kept: what rules selected when it
    appeared."""
    try:
        before = saved.before(drive, kept)
        wrong = schedulers.restore(drive, before) if before else []
    except CtlError as error:
        said(f"{drive.path} does not have its former scheduler again: {error}; the next boot "
             "restores it")
        return FAILED
    if before:
        said(f"{drive.path} has {schedulers.present(drive)}{'' if wrong else ' as before'}")
        said.facts["drives"][drive.path] = schedulers.read_choice(drive).as_json()
    elif kept:
        said(f"{drive.path}: what it had before is not known, the next boot restores it")
    else:
        said(f"{drive.path}: there is nothing to undo")
    if wrong:
        said(f"{drive.path} does not take its former {' '.join(wrong)}: the next boot restores it")
        return FAILED
    return OK


def by_kinds(but: Drive) -> list[tuple[Drive, list[Choice]]]:
    """Return the drives that are kept by their kinds alone, @but one, with what is kept."""
    found = [(drive, rules.of(drive)) for drive in drives.every(others=True)
             if drive.name != but.name]
    return [(drive, [rule.choice for rule in kept]) for drive, kept in found
            if kept and all(rule.by_kind for rule in kept)]


def undo(undone: list[tuple[Drive, list[Choice]]], found: list[rules.Rule | by_kind.KindRule],
         said: Said) -> int:
    """Select what drives had before, and remove the rules that were @found; return the exit status.
    @undone: the drives, which are locked, and what rules selected when they appeared. What they had
    is known until the rules have gone, for another try."""
    status = OK
    for drive, kept in undone:
        status |= restore(drive, kept, said)
    remove_rules(found, said)
    for drive, kept in undone:
        saved.forget(drive, kept)
    return status


def undo_own(drive: Drive, own: list[rules.Rule], kind: by_kind.KindRule, said: Said) -> int:
    """Remove the rules of a drive's @own, and select what is kept for its kind; return the exit
    status."""
    kept, status = rules.choices(drive), OK
    try:
        with saved.changing(drive, kept):
            choice = apply.select_held(drive, kind.choice, kept)
        said(f"{drive.path} has {choice}, which is kept for its kind: ssdctl revert {drive.path} "
             "again undoes that for all drives")
    except CtlError as error:
        said(f"{drive.path} does not have {kind.choice}, which is kept for its kind: {error}; the "
             "next boot selects it")
        status = FAILED
    said.facts["drives"][drive.path] = schedulers.read_choice(drive).as_json()
    remove_rules(own, said)
    return status


def ended(drive: Drive, kept: list[Choice], said: Said):
    """Say what a drive has after a measurement that was killed, and what is left to undo. @kept:
    what rules selected when it appeared."""
    said.facts["drives"][drive.path] = schedulers.read_choice(drive).as_json()
    if kept or saved.before(drive, kept):
        said(f"apply or persist is not undone: ssdctl revert {drive.path} again does that")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    with saved.alone(), contextlib.ExitStack() as stack:
        drive = drives.find(args.device)
        # Nothing is changed while another program has one of the drives, for another try.
        stack.enter_context(apply.locked(drive))
        found = rules.of(drive)
        own = [rule for rule in found if not rule.by_kind]
        kinds = [rule for rule in found if rule.by_kind]
        others = by_kinds(drive) if kinds and not own else []
        for other, _ in others:
            stack.enter_context(apply.locked(other))
        said = stack.enter_context(Said(args.json, removed=[], drives={}))
        kept = [rule.choice for rule in found]
        differ = apply.finish_left(drive, said)
        if differ == []:
            ended(drive, kept, said)
            return OK
        if own and kinds:
            return undo_own(drive, own, kinds[-1], said) | (FAILED if differ else OK)
        for other, _ in others:
            differ = (apply.finish_left(other, said) or []) + (differ or [])
        status = undo([(drive, kept), *others], found, said)
    return FAILED if differ else status
