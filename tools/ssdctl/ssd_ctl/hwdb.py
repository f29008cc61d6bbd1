# SPDX-License-Identifier: GPL-2.0
"""Select what the hardware database says of a drive's model when the drive appears: on or off.
Without an argument, show whether it is on, and what it says of the drives."""
import argparse
import json
import os
import pathlib
import re
from collections.abc import Mapping

from ssd_common import files, output
from ssd_common.drive import Drive
from ssd_ctl import CtlError, drives, saved, udev
from ssd_ctl.choice import Choice, parse
from ssd_ctl.said import Said, add_option

OK, FAILED = 0, 1
# 60-ssd-iosched-hwdb.rules does nothing without it.
ENABLED = pathlib.Path("/etc/ssd-iosched/hwdb-enabled")
SCHEDULER, TUNABLES = "SSD_IOSCHED", "SSD_IOSCHED_TUNABLES"


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("state", nargs="?", choices=("on", "off"), help="turn it on or off")
    add_option(parser)


def choice_in(found: Mapping[str, str]) -> Choice | None:
    """Return the choice that properties from the database mean, None if there is none."""
    if not found.get(SCHEDULER):
        return None
    return parse([found[SCHEDULER], *found.get(TUNABLES, "").split()])


def of(drive: Drive) -> Choice | None:
    """Return what the database says of a drive."""
    found = udev.database(udev.properties(drive))
    try:
        return choice_in(found)
    except CtlError as error:
        raise CtlError(f"its entry in the hardware database is wrong, {error}: correct it, then "
                       "systemd-hwdb update") from None


def entry(drive: Drive, choice: Choice, notes: list[str]) -> str:
    """Return an entry of the database for drives of this model. @notes: lines of a comment that
    say what it rests on."""
    model = udev.model(udev.properties(drive))
    if not model:
        raise CtlError(f"udev knows no model of {drive.path}: the database cannot have it")
    lines = [*(f"# {note}" for note in notes), f"block:*:name:{glob(model)}:fwrev:*:",
             f" {SCHEDULER}={choice.scheduler}"]
    words = choice.as_words()[1:]
    return "\n".join(lines + ([f" {TUNABLES}={' '.join(words)}"] if words else [])) + "\n"


def glob(model: str) -> str:
    """Return what matches exactly this model in the database, or any character in the place of one
    that cannot be written there: # begins a comment."""
    return re.sub(r"[][*?\\#]", lambda char: "?" if char[0] in "]\\#" else f"[{char[0]}]", model)


def enable(said: Said):
    """Have udev apply the database."""
    files.write_ours(ENABLED, "# Written by ssdctl hwdb on; ssdctl hwdb off removes it.\n")
    said("drives of models in the hardware database get its settings when they appear")
    said(udev.reload() or "for those that are here now: udevadm trigger --action=add "
         "--subsystem-match=block")


def disable(said: Said):
    """Have udev ignore the database."""
    if not ENABLED.exists():
        return
    ENABLED.unlink()
    if not os.listdir(ENABLED.parent):
        ENABLED.parent.rmdir()
    said(f"removed {ENABLED}")


def show(as_json: bool) -> int:
    """Show what the database says; return the exit status."""
    found, wrong = {}, {}
    for drive in drives.every():
        try:
            found[drive.name] = of(drive)
        except CtlError as error:
            wrong[drive.name] = str(error)
    for name, why in wrong.items():
        output.say(f"ssdctl: {name}: {why}")
    status = FAILED if wrong else OK
    if as_json:
        print(json.dumps({"enabled": ENABLED.exists(), "drives": {
            name: choice and choice.as_json() for name, choice in found.items()}}, indent=1))
        return status
    print(f"the hardware database is {'on' if ENABLED.exists() else 'off'}")
    for name, choice in found.items():
        print(f"{name}: {choice or 'no entry'}")
    return status


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if not args.state:
        return show(args.json)
    with saved.alone(), Said(args.json, enabled=args.state == "on") as said:
        if args.state == "on":
            enable(said)
        else:
            disable(said)
    return OK
