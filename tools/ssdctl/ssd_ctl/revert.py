# SPDX-License-Identifier: GPL-2.0
"""Undo apply and persist of a drive: remove its rule, and select what it had before. If it is kept
by its kind, so are other drives: undo that for all of them. After a measurement that was killed,
restore what the drive had before that instead, if it takes that back."""
import argparse

from ssd_ctl import CtlError, apply, drives, rules, saved, schedulers, udev
from ssd_ctl.choice import Choice
from ssd_ctl.said import Said, add_option
from ssd_probe.drive import Drive

OK, FAILED = 0, 1


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add_option(parser)


def remove_rules(found: list[rules.Rule], said: Said):
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


def restore_kinds(but: Drive, said: Said) -> int:
    """Select what drives had before they were kept by their kinds, @but one; return the exit
    status."""
    status = OK
    for drive in drives.every(others=True):
        found = rules.of(drive) if drive.name != but.name else []
        if not found or not all(rule.by_kind for rule in found):
            continue
        kept = [rule.choice for rule in found]
        try:
            with apply.locked(drive):
                status |= restore(drive, kept, said)
                saved.forget(drive, kept)
        except CtlError as error:
            said(f"{drive.path} is left as it is: {error}, then ssdctl revert {drive.path}")
            status = FAILED
    return status


def ended(drive: Drive, kept: list[Choice], said: Said):
    """Say what a drive has after a measurement that was killed, and what is left to undo. @kept:
    what rules selected when it appeared."""
    said.facts["drives"][drive.path] = schedulers.read_choice(drive).as_json()
    if kept or saved.before(drive, kept):
        said(f"apply or persist is not undone: ssdctl revert {drive.path} again does that")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    with saved.alone():
        drive = drives.find(args.device)
        # Nothing is removed while another program has the drive, for another try.
        with apply.locked(drive), Said(args.json, removed=[], drives={}) as said:
            found = rules.of(drive)
            kept = [rule.choice for rule in found]
            differ = apply.finish_left(drive, said)
            if differ == []:
                ended(drive, kept, said)
                return OK
            status = restore(drive, kept, said)
            if any(rule.by_kind for rule in found):
                status |= restore_kinds(drive, said)
            remove_rules(found, said)
            saved.forget(drive, kept)
    return FAILED if differ else status
