# SPDX-License-Identifier: GPL-2.0
"""Undo everything on all drives: remove the rules, select what the drives had before, turn the
hardware database off, and remove what ssdctl has stored, advice too."""
import argparse
import shutil

from ssd_ctl import STATE, CtlError, drives, hwdb, revert, rules, saved, udev
from ssd_ctl.said import Said, add_option
from ssd_probe import ProbeError

OK, FAILED = 0, 1


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    add_option(parser)


def remove_rules(said: Said) -> list[rules.Rule]:
    """Remove all rules; return them."""
    found = []
    for path in rules.files():
        rule = rules.read_rule(path)
        if rule:
            rules.remove(path)
            found.append(rule)
            said.facts["removed"].append(str(path))
            said(f"removed {path}")
        else:
            said(f"{path} is left: ssdctl did not write it")
    return found


def restore_drives(found: list[rules.Rule], said: Said) -> int:
    """Restore all drives that were changed; return the exit status. @found: the rules that were
    removed."""
    status = OK
    for drive in drives.every():
        kept = [rule.choice for rule in found if rule.fits(drive)]
        if not kept and not saved.path_of(drive).exists():
            continue
        try:
            status |= revert.restore(drive, kept, said)
        except (CtlError, ProbeError) as error:
            said(f"{drive.path} is left as it is: {error}")
            status = FAILED
    return status


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    said = Said(args.json, removed=[], drives={})
    with saved.alone():
        hwdb.disable(said)
        found = remove_rules(said)
        udev.reload()
        status = restore_drives(found, said)
        if STATE.exists():
            shutil.rmtree(STATE)
            said(f"removed {STATE}")
    said.end()
    return status
