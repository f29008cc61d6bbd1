# SPDX-License-Identifier: GPL-2.0
"""Reading the requests of traces into a store, with what is wrong with their lines."""
import array
import collections
import collections.abc
import itertools
import sys

from ssd_common import output

from trace_to_fio import LeftOut, Malformed, NoTrace, Options, Request, TraceError
from trace_to_fio.detect import counted, first_lines, parser_for, refuse_unit
from trace_to_fio.formats import Parser, vscsi
from trace_to_fio.source import Sources, Stream, refuse_unreadable
from trace_to_fio.spool import CHUNK, Spool
from trace_to_fio.text import is_text, lines
from trace_to_fio.values import SECTOR

# Malformed lines that are shown; more are counted.
SHOWN = 3
# Malformed lines after which reading ends, unless they are to be skipped.
MANY = 1000
# Files that are named in a line.
NAMED = 3
# Names of devices; more are not names, but another column.
DEVICES = 1 << 18
# Bytes of the largest request, the end of the largest drive, and ns of the longest trace. fio's
# sizes have 32 bits, also when they have been widened to multiples of --align.
LARGEST, FARTHEST, LONGEST = 1 << 31, 1 << 60, 1 << 61

UNEVEN = (f"not all requests begin and end at multiples of {SECTOR} bytes: are those sectors? "
          "(--columns sector, sectors)")


