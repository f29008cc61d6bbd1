# SPDX-License-Identifier: GPL-2.0
"""Watch a drive live: requests in the scheduler and at the drive, rates, percentiles of the
latency with the shares of the queue and of the drive, and what its scheduler shows.

The latencies are counted in the kernel by BPF programs on tracepoints, which end with the
command; debugfs need not be mounted.
"""
import argparse
import json
import shutil
import time

from ssd_ctl import drives, top_view
from ssd_ctl.top_lines import lines_of
from ssd_ctl.top_sample import Watch

SHORTEST, LONGEST = 0.1, 3600.0
INTERVAL = 1.0
# Columns of text that is not for a terminal.
COLUMNS = 100


def seconds(text: str) -> float:
    """Return the number of an interval."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not SHORTEST <= value <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not from {SHORTEST:g} to {LONGEST:g} seconds")
    return value


def times(text: str) -> int:
    """Return a number of repetitions."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def add_options(parser):
    """Add the options of `ssdctl top`."""
    parser.add_argument("device", metavar="DEVICE",
                        help="the drive, as in /dev/sdb; for a partition its drive is shown")
    parser.add_argument("--interval", type=seconds, default=INTERVAL, metavar="S",
                        help=f"seconds between two views, from {SHORTEST:g} on (default: 1)")
    parser.add_argument("--batch", type=times, metavar="N",
                        help="print N views as text instead of drawing on the terminal")
    parser.add_argument("--once", action="store_true",
                        help="the same as --batch 1: print the figures of one interval")
    parser.add_argument("--json", action="store_true",
                        help="print an object for each interval, one a line, until interrupted, "
                             "or as many as --batch says")


def run(args) -> int:
    """Watch a drive; return the exit status."""
    count = 1 if args.once else args.batch
    drive = drives.find(args.device, bare=True)
    if not (count or args.json):
        top_view.check_terminal()
    watch = Watch(drive)
    try:
        if count or args.json:
            print_views(watch, args, count)
        else:
            top_view.show(watch, args.interval)
    finally:
        watch.close()
    return 0


def print_views(watch: Watch, args, count: int | None):
    """Print @count intervals; None: without end."""
    before, done = watch.first, 0
    while count is None or done < count:
        time.sleep(max(0.0, before.time + args.interval - time.monotonic()))
        after = watch.snapshot()
        figures = watch.figures(before, after)
        if args.json:
            print(json.dumps(figures), flush=True)
        else:
            former = {} if figures["former_scheduler"] else before.files
            width = shutil.get_terminal_size((COLUMNS, 0)).columns
            print("\n".join(text for text, _ in lines_of(figures, former, width)), end="\n\n",
                  flush=True)
        before, done = after, done + 1
