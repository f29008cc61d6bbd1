# SPDX-License-Identifier: GPL-2.0
"""Write one file for a report of a defect, about a drive or all of them.

It has versions, the kernel and its configuration, settings of queues and schedulers, statistics,
debugfs, blocked tasks, what sets the scheduler, rules of ssdctl, and the end of the kernel's log.
Serial numbers and names of the machine, its users and mounts are left out. No drive is opened, and
nothing that hangs is waited for. Root sees more than others; the file says what is missing.
"""
import argparse
import datetime
import json
import os

from ssd_common import files, output, packages
from ssd_common.version import VERSION
from ssd_ctl import CtlError, UsageError, schedulers
from ssd_ctl.drives import find, slug
from ssd_ctl.report import contributed, kernel_log, machine, names, of_drive, tasks
from ssd_ctl.report import text as as_text
from ssd_ctl.report.bounded import Budget
from ssd_ctl.report.redact import Redactor, tokens, walked

OK = 0
SCHEMA = 1
# Seconds for what is said of the machine, and to find names.
MACHINE_S, NAMES_S = 12, 15
# More drives are not reported at once.
MOST_DRIVES = 24
# Names that a file of a day may have.
MOST_FILES = 1000
# Facts of a drive that look like a serial number and are none.
SHOWN = ("device/model", "device/vendor", "device/rev", "device/name", "device/firmware_rev",
         "device/fwrev", "device/hwrev")


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    add = parser.add_argument
    add("device", nargs="?", metavar="DEVICE", help="only this drive, as in /dev/sdb "
                                                    "(default: all)")
    add("-o", "--output", metavar="FILE",
        help="a new file to write, - for stdout (default: ssdctl-report-DRIVE-DATE.txt in this "
             "folder)")
    add("--json", action="store_true", help="write JSON")
    add("--with-names", action="store_true",
        help="leave in serial numbers and names of the machine, its users and mounts")
    add("--contribute", metavar="FILE",
        help="write the drive's result instead, to send to the project: what it is and has, and "
             "what advise has found last")


def date() -> str:
    """Return today's date."""
    return datetime.date.today().isoformat()


def redactor(sections: list, common: list[str], budget: Budget) -> tuple[Redactor, list[str]]:
    """Return what leaves out names, and what it does not know. @common: names of drives."""
    found, lacking = names.known(budget)
    facts = [(section.title, name, value) for section in sections
             for name, value in section.facts.items()]
    shown = tokens(value for title, name, value in facts if name in SHOWN or title == "modules")
    system = [value for _, name, value in facts if name == "distribution"]
    return Redactor(found, tokens(system) | tokens(common) | set(schedulers.ALL), shown), lacking


def gathered(drives: list[str], with_names: bool) -> dict:
    """Return the report about drives of these names. @with_names: leave names in."""
    budget = Budget()
    # First what needs no drive; files and programs on one that hangs must not take all the time.
    log = [kernel_log.section(drives, budget), tasks.section(budget)]
    found = [*machine.sections(Budget(budget.seconds(MACHINE_S))), *log]
    found += [of_drive.state(name, budget) for name in drives]
    found += [of_drive.settings(name, budget) for name in drives]
    lacking = ["what only root may read: run it as root"] if os.geteuid() else []
    lacking += [line for section in found for line in section.lacking]
    redact, unknown = (None, []) if with_names else redactor(found, drives, Budget(NAMES_S))
    told = {"lacking": lacking + unknown, "sections": [
        {"title": section.title, "facts": section.facts} for section in found]}
    return {"schema": SCHEMA, "version": VERSION, "date": date(), "names": with_names,
            "names_unknown": bool(unknown), **(walked(told, redact) if redact else told)}


def checked_drives(args: argparse.Namespace) -> list[str]:
    """Return the names of the drives that the user means."""
    if args.device is not None:
        return [of_drive.name_of(args.device)]
    found = of_drive.names(Budget())
    if len(found) > MOST_DRIVES:
        raise CtlError(f"there are {len(found)} drives: name one")
    return found


def new_file(name: str, ending: str, text: str) -> str:
    """Write a report to a new file in this folder; return its name. @name: of a drive, or all."""
    for number in range(1, MOST_FILES):
        again = f"-{number}" if number > 1 else ""
        path = f"ssdctl-report-{slug(name)}-{date()}{again}.{ending}"
        if files.make_named(path, text):
            return path
    raise CtlError("there are too many reports of today in this folder: remove some")


def write(args: argparse.Namespace, drives: list[str], text: str) -> str:
    """Write a report; return the name of its file, "" if it is printed."""
    if not args.output:
        return new_file(drives[0] if args.device else "all", "json" if args.json else "txt", text)
    if files.opened(args.output) is not None:
        files.write_named(args.output, text)
        return ""
    if not files.make_named(args.output, text):
        raise CtlError(f"{args.output} exists: name a new file")
    return args.output


def contribute(args: argparse.Namespace) -> int:
    """Write the result of a drive; return the exit status."""
    if not args.device:
        raise UsageError("--contribute needs a drive")
    packages.need("jsonschema")
    files.check_named(args.contribute)
    drive = find(args.device)
    files.write_named(args.contribute, contributed.text(drive, contributed.stored(drive)))
    return OK


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.contribute:
        return contribute(args)
    drives = checked_drives(args)
    report = gathered(drives, args.with_names)
    text = json.dumps(report, indent=1) + "\n" if args.json else as_text.text(report)
    path = write(args, drives, text)
    if path:
        print(f"written: {path}")
        for line in report["lacking"]:
            print(f"missing: {output.plain(line)}")
        print("look through it, then attach it to a report in the project's issue tracker")
    return OK
