# SPDX-License-Identifier: GPL-2.0
"""Find out what is inside an SSD by the times that its I/O takes.

Without --destroy it only reads. See ssd-probe(8).
"""
import argparse
import os
import sys

from ssd_common import ToolError, holding, load, output, packages
from ssd_common.arguments import Parser, parse_size
from ssd_common.drive import Drive
from ssd_common.version import VERSION
from ssd_probe import report

# Seconds of --load.
LOAD_S = 5
OK, FAILED = 0, 1


def option_parser() -> Parser:
    """Return the parser of the options."""
    parser = Parser(prog="ssd-probe", description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("device", nargs="?", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add("--destroy", action="store_true",
        help="write, too; all data on the drive are lost. Asks before")
    add("--quick", action="store_true", help="fewer repetitions: less sure")
    add("--only", action="append", default=[], metavar="NAMES",
        help="only procedures or findings of these names, separated by commas")
    add("--list", action="store_true", help="list the procedures and what they find, then end")
    add("--load", action="store_true",
        help=f"say in {LOAD_S} s whether the machine is too busy to trust a measurement, then "
             "end: status 0 if not, 1 if so")
    add("--seed", type=int, default=1, metavar="N", help="of random numbers (default: 1)")
    add("--range", type=parse_size, metavar="SIZE",
        help="use only so many bytes from the drive's start (default: all; with --quick and "
             "--destroy 32G)")
    add("--max-write", type=parse_size, metavar="SIZE",
        help="write no more than so many bytes in all (default: 3 times the range and 8G)")
    add("--fresh", action="store_true", help="do not go on with an interrupted run")
    add("--output", metavar="DIR", help="folder of the report's files (default: this folder)")
    parser.add_json_file()
    add("--html", metavar="FILE",
        help="write the report as HTML (- for stdout); with --json or --html no other file")
    add("--from", dest="source", metavar="FILE",
        help="measure nothing; show the report in this JSON file, and write it as --html")
    add("-q", "--quiet", action="store_true", help="no progress")
    add("--version", action="version", version=f"ssd-probe {VERSION}")
    return parser


def check_options(parser: Parser, args: argparse.Namespace):
    """Report an error if options do not go together."""
    if not (args.device or args.list or args.source):
        parser.error("name a drive, as in /dev/sdb")
    if args.device and args.source:
        parser.error("--from needs no drive")
    if args.output and (args.json or args.html):
        parser.error("--output goes with neither --json nor --html")
    if args.max_write and not args.destroy:
        parser.error("--max-write needs --destroy")
    if args.seed < 0:
        parser.error("--seed is below 0")


def check_load(drive: Drive) -> int:
    """Say whether the machine is too busy; return the exit status."""
    reasons = load.watch(drive, LOAD_S)
    for reason in reasons:
        print(f"too busy to trust a measurement: {reason}")
    if not reasons:
        print("quiet enough")
    return FAILED if reasons else OK


def with_packages():
    """Return the module that needs the packages, as the procedures do."""
    for module in ("numpy", "scipy"):
        packages.need(module)
    from ssd_probe import session
    return session


def probe(args: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit status."""
    if args.source:
        report.show(report.read_whole(args.source), report.asked(args))
        return OK
    if args.list:
        with_packages().show_list()
        return OK
    if os.geteuid():
        raise ToolError("must be run as root")
    drive = Drive(args.device)
    if args.load:
        return check_load(drive)
    if not args.destroy:
        with holding.reading(drive) as descriptor:
            return with_packages().Session(args, drive, descriptor).go()
    with holding.Held(drive) as held:
        return with_packages().Session(args, drive, held.descriptor, held).go()


def command() -> int:
    """Run the command line; return the exit status."""
    parser = option_parser()
    args = parser.parse(sys.argv[1:])
    check_options(parser, args)
    try:
        return probe(args)
    except ToolError as error:
        output.say(f"ssd-probe: {error}")
        return FAILED


def main() -> int:
    """Run the command; return its exit status."""
    output.prepare()
    return output.finish("ssd-probe", command)