def named(names: list[str]) -> str:
    """Return names for a line."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


class Reading:
    """Reads traces into @spool, whose device numbers are those of @devices, {name: number}.

    @only: name of the only device to keep, None: all
    @largest: bytes of the largest request that is no error, None: LARGEST
    @skip: go on after many malformed lines
    """

    def __init__(self, options: Options, spool: Spool, *, form: str | None = None,
                 only: str | None = None, largest: int | None = None, skip: bool = False):
        self.options, self.spool, self.form = options, spool, form
        self.only, self.largest, self.skip = only, min(largest or LARGEST, LARGEST), skip
        self.limit = "2 GiB" if self.largest == LARGEST else "--capacity"
        self.devices: dict[str, int] = {}
        self.formats: list[str] = []
        self.malformed = self.requests = self.guessed = 0
        self.left_out: collections.Counter[str] = collections.Counter()
        # {what has been assumed: names of the files}.
        self.assumed: dict[str, list[str]] = {}
        # Files of archives that are no traces, with the reason.
        self.without: list[tuple[str, TraceError]] = []
        # Whether requests of a file do not begin and end at sectors.
        self.uneven = False
        self.start: int | None = None
        self.columns = tuple(array.array(kind) for kind in "qqII")

    def read(self, paths: list[str]):
        """Read all files."""
        for stream in Sources().streams(paths):
            self._read_stream(stream)
        self._flush()
        if self.without and not self.formats:
            raise self.without[0][1]

    def _read_stream(self, stream: Stream):
        """Read a file. One of an archive may be no trace."""
        try:
            found, records = self._opened(stream)
        except TraceError as error:
            text = str(error)
            whole = TraceError(text if text.startswith(stream.name) else f"{stream.name}: {text}")
            if not (stream.member and isinstance(error, NoTrace)):
                raise whole from None
            self.without.append((stream.name, whole))
            return
        self.uneven = False
        self._take(stream.name, found, records)
        if self.uneven:
            self._assume([UNEVEN], stream.name)
        self._assume([*stream.notes, *found.notes()], stream.name)

    def _assume(self, notes: list[str], name: str):
        """Keep what has been assumed of a file."""
        for note in notes:
            self.assumed.setdefault(note, []).append(name)

    def notes(self) -> list[str]:
        """Return what the user has to know, a line each."""
        found = [f"{named(names)}: {note}" for note, names in self.assumed.items()]
        if self.without:
            found.append(f"{named([name for name, _ in self.without])}: no trace, left out")
        if self.left_out:
            found.append("left out: " + ", ".join(
                f"{count} {kind}" for kind, count in self.left_out.most_common()))
        return found

    def _opened(self, stream: Stream) -> tuple[Parser, collections.abc.Iterator]:
        """Return the parser of a file, and its numbered records."""
        refuse_unreadable(stream)
        head = stream.head(1 << 12)
        if not head:
            raise NoTrace("it is empty")
        version = None if is_text(stream) and self.form != vscsi.NAME else vscsi.version_of(head)
        if version:
            refuse_unit(vscsi.NAME, vscsi.UNIT, self.options)
            self.formats.append(vscsi.NAME)
            return vscsi.Vscsi(version), vscsi.records(stream, version)
        if not is_text(stream) or self.form == vscsi.NAME:
            raise NoTrace("it is a binary file of an unknown format")
        numbered = lines(stream)
        first, texts = first_lines(numbered)
        parser, name, notes = parser_for(self.form, self.options, texts)
        # With a format by name, any file would be of it.
        if stream.member and not counted(parser_for(self.form, self.options, texts)[0], texts)[0]:
            raise NoTrace(f"no line is of the format {name}")
        self.guessed += not self.form
        self.formats.append(name)
        self._assume(notes, stream.name)
        return parser, itertools.chain(first, numbered)

    def _take(self, name: str, parser: Parser, records: collections.abc.Iterator):
        """Take the requests of a file's records."""
        parse = parser.request
        for number, line in records:
            try:
                request = parse(line)
                if request:
                    self._keep(request, name)
            except Malformed as error:
                self._refuse(f"{name}:{number}: {output.plain(str(error))}")
            except LeftOut as error:
                self.left_out[str(error)] += 1

    def _keep(self, request: Request, name: str):
        """Keep a request."""
        ns, device, write, offset, size = request
        if not 0 < size <= self.largest:
            raise Malformed(f"{size} bytes exceed {self.limit}" if size else "a size of 0")
        if offset + size > FARTHEST:
            raise Malformed(f"at {offset} bytes, beyond any drive")
        device = device or name
        kind = self.devices.get(device)
        if kind is None:
            if self.only is not None and device != self.only:
                return
            kind = self._new(device)
        if self.start is None:
            self.start = ns
        ns -= self.start
        if (offset | size) % SECTOR:
            self.uneven = True
        if not -LONGEST < ns < LONGEST:
            raise Malformed("the time is more than 70 years from the first one")
        times, offsets, sizes, kinds = self.columns
        times.append(ns)
        offsets.append(offset)
        sizes.append(size)
        kinds.append(kind << 1 | bool(write))
        if len(times) >= CHUNK:
            self._flush()

    def _new(self, device: str) -> int:
        """Return the number of a device that is new."""
        if len(self.devices) >= DEVICES:
            raise TraceError(f"more than {DEVICES} devices: is that their column? (--columns)")
        return self.devices.setdefault(sys.intern(device), len(self.devices))

    def _flush(self):
        """Store what has been read."""
        if self.columns[0]:
            self.requests += len(self.columns[0])
            self.spool.add(*self.columns)
            self.columns = tuple(array.array(column.typecode) for column in self.columns)

    def _refuse(self, text: str):
        """Report a malformed line."""
        self.malformed += 1
        if self.malformed <= SHOWN:
            output.say(text)
        if self.malformed >= MANY and not self.skip and self.malformed > self.requests + \
                len(self.columns[0]):
            raise TraceError(f"at least {self.verdict()}")

    def verdict(self) -> str:
        """Return how many lines were malformed, and what may be wrong."""
        lines_were = "line was" if self.malformed == 1 else "lines were"
        guess = self.guessed and self.malformed > self.requests + len(self.columns[0])
        return (f"{self.malformed} {lines_were} malformed" +
                (f"; the format {self.formats[-1]} was a guess, --format names another"
                 if guess else ""))
