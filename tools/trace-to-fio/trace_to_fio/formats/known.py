# SPDX-License-Identifier: GPL-2.0
"""The formats of traces in text that are known."""
from trace_to_fio.formats import (Format, biosnoop, blkparse, fiu, ftrace, layout, named,
                                  simulators, tables, xperf)


def all_formats() -> dict[str, Format]:
    """Return the formats by name."""
    found = [*tables.FORMATS, blkparse.FORMAT, layout.FORMAT, ftrace.FORMAT, *named.FORMATS,
             biosnoop.FORMAT, xperf.FORMAT, fiu.FORMAT, *simulators.FORMATS]
    return {each.name: each for each in found}
