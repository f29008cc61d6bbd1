# SPDX-License-Identifier: GPL-2.0
"""Finding the format of a trace by its first lines: the format that can read them."""
import collections.abc
import dataclasses
import itertools

from ssd_common.output import plain

from trace_to_fio import LeftOut, Malformed, NoTrace, Options, TraceError
from trace_to_fio.formats import Format, Parser, ftrace
from trace_to_fio.formats.events import is_around
from trace_to_fio.formats.known import all_formats
from trace_to_fio.unreadable import kind_of

# Lines that are looked at, and lines of other events of ftrace that may be before them.
LINES, OTHERS = 1000, 100_000
# A format fits if at most one line in so many is malformed.
SOUND = 10
# Characters of a line that is shown.
SHOWN = 60
Numbered = collections.abc.Iterator[tuple[int, str]]


def first_lines(numbered: Numbered) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the (number, line) that are read to find the format, and the lines that show it. In a
    trace of ftrace they begin at the first block event."""
    first = list(itertools.islice(numbered, LINES))
    texts = [line for _, line in first]
    if not ftrace.lacks_block(texts):
        return first, texts
    for each in itertools.islice(numbered, OTHERS):
        first.append(each)
        if ftrace.is_block(each[1]):
            more = [each, *itertools.islice(numbered, LINES)]
            return [*first[:-1], *more], [line for _, line in more]
    return first, texts


@dataclasses.dataclass
class Trial:
    """A format and what it made of the first lines."""
    format: Format
    parser: Parser
    records: int
    malformed: int
    # What is wrong with the first malformed line.
    why: str

    def fits(self) -> bool:
        """Return true if the lines are of the format."""
        return self.records > 0 and self.malformed * SOUND <= self.records


def tried(fmt: Format, options: Options, lines: list[str]) -> Trial | None:
    """Return what a format makes of the first lines; None if they cannot be of it."""
    try:
        parser = fmt.make(options, lines, True)
    except Malformed:
        parser = None
    if not parser:
        return None
    return Trial(fmt, parser, *counted(parser, lines))


def counted(parser: Parser, lines: list[str]) -> tuple[int, int, str]:
    """Return how many of the lines a parser takes for records, and for malformed, and what is wrong
    with the first of these."""
    records = malformed = 0
    why = ""
    for number, line in enumerate(lines, 1):
        try:
            records += parser.request(line) is not None
        except LeftOut:
            records += 1
        except Malformed as error:
            malformed += 1
            why = why or f"line {number}: {plain(str(error))}"
    return records, malformed, why


def refuse_unit(name: str, unit: str | None, options: Options):
    """Raise an error if the user names a unit of times that are always in @unit."""
    if options.time_unit and unit:
        raise TraceError(f"the times of {name} are in {unit}: leave out --time-unit")


def parser_for(name: str | None, options: Options, lines: list[str]
               ) -> tuple[Parser, str, list[str]]:
    """Return the parser of a trace with these first lines, its format and what the user has to know
    of the choice. @name: the format, None: to be found"""
    formats = all_formats()
    if name or options.columns or options.layout is not None or options.layouts:
        name = name or ("csv" if options.columns else "blkparse-f")
        refuse_unit(name, formats[name].unit, options)
        try:
            parser = formats[name].make(options, lines, False)
        except Malformed as error:
            raise TraceError(str(error)) from None
        if not parser:
            raise TraceError("blkparse-f needs --blkparse-format, or --blkparse-event-format"
                             if name == "blkparse-f" else
                             f"--blkparse-format goes with blkparse-f, not with {name}")
        return parser, name, []
    refusals: list[TraceError] = []
    trials = []
    for fmt in formats.values():
        try:
            trial = tried(fmt, options, lines)
        except TraceError as error:
            refusals.append(error)
            continue
        if trial and trial.fits():
            trials.append(trial)
        elif trial and getattr(trial.parser, "header", None) and trial.why:
            refusals.append(NoTrace(f"the header is that of columns, but {trial.why}"))
    if not trials:
        # What knows the trace, but cannot read it, says more than what knows only its header.
        raise min(refusals, key=lambda error: isinstance(error, NoTrace),
                  default=NoTrace(unknown(lines)))
    best = min(trials, key=lambda trial: trial.malformed)
    notes = []
    others = [trial.format.name for trial in trials
              if trial is not best and trial.malformed == best.malformed]
    if others:
        notes.append(f"taken as {best.format.text}; it may be "
                     f"{' or '.join(formats[each].text for each in others)} "
                     f"(--format {', '.join(others)})")
    refuse_unit(best.format.name, best.format.unit, options)
    # A new parser, which has not seen the lines.
    return best.format.make(options, lines, True), best.format.name, notes


def unknown(lines: list[str]) -> str:
    """Return why no format has been found."""
    texts = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not texts:
        return "it is empty"
    kind = kind_of(lines)
    if kind:
        return kind
    number, first = next((text for text in texts
                          if not (text[1].startswith("#") or is_around(text[1]))), texts[0])
    shown = plain(first[:SHOWN]) + ("..." if len(first) > SHOWN else "")
    return (f"none of the formats can read it; line {number}: '{shown}'\n"
            "Name the format by --format, or its columns by --columns (see trace-to-fio(1)).")
