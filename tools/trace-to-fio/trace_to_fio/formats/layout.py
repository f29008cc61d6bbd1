# SPDX-License-Identifier: GPL-2.0
"""The output of blkparse -f, for all events, and -F, for some: the user says the format strings."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, Options, TraceError
from trace_to_fio.formats import Format, Found
from trace_to_fio.formats.blkparse import Blkparse, Runs, is_noise
from trace_to_fio.formats.events import MEANINGS, Events
from trace_to_fio.values import SECTOR

# {letter of blkparse's format: what it prints}.
FIELDS = {**dict.fromkeys("MmcpsnNSuUeTtP", r"-?\d+"), "D": r"\d+,\d+", "a": r"[A-Za-z]{1,2}",
          "d": r"[A-Z]+", "C": r".*?", "P": r"[\da-f ]*?"}
FIELD = re.compile(r"%-?\d*([A-Za-z])")
OPTION, FOR_EVENT = "--blkparse-format", "--blkparse-event-format"


def pattern_of(layout: str, option: str, event: str | None = None) -> re.Pattern:
    """Return the pattern of a line that blkparse prints with a format string. Each field is a group
    of the field's letter; they may be padded by spaces. @option: where it is from, @event: letter
    of the only event that has it"""
    fields = {**FIELDS, "a": event} if event in MEANINGS else FIELDS
    layout = re.sub(r"(\\n|\s)+$", "", layout).replace("\\t", "\t")
    pattern, end, seen = r"\s*", 0, set()
    for found in FIELD.finditer(layout):
        letter = found[1]
        if letter not in FIELDS:
            raise TraceError(f"{option}: blkparse has no field %{letter}")
        if letter in seen:
            raise TraceError(f"{option}: the field %{letter} is there twice")
        seen.add(letter)
        pattern += literal(layout[end:found.start()]) + rf"\s*(?P<{letter}>{fields[letter]})\s*"
        end = found.end()
    if not event or event in MEANINGS:
        check(seen, option)
    return re.compile(pattern + literal(layout[end:]) + r"\s*", re.ASCII)


def literal(text: str) -> str:
    """Return the pattern of what stands between fields; there may be more spaces."""
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", text)) if text.strip() else \
        r"\s*"


def check(letters: set[str], option: str):
    """Raise an error if lines with these fields do not say what a request is."""
    for needed, what in (("T", "%T, the seconds"), ("S", "%S, the sector"),
                         ("nN", "%n or %N, the size")):
        if not letters & set(needed):
            raise TraceError(f"{option} needs {what}")


def patterns_of(options: Options) -> list[tuple[str | None, re.Pattern]]:
    """Return (letter of the only event that has it, pattern) of each format string."""
    found = [(letter, pattern_of(layout, f"{FOR_EVENT} {letter}", letter))
             for letter, layout in options.layouts]
    if options.layout is not None:
        found.append((None, pattern_of(options.layout, OPTION)))
    requests = [(letter, each) for letter, each in found if not letter or letter in MEANINGS]
    for number, (letter, each) in enumerate(requests):
        option = f"{FOR_EVENT} {letter}" if letter else OPTION
        if "d" not in each.groupindex and options.write is None:
            raise TraceError(f"{option} has no %d, so nothing tells reads from writes: --op read "
                             "or --op write says what all are")
        for other, before in requests[:number]:
            if each.pattern == before.pattern:
                raise TraceError(f"{option} is that of {other} without %a: nothing tells their "
                                 "events apart")
    return found


class Layout(Events):
    """Reads lines of given format strings. Without one for all events, the other events have the
    default output."""

    def __init__(self, options: Options, lines: list[str]):
        self.patterns = patterns_of(options)
        self.others = Blkparse(options, lines) if options.layout is None else None
        found = (self.found(line) for line in lines)
        seen = {event for event, values in found if values}
        super().__init__(options, seen | (self.others.seen if self.others else set()))
        self.runs = Runs(options)
        if self.others:
            self.others.event, self.others.runs = self.event, self.runs

    def found(self, line: str) -> tuple[str, dict[str, str] | None]:
        """Return (letter of the event, fields by letter) of a line; "" if it does not say the
        event, None if no format string fits."""
        for event, pattern in self.patterns:
            found = pattern.fullmatch(line)
            if found:
                values = found.groupdict()
                return event or values.get("a", ""), values
        return "", None

    def notes(self) -> list[str]:
        return [*self.assumed, *self.runs.notes]

    def request(self, line: str) -> Found:
        event, values = self.found(line)
        if not values:
            if self.others:
                return self.others.request(line)
            if is_noise(line, self.runs):
                return None
            raise Malformed(f"not as {OPTION} says")
        if "T" in values:
            ns = self.runs.time(int(values["T"]) * 10**9 + int(values.get("t") or 0))
        if event == "m":
            return NO_REQUEST
        write = self.taken(event or self.event, values.get("d"), "")
        if write is None:
            return NO_REQUEST
        size = int(values["N"]) if "N" in values else int(values["n"]) * SECTOR
        # Passthrough commands have bytes, of which most are no sectors.
        if not size or size % SECTOR:
            raise LeftOut("events without sectors")
        return ns, self.device(values), write, int(values["S"]) * SECTOR, size

    def device(self, values: dict[str, str]) -> str:
        """Return the device's numbers, as far as they are there."""
        return values.get("D") or ",".join(values[letter] for letter in "Mm"
                                           if letter in values) or "0"


FORMAT = Format("blkparse-f", "blkparse -f or -F with the format of --blkparse-format",
                lambda options, lines, _: Layout(options, lines)
                if options.layout is not None or options.layouts else None, "s")
