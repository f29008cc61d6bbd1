# SPDX-License-Identifier: GPL-2.0
"""The output of blkparse -f: the user says the format string."""
import re

from trace_to_fio import NO_REQUEST, LeftOut, Malformed, Options, TraceError
from trace_to_fio.formats import Format, Found
from trace_to_fio.formats.blkparse import Runs, is_noise
from trace_to_fio.formats.events import Events
from trace_to_fio.values import SECTOR

# {letter of blkparse's format: what it prints}.
FIELDS = {**dict.fromkeys("MmcpsnNSuUeTtP", r"-?\d+"), "D": r"\d+,\d+", "a": r"[A-Za-z]{1,2}",
          "d": r"[A-Z]+", "C": r".*?", "P": r"[\da-f ]*?"}
FIELD = re.compile(r"%-?\d*([A-Za-z])")
OPTION = "--blkparse-format"


def pattern_of(layout: str) -> re.Pattern:
    """Return the pattern of a line that blkparse prints with a format string. Each field is a group
    of the field's letter; they may be padded by spaces."""
    layout = re.sub(r"(\\n|\s)+$", "", layout).replace("\\t", "\t")
    pattern, end, seen = r"\s*", 0, set()
    for found in FIELD.finditer(layout):
        letter = found[1]
        if letter not in FIELDS:
            raise TraceError(f"{OPTION}: blkparse has no field %{letter}")
        if letter in seen:
            raise TraceError(f"{OPTION}: the field %{letter} is there twice")
        seen.add(letter)
        pattern += literal(layout[end:found.start()]) + rf"\s*(?P<{letter}>{FIELDS[letter]})\s*"
        end = found.end()
    check(seen)
    return re.compile(pattern + literal(layout[end:]) + r"\s*", re.ASCII)


def literal(text: str) -> str:
    """Return the pattern of what stands between fields; there may be more spaces."""
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", text)) if text.strip() else \
        r"\s*"


def check(letters: set[str]):
    """Raise an error if lines with these fields do not say what a request is."""
    for needed, what in (("T", "%T, the seconds"), ("S", "%S, the sector"),
                         ("nN", "%n or %N, the size")):
        if not letters & set(needed):
            raise TraceError(f"{OPTION} needs {what}")


class Layout(Events):
    """Reads lines of a given format string."""

    def __init__(self, options: Options, lines: list[str]):
        self.pattern = pattern_of(options.layout)
        self.known = set(self.pattern.groupindex)
        if "d" not in self.known and options.write is None:
            raise TraceError(f"{OPTION} has no %d, so nothing tells reads from writes: --op read "
                             "or --op write says what all are")
        found = (self.pattern.fullmatch(line) for line in lines)
        super().__init__(options, {each["a"] for each in found if each and "a" in self.known})
        self.runs = Runs(options)

    def notes(self) -> list[str]:
        return [*(self.assumed if "a" in self.known else []), *self.runs.notes]

    def request(self, line: str) -> Found:
        found = self.pattern.fullmatch(line)
        if not found:
            if is_noise(line, self.runs):
                return None
            raise Malformed(f"not as {OPTION} says")
        values = found.groupdict()
        ns = self.runs.time(int(values["T"]) * 10**9 + int(values.get("t") or 0))
        event = values["a"] if "a" in self.known else self.event
        if event == "m":
            return NO_REQUEST
        write = self.taken(event, values.get("d"), "")
        if write is None:
            return NO_REQUEST
        size = int(values["N"]) if "N" in self.known else int(values["n"]) * SECTOR
        if not size:
            raise LeftOut("events without sectors")
        return ns, self.device(values), write, int(values["S"]) * SECTOR, size

    def device(self, values: dict[str, str]) -> str:
        """Return the device's numbers, as far as they are there."""
        if "D" in self.known:
            return values["D"]
        return ",".join(values[letter] for letter in "Mm" if letter in self.known) or "0"


FORMAT = Format("blkparse-f", "blkparse -f with the format of --blkparse-format",
                lambda options, lines, _: Layout(options, lines) if options.layout else None,
                "s")
