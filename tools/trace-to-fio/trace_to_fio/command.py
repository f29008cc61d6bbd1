# SPDX-License-Identifier: GPL-2.0
"""Convert a recorded block trace to fio's replay format (read_iolog), or describe it.

See trace-to-fio(1).
"""
import argparse
import json
import re
import sys

from ssd_common import ToolError, output, packages
from ssd_common.arguments import Parser, parse_size
from ssd_common.version import VERSION

from trace_to_fio import Options, TraceError
from trace_to_fio.formats.known import all_formats
from trace_to_fio.formats.vscsi import NAME as VSCSI
from trace_to_fio.values import SECTOR, UNITS

NAME = "trace-to-fio"
OK, FAILED = 0, 1
# Bytes of the largest --align.
ALIGN = 1 << 30


def factor(text: str) -> float:
    """Return a factor above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no factor")
    return value


def size(text: str) -> int:
    """Return the bytes of a size as in 16G or 4k."""
    return parse_size(text.upper())


def letter(text: str) -> str:
    """Return the letter of an event of blktrace."""
    if not re.fullmatch(r"[A-Z]{1,2}", text):
        raise argparse.ArgumentTypeError(f"{text} is no event as Q, I, D or C")
    return text


def of_event(text: str) -> tuple[str, str]:
    """Return the letter and the format string of a value of blkparse -F."""
    found = re.fullmatch(r"([A-Z]),(.+)", text, re.DOTALL)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not as in 'D,%T.%9t %S %n %d'")
    return found[1], found[2]


def option_parser() -> Parser:
    """Return the parser of the options."""
    parser = Parser(prog=NAME, usage=f"{NAME} [options] TRACE...",
                    description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("traces", nargs="+", metavar="TRACE", help="files, also compressed or archives; - is the "
        "standard input")
    reading = parser.add_argument_group("how the trace is read")
    add = reading.add_argument
    add("--format", choices=[*all_formats(), VSCSI], metavar="NAME",
        help=f"{', '.join(all_formats())} or {VSCSI}; default: the one that can read the first "
             "lines")
    add("--columns", metavar="NAMES", help="what the columns are, separated by commas: time_s, "
        "time_ms, time_us, time_ns, time_100ns, op, is_read, is_write, scsi, offset, sector, size, "
        "sectors, dev, -")
    add("--time-unit", choices=UNITS, metavar="UNIT", help=f"of the times: {', '.join(UNITS)}")
    add("--op", choices=("read", "write"), help="what all requests are, if the trace does not say")
    add("--event", type=letter, metavar="LETTER", help="the event that is the request: Q, queued; "
        "I, inserted; D, issued; C, completed; default: Q, or D, I, C if it is missing")
    add("--blkparse-format", metavar="FORMAT", help="the format string of blkparse -f")
    add("--blkparse-event-format", type=of_event, metavar="LETTER,FORMAT", action="append",
        default=[], help="that of blkparse -F, for an event; may be repeated")
    add("--runs", choices=("together", "after"), default="together", help="several runs of "
        "blkparse in a file start together (default), or one after the other")
    add("--device", metavar="NAME", help="only this device")
    add("--skip-malformed", action="store_true",
        help="use the good lines; still report the others and fail")
    writing = parser.add_argument_group("what is written")
    add = writing.add_argument
    add("--iolog", type=int, choices=(2, 3), default=3, help="version of fio's format; times are "
        "exact to 1 us in 3 (default), to 1 ms in 2, which fio before 3.31 needs")
    add("--compress", type=factor, default=1, metavar="N", help="N times as fast")
    add("--capacity", type=size, metavar="SIZE",
        help="fold onto a device of this size: offsets modulo SIZE")
    add("--align", type=size, default=SECTOR, metavar="SIZE",
        help="widen requests to multiples of SIZE (default: 512)")
    add("--info", action="store_true", help="describe the trace as it was recorded instead")
    add("--json", action="store_true", help="describe it as JSON")
    add("--picture", metavar="FILE", help="draw it, to a file of this name: .svg, .png or .pdf")
    add("-q", "--quiet", action="store_true", help="no notes")
    add("--version", action="version", version=f"{NAME} {VERSION}")
    return parser


def check_options(parser: Parser, args: argparse.Namespace):
    """Report an error if options do not go together."""
    if args.align % SECTOR or (args.capacity and args.capacity % args.align):
        parser.error("--align must be a multiple of 512, --capacity one of --align")
    if args.align > ALIGN:
        parser.error("--align is at most 1G")
    if args.columns and args.format not in (None, "csv"):
        parser.error(f"--columns goes with --format csv, not with {args.format}")
    layouts = args.blkparse_format is not None or args.blkparse_event_format
    if layouts and args.format not in (None, "blkparse-f"):
        parser.error(f"--blkparse-format goes with --format blkparse-f, not with {args.format}")
    if args.columns and layouts:
        parser.error("--columns and --blkparse-format are of different formats")
    if args.traces.count("-") > 1:
        parser.error("the standard input is there once only")


def options_of(args: argparse.Namespace) -> Options:
    """Return what the user says about the trace."""
    return Options(event=args.event, time_unit=UNITS.get(args.time_unit),
                   write=None if args.op is None else args.op == "write", columns=args.columns,
                   layout=args.blkparse_format,
                   layouts=tuple(args.blkparse_event_format), after=args.runs == "after")


def described(args: argparse.Namespace, spool, devices: dict[str, int]):
    """Print and draw the summary."""
    from trace_to_fio import picture, report, summary
    from trace_to_fio.placing import bases
    found = summary.summary(spool, devices, *bases(spool, devices, SECTOR))
    figures = summary.figures(found)
    if args.picture:
        picture.draw(found, output.plain(", ".join(args.traces)), args.picture)
    if args.json:
        print(json.dumps(figures, indent=1))
    elif args.info:
        print(report.text(figures))


def converted(args: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit status."""
    packages.need("numpy")
    from trace_to_fio import iolog, picture, placing
    from trace_to_fio.reading import Reading
    from trace_to_fio.spool import Spool
    if args.picture:
        picture.check(args.picture)
    # None if the caller closed it. A picture alone is not written to it.
    if sys.stdout is None and (args.info or args.json or not args.picture):
        raise TraceError("standard output is closed")
    spool = Spool()
    reading = Reading(options_of(args), spool, form=args.format, only=args.device,
                      largest=args.capacity, skip=args.skip_malformed)
    reading.read(args.traces)
    names = output.plain(", ".join(args.traces))
    for note in [] if args.quiet else reading.notes():
        output.say(f"{NAME}: note: {note}")
    if reading.malformed and not args.skip_malformed:
        raise TraceError(f"{names}: {reading.verdict()}, nothing is written (--skip-malformed)")
    if not spool.count:
        raise TraceError(nothing(names, args, reading))
    if args.info or args.json or args.picture:
        described(args, spool, reading.devices)
    else:
        how = placing.Placing(args.align, args.capacity, args.compress)
        placing.check_length(spool, how)
        iolog.write(placing.placed(spool, reading.devices, how), args.iolog, sys.stdout)
    if reading.malformed:
        raise TraceError(f"{names}: {reading.verdict()} and left out")
    return OK


def nothing(names: str, args: argparse.Namespace, reading) -> str:
    """Return why there is no request."""
    if args.device is not None:
        return f"{names}: no request of {output.plain(args.device)}: --info lists the devices"
    events = {"blkparse", "blkparse-f", "ftrace"} & set(reading.formats)
    return f"{names}: no request" + (f" with event {args.event or 'Q'} (--event)" if events else "")


def command_line() -> int:
    """Run the command line; return the exit status."""
    parser = option_parser()
    args = parser.parse(sys.argv[1:])
    check_options(parser, args)
    try:
        return converted(args)
    except (TraceError, ToolError) as error:
        output.say(f"{NAME}: {error}")
    except BrokenPipeError:
        # The reader of the output has ended.
        raise
    except OSError as error:
        output.say(f"{NAME}: {error.filename or 'the system'}: {error.strerror}")
    return FAILED


def main() -> int:
    """Run the command; return its exit status."""
    output.prepare()
    return output.finish(NAME, command_line)
