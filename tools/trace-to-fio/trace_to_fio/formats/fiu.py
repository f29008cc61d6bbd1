# SPDX-License-Identifier: GPL-2.0
"""The traces of FIU (SyLab), with a digest of each block's content."""
import re

from trace_to_fio import Malformed
from trace_to_fio.formats import Format, Found, Parser
from trace_to_fio.values import SECTOR, natural, writes

DIGEST = re.compile(r"[\da-fA-F]+", re.ASCII)


class Fiu(Parser):
    """Reads 'ns pid process sector sectors direction major minor digest'. The process may have
    spaces in its name."""

    def request(self, line: str) -> Found:
        if not line.strip():
            return None
        fields = line.split()
        if len(fields) < 9:
            raise Malformed(f"{len(fields)} fields instead of 9")
        sector, sectors, direction, major, minor, digest = fields[-6:]
        if not DIGEST.fullmatch(digest):
            raise Malformed(f"no digest: '{digest}'")
        natural(fields[1], "pid")
        device = f"{natural(major, 'major')},{natural(minor, 'minor')}"
        return (natural(fields[0], "the time"), device, writes(direction),
                natural(sector, "the sector") * SECTOR, natural(sectors, "the size") * SECTOR)


FORMAT = Format("fiu", "traces of FIU SyLab", lambda options, lines, guess: Fiu(), "ns")
