# SPDX-License-Identifier: GPL-2.0
"""Measure the schedulers on a drive and recommend one.

Each candidate (none, the kernel's schedulers, ours with their defaults, and with the tunables that
a report of ssd-probe gives) serves a load for a short time in turn, again and again, until it is
known which is best. If it is not known in time, the answer is to keep the present one. The load
runs on a file that is made for it and removed (--on FILE). With --destroy and a question it runs on
a free partition (--on PARTITION), or on the whole drive. The scheduler that the drive has is
restored.
"""
import argparse

from ssd_common import files, pages
from ssd_common.arguments import Parser, parse_size
from ssd_ctl import UsageError
from ssd_ctl.apply import add_even_unsure

DEFAULT = "desktop"
MINUTES, MOST_MINUTES = 30.0, 100_000
# fio gets a million times as much, in 64 bits.
SEEDS = 1 << 31


def add_options(parser: Parser):
    """Add the options of the command."""
    add = parser.add_argument
    add("device", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add("--workload", metavar="LOAD",
        help=f"desktop, database, copy, or a job file of fio (default: {DEFAULT})")
    parser.add_verbatim("--fio", metavar="OPTIONS",
                        help="a load as a command line of fio has it, in one argument: "
                             "'--rw=randread --bs=4k'")
    add("--on", metavar="PATH",
        help="a folder on the drive, or a new file in it: measure on a file there, which is "
             "removed; or, with --destroy, a partition of the drive")
    add("--destroy", action="store_true",
        help="measure on the whole drive, or on the partition that --on names; all data on it are "
             "lost. Asks before")
    add("--size", type=parse_size, metavar="SIZE",
        help="bytes to measure on, as in 8G (default: 4G; of a file, a quarter of what is free at "
             "most)")
    add("--probe", metavar="FILE",
        help="a report of ssd-probe (JSON), for tunables that fit the drive")
    add("--minutes", type=float, default=MINUTES, metavar="N",
        help=f"end after so long, decided or not (default: {MINUTES:g})")
    add("--seed", type=int, default=1, metavar="N",
        help="seed of the random orders and addresses (default: 1)")
    parser.add_json_file()
    add("--html", metavar="FILE", help="write the report with plots as HTML (- for stdout)")
    add("--contribute", metavar="FILE",
        help="write the result, to send to the project: Documentation/real-drives.md")
    add("--apply", action="store_true", help="select what is recommended, as ssdctl apply does")
    add_even_unsure(parser)
    add("--fio-program", default="fio", metavar="COMMAND",
        help="the command that runs fio (default: fio)")
    add("-q", "--quiet", action="store_true", help="no progress")


def check_options(args: argparse.Namespace):
    """Raise UsageError if an option cannot be meant, ToolError if a file cannot be written."""
    if not 0 < args.minutes <= MOST_MINUTES:
        raise UsageError(f"--minutes has to be above 0 and at most {MOST_MINUTES}")
    if not 0 <= args.seed < SEEDS:
        raise UsageError(f"--seed has to be from 0 to {SEEDS - 1}")
    if args.fio is not None and (args.workload or not args.fio.strip()):
        raise UsageError("--fio has the load: give it, and no --workload" if args.workload else
                         "--fio needs the options of fio, as in --fio '--rw=randread --bs=4k'")
    for path in filter(None, (args.json, args.html, args.contribute)):
        files.check_named(path)
    if args.html:
        pages.need()
