# SPDX-License-Identifier: GPL-2.0
"""Undo everything on all drives: select what the drives had before, turn the hardware database off,
remove the rules, and remove what ssdctl has stored, advice too."""
import argparse
import shutil

from ssd_common import former
from ssd_common.drive import Drive
from ssd_common.files import UNFINISHED
from ssd_ctl import STATE, CtlError, apply, drives, hwdb, revert, rules, saved, udev
from ssd_ctl.said import Said, add_option

OK, FAILED = 0, 1


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    add_option(parser)


def restore_drives(said: Said) -> tuple[int, list[Drive]]:
    """Restore all drives that were changed; return the exit status, and those that another program
    has, which are left as they are."""
    status, left = OK, []
    for drive in drives.every(others=True):
        kept = rules.choices(drive)
        changed = kept or saved.path_of(drive).exists()
        if not changed and not former.Journal(drive).path.exists():
            continue
        try:
            with apply.locked(drive):
                status |= FAILED if apply.finish_left(drive, said) else OK
                if changed:
                    status |= revert.restore(drive, kept, said)
        except CtlError as error:
            said(f"{drive.path} is left as it is: {error}")
            left.append(drive)
    return FAILED if left else status, left


def remove_rules(left: list[Drive], said: Said):
    """Remove all rules but those of drives that are left: they are needed for another try."""
    needed = {rule.path for drive in left for rule in rules.of(drive)}
    for path in rules.FOLDER.glob(UNFINISHED):
        # A command was killed while it wrote a rule.
        rules.remove(path)
    for path in rules.files():
        if not rules.is_ours(path):
            said(f"{path} is left: ssdctl did not write it")
        elif path not in needed:
            rules.remove(path)
            said.facts["removed"].append(str(path))
            said(f"removed {path}")


def remove_state(left: list[Drive], said: Said):
    """Remove what is stored, but for what drives that are left had before."""
    if left:
        needed = list(map(saved.path_of, left))
        for path in STATE.glob("*/*"):
            if path not in needed:
                path.unlink(missing_ok=True)
    elif STATE.exists():
        shutil.rmtree(STATE)
        said(f"removed {STATE}")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    with saved.alone(), Said(args.json, removed=[], drives={}) as said:
        status, left = restore_drives(said)
        hwdb.disable(said)
        remove_rules(left, said)
        udev.reload()
        remove_state(left, said)
        if left:
            said(f"again for {' '.join(drive.path for drive in left)}: ssdctl undo-all")
    return status
