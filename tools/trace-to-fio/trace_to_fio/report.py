# SPDX-License-Identifier: GPL-2.0
"""The summary of a trace as a table."""
from ssd_common.output import plain

from trace_to_fio.summary import BEFORE, MOST, WAYS

UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def size_text(count: float) -> str:
    """Return bytes in a unit in which they are a short number."""
    for unit in UNITS:
        if count < 1024 or unit == UNITS[-1]:
            return f"{count:,.0f} {unit}B" if count == int(count) else f"{count:,.1f} {unit}B"
        count /= 1024
    return ""


def row(name: str, values: list[str]) -> str:
    """Return a line of the table."""
    return f"{name:22}" + "".join(f"{value:>18}" for value in values)


def way_rows(found: dict) -> list[str]:
    """Return the lines that compare reads and writes."""
    ways = [found[name] for name in WAYS]
    requests = found["requests"]

    def line(name, of):
        return row(name, [of(way) if way["requests"] else "-" for way in ways])

    def sizes(at):
        return row("common sizes" if not at else "", [common(way, at) for way in ways])
    most = max(len(way.get("common_sizes", ())) for way in ways)
    rows = [row("", ["reads", "writes"]),
            line("requests", lambda way: f"{way['requests']:,}"),
            line("of all", lambda way: f"{100 * way['requests'] / requests:.1f} %"),
            line("bytes", lambda way: size_text(way["bytes"]))]
    rows += [line(f"size, {name}", lambda way, name=name: size_text(way["size_bytes"][name]))
             for name in ("smallest", "median", "mean", "p99", "largest")]
    rows += [sizes(at) for at in range(min(most, 3))]
    return [*rows, line("sequential", lambda way: f"{way['sequential_percent']:.1f} %"),
            line("footprint", lambda way: size_text(way["footprint_bytes"]))]


def common(way: dict, at: int) -> str:
    """Return one of the commonest sizes with its share."""
    sizes = way.get("common_sizes", ())
    if at >= len(sizes):
        return ""
    percent = 100 * sizes[at]["requests"] / way["requests"]
    return f"{size_text(sizes[at]['bytes'])} {percent:.0f} %"


def text(found: dict) -> str:
    """Return the table of what summary.figures() has found."""
    rate = found["rate"]
    devices = found["devices"]
    lines = [row("duration", [f"{found['duration_s']:,.3f} s"]),
             row("rate, mean", [f"{rate['requests_per_s']:,.1f} /s", size_text(
                 rate["bytes_per_s"]) + "/s"] if rate["requests_per_s"] else ["-"]),
             row("rate, busiest second", [f"{rate['busiest_second_requests']:,} /s"]),
             row("devices, end to end", [f"{len(devices):,}", size_text(found["span_bytes"])]),
             *(row(f"  {plain(each['name'])[:60]}", [f"{each['requests']:,}"])
               for each in devices[:MOST] if len(devices) > 1),
             row("footprint", [size_text(found["footprint_bytes"]),
                               f"units of {size_text(found['footprint_unit_bytes'])}"]),
             "", *way_rows(found), "",
             f"sequential: begins where one of the {BEFORE} reads or writes before it ended"]
    if len(devices) > MOST:
        lines.append(f"{len(devices) - MOST:,} more devices: --json")
    return "\n".join(line.rstrip() for line in lines)
