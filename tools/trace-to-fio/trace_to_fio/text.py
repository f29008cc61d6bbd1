# SPDX-License-Identifier: GPL-2.0
"""Lines of a text, in constant memory."""
import codecs
import collections.abc

from trace_to_fio import TraceError
from trace_to_fio.source import BLOCK, Stream

# Characters of the longest line; no record of a trace is near it.
LONGEST = 1 << 16


def is_text(stream: Stream) -> bool:
    """Return true if the stream is no binary file."""
    head = stream.head(4096)
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" not in head


def decoder_of(stream: Stream) -> codecs.IncrementalDecoder:
    """Return the decoder for the stream's encoding, by its byte order mark. It never fails."""
    utf16 = stream.head(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8-sig")(errors="replace")


def lines(stream: Stream) -> collections.abc.Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its end)."""
    decoder = decoder_of(stream)
    number, rest = 0, ""
    while True:
        block = stream.read(BLOCK)
        text = rest + decoder.decode(block, final=not block)
        found = text.replace("\r\n", "\n").split("\n")
        rest = found.pop() if block else ""
        if len(rest) > LONGEST:
            raise TraceError(f"{stream.name}:{number + len(found) + 1}: the line is longer than "
                             f"{LONGEST} characters: it is no trace in text")
        for line in found:
            number += 1
            yield number, line
        if not block:
            return
