# SPDX-License-Identifier: GPL-2.0
"""Undo everything on all drives: remove the rules, select what the drives had before, turn the
hardware database off, and remove what ssdctl has stored, advice too."""
import argparse
import shutil

from ssd_ctl import STATE, CtlError, drives, hwdb, revert, rules, saved, udev
from ssd_probe import ProbeError

OK, FAILED = 0, 1


def add_options(_: argparse.ArgumentParser):
    """The command has no options."""


def remove_rules() -> list[rules.Rule]:
    """Remove all rules; return them."""
    found = []
    for path in rules.files():
        rule = rules.read_rule(path)
        if rule:
            rules.remove(path)
            found.append(rule)
            print(f"removed {path}")
        else:
            print(f"{path} is left: ssdctl did not write it")
    return found


def restore_drives(found: list[rules.Rule]) -> int:
    """Restore all drives that were changed; return the exit status. @found: the rules that were
    removed."""
    status = OK
    for drive in drives.every():
        kept = [rule.choice for rule in found if rule.fits(drive)]
        if not kept and not saved.path_of(drive).exists():
            continue
        try:
            status |= revert.restore(drive, kept)
        except (CtlError, ProbeError) as error:
            print(f"{drive.path} is left as it is: {error}")
            status = FAILED
    return status


def run(_: argparse.Namespace) -> int:
    """Run the command."""
    with saved.alone():
        hwdb.disable()
        found = remove_rules()
        udev.reload()
        status = restore_drives(found)
        if STATE.exists():
            shutil.rmtree(STATE)
            print(f"removed {STATE}")
    return status
