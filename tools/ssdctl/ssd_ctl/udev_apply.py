# SPDX-License-Identifier: GPL-2.0
"""Called by udev's rules: select what the drive's rule keeps, otherwise what the hardware database
says of its model, otherwise what is kept for its kind."""
import argparse
import os

from ssd_ctl import CtlError, drives, hwdb, rules, saved, schedulers

OK = 0


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("name", metavar="NAME", help="the kernel's name of the drive")


def run(args: argparse.Namespace) -> int:
    """Run the command. udev holds the drive's lock."""
    saved.root()
    drive = drives.find(args.name)
    # The properties are of udev, which runs this. What is kept for a kind is the last resort.
    kept = rules.of(drive, os.environ)
    own = [rule.choice for rule in kept if not rule.by_kind]
    choice = own[-1] if own else hwdb.choice_in(os.environ) or (kept[-1].choice if kept else None)
    if not choice:
        raise CtlError(f"{drive.path} has no rule of ssdctl, and no entry in the hardware database")
    schedulers.apply(drive, schedulers.possible(drive, choice))
    return OK
