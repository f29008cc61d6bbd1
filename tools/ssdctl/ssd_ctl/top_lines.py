# SPDX-License-Identifier: GPL-2.0
"""The text of `ssdctl top`: lines with styles, for a terminal of any width, from the figures of
top_sample.py."""
import math
from collections.abc import Iterator

from ssd_common.drive import amount
from ssd_ctl.latencies import CLASSES, DIRECTIONS, KINDS
from ssd_ctl.sched_files import Parsed, Row

# Styles of lines.
PLAIN, TITLE, HEAD, DIM, WARNING = "plain", "title", "head", "dim", "warning"
Line = tuple[str, str]
PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
LABEL, CELL = 12, 5
# Width of both spans of latencies.
BOTH = LABEL + 2 * (CELL + 1) * len(PERCENTILES) + 2
SHORT = {"real-time": "rt", "best-effort": "be", "idle": "idle"}
SHORTEST_BAR = 5
SHADES = " .:-=+*#%@"
# Of a table that is shown in part.
LEAST_ROWS = 3
# Counters of bp's two files with what they mean.
BP_COUNTERS = {"crossings": "blocks opened", "avoided": "opening avoided",
               "in_open": "in an open block", "both_in": "both in the block",
               "one_in": "one in the block", "one_run": "one in a run", "two_runs": "two runs",
               "no_case": "no case"}
PIQ_COUNTERS = {"conflicts rr": "conflicts rr", "conflicts ww": "ww", "conflicts rw": "rw",
                "batches read": "batches read", "batches write": "write",
                "batches prioritised": "prioritised"}


def duration(ns: float | None) -> str:
    """Return a time in at most five characters, as exact as the histograms are."""
    if not ns:
        return "-" if ns is None else "0us"
    for unit, factor in (("us", 1e3), ("ms", 1e6)):
        # Rounded, it may have one more digit.
        if round(ns / factor) < 1000:
            return digits(ns / factor) + unit
    return digits(ns / 1e9) + "s"


def digits(value: float) -> str:
    """Return a number with a fraction only if it is small."""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def plain(value: float | None) -> str:
    """Return a number for eyes: no more digits than matter."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def bar(share: float, width: int) -> str:
    """Return a bar, of at least a character if there is anything."""
    return "#" * max(int(share > 0), round(min(share, 1) * width))


def cells(values, width: int = CELL) -> str:
    """Return values in columns, aligned to the right."""
    return "".join(f" {value:>{width}}" for value in values)


def title(figures: dict, width: int) -> Line:
    """Return what is shown."""
    drive = figures["drive"]
    left = " ".join(filter(None, (drive["path"], drive["vendor"], drive["model"],
                                  amount(drive["bytes"]))))
    right = f"{figures['time'][11:]}  busy {figures['busy_percent']:.0f} %"
    room = max(len(drive["path"]) + 2, width - len(right))
    return f"{left[:room - 2]:{room}}{right}", TITLE


def scheduler_line(figures: dict) -> Line:
    """Return the scheduler with the tunables that were changed."""
    changed = [f"{name}={one['value']} ({one['default']})"
               for name, one in figures["tunables"].items()]
    text = "scheduler " + "  ".join([figures["scheduler"], *changed])
    if figures["former_scheduler"]:
        return f"{text}  (until now {figures['former_scheduler']})", WARNING
    return text, PLAIN


def count(found: dict[str, int] | None, way: str) -> str:
    """Return a number of requests, "-" if it is not known."""
    return str(found[way]) if found and way in found else "-"


def rate_lines(figures: dict) -> Iterator[Line]:
    """Yield the table of directions."""
    yield f"{'':{LABEL}}" + cells(("IOPS", "MB/s", "KB each", "merges/s", "mean ms", "queued",
                                   "at drive"), 8), HEAD
    for way, rate in figures["rates"].items():
        mean = rate["mean_ms"]
        yield f"{way:{LABEL}}" + cells((
            plain(rate["iops"]), plain(rate["mb_per_s"]), plain(rate["mean_kb"]),
            plain(rate["merges_per_s"]), "-" if mean is None else f"{mean:.3g}",
            count(figures["queued"], way), count(figures["in_flight"], way)), 8), PLAIN
    if figures["queued"] and "all" in figures["queued"]:
        count_all = figures["queued"]["all"]
        yield f"queued in {figures['scheduler']}, both directions: {count_all}", PLAIN
    yield from class_line(figures["classes"])


def class_line(classes: dict | None) -> Iterator[Line]:
    """Yield the requests by class if there are any but best-effort."""
    found = []
    for tier, ways in (classes or {}).items():
        sums = {name: sum(way[key] for way in ways.values())
                for key, name in (("queued", "queued"), ("in_flight", "at drive"))
                if all(key in way for way in ways.values())}
        if any(sums.values()):
            found.append((tier, f"{tier} " + ", ".join(
                f"{count} {name}" for name, count in sums.items())))
    if any(tier != "best-effort" for tier, _ in found):
        yield "; ".join(text for _, text in found), PLAIN


def latency_lines(figures: dict, width: int) -> Iterator[Line]:
    """Yield the percentiles, of the interval and, if there is room, since the start."""
    found = figures["latencies_ns"]
    if not found:
        yield f"no latencies: {figures['missing'].get('latencies')}", WARNING
        return
    spans = ["interval", "since_start"] if width >= BOTH else ["interval"]
    heads = {"interval": f"last {figures['seconds']:.3g} s",
             "since_start": f"since {figures['since'][11:]}"}
    span = (CELL + 1) * len(PERCENTILES)
    yield f"{'latency':{LABEL}}" + "  ".join(f" {heads[name]:^{span - 1}}" for name in spans), HEAD
    # A figure is the upper end of its bucket.
    yield f"{'(below)':{LABEL}}" + "  ".join(cells(PERCENTILES) for _ in spans), HEAD
    for way in DIRECTIONS:
        for kind in KINDS:
            label = f"{way if kind == KINDS[0] else '':6}{kind}"
            yield latency_line(label, [found[name][way][kind] for name in spans])
    yield from class_latencies(found, spans)


def latency_line(label: str, spans: list[dict]) -> Line:
    """Return one row of percentiles."""
    text = "  ".join(cells(duration(span[name]) for name in PERCENTILES) for span in spans)
    return f"{label:{LABEL}}{text}", PLAIN


def class_latencies(found: dict, spans: list[str]) -> Iterator[Line]:
    """Yield the total latencies by class if any class but best-effort was used."""
    used = [tier for tier in CLASSES if tier in found["classes"]]
    if used in ([], ["best-effort"]):
        return
    for tier in used:
        for way in DIRECTIONS:
            rows = [found["classes"][tier][name][way][KINDS[0]] for name in spans]
            if rows[-1]["count"] or rows[0]["count"]:
                yield latency_line(f"{way:6}{SHORT[tier]}", rows)


def changes(now: Row, before: Row | None, names: tuple[str, ...]) -> list[int]:
    """Return by how much counters of a row grew. A row that was not there had none."""
    return [max(0, now[name] - (before or {}).get(name, 0)) for name in names]


def strip(values: list[float], width: int) -> str:
    """Return a character for each value, or for the greatest of some if there are more than the
    width holds: the darker, the greater."""
    each = -(-len(values) // max(1, width))
    most = max(values, default=0) or 1
    parts = [max(values[start:start + each]) for start in range(0, len(values), each)]
    return "".join(SHADES[math.ceil(value / most * (len(SHADES) - 1))] for value in parts)


def bar_table(head: str, rows: list[tuple[str, float]], width: int, room: int) -> Iterator[Line]:
    """Yield rows of text with bars of values, the greatest of which is the longest. If there is
    no room for all of them: all in a strip, and below those with the greatest values, in order."""
    if len(rows) + 1 > room:
        yield f"{'all':{LABEL}} {strip([value for _, value in rows], width - LABEL - 1)}", PLAIN
        room -= 1
        if room < LEAST_ROWS:
            return
    yield head, HEAD
    most = max((value for _, value in rows), default=0) or 1
    greatest = sorted(rows, key=lambda row: -row[1])[:room - 1]
    for text, value in (row for row in rows if row in greatest):
        left = width - len(text) - 1
        yield f"{text} {bar(value / most, left)}" if left >= SHORTEST_BAR else text, PLAIN


def region_lines(files: dict, before: dict, seconds: float, width: int,
                 room: int) -> Iterator[Line]:
    """Yield what pass does: requests served by region."""
    old = {row["region"]: row for row in before.get("regions", ())}
    rows = []
    for row in files["regions"]:
        reads, writes = changes(row, old.get(row["region"]), ("reads", "writes"))
        if reads or writes or row["queued"] or row["in_flight"]:
            text = f"{row['region']:<{LABEL}}" + cells((
                plain(reads / seconds), plain(writes / seconds), row["queued"],
                row["in_flight"]), 8)
            rows.append((text, (reads + writes) / seconds))
    if not rows:
        yield "regions: no request went through one", PLAIN
        return
    head = f"{'region':{LABEL}}" + cells(("reads/s", "writes/s", "queued", "at drive"), 8)
    counted = f"  {len(rows)} of {len(files['regions'])} in use"
    yield from bar_table(head + counted, rows, width, room)


def unit_lines(files: dict, before: dict, seconds: float, width: int, room: int) -> Iterator[Line]:
    """Yield what piq does: batches that wait, conflicts, and requests by unit."""
    batches = files.get("batches", [])
    waiting = [f"{sum(row['dir'] == way for row in batches)} {way}" for way in DIRECTIONS]
    oldest = max((row["age_us"] for row in batches), default=0)
    age = f"; the oldest for {duration(oldest * 1e3)}" if batches else ""
    counters = counter_lines("per second", PIQ_COUNTERS, files.get("piq", {}),
                             before.get("piq", {}), seconds, width)
    above = [(f"batches waiting: {', '.join(waiting)}{age}", PLAIN), *counters]
    yield from above
    old = {row["unit"]: row for row in before.get("units", ())}
    rows = []
    for row in files.get("units", []):
        served = changes(row, old.get(row["unit"]), ("served",))[0]
        rows.append((f"{row['unit']:<{LABEL}}" + cells((plain(served / seconds),
                                                       row["in_flight"]), 8), served / seconds))
    head = f"{'unit':{LABEL}}" + cells(("served/s", "at drive"), 8)
    yield from bar_table(head, rows, width, room - len(above))


def counter_lines(label: str, names: dict[str, str], now: dict[str, int], before: dict[str, int],
                  seconds: float, width: int) -> Iterator[Line]:
    """Yield how fast counters grow, as many in a line as fit."""
    line = f"{label}:"
    for name, meaning in names.items():
        if name in now:
            grown = plain(changes(now, before, (name,))[0] / seconds)
            word = f"  {meaning} {grown}"
            if len(line) + len(word) > width:
                yield line, PLAIN
                line = " " * len(label)
            line += word
    yield line, PLAIN


def preference_lines(files: dict, before: dict, seconds: float, width: int,
                     room: int) -> Iterator[Line]:
    """Yield what bp does: how it chose, and what waiting for a process brought."""
    now, old = files["preference"], before.get("preference", {})
    grown = {name: changes(now, old, (name,))[0] / seconds for name in BP_COUNTERS if name in now}
    antic = files.get("anticipation", {})
    waits = [changes(antic, before.get("anticipation", {}), (name,))[0]
             for name in ("hits", "misses", "broken", "waited_us") if name in antic]
    if len(waits) == 4:
        hits, misses, broken, waited = waits
        yield (f"waits for a process: {hits} hits, {misses} misses, {broken} broken, "
               f"{waited / seconds / 1e4:.0f} % of the time"), PLAIN
    rows = [(f"{BP_COUNTERS[name]:18}" + cells((plain(value),), 8), value)
            for name, value in grown.items() if value]
    yield from list(bar_table(f"{'decisions':18}" + cells(("/s",), 8), rows, width,
                              len(rows) + 1))[:room - 1]


def class_lines(files: dict, before: dict, seconds: float, width: int,
                room: int) -> Iterator[Line]:
    """Yield what pai does: requests by class, and how many are aligned and full."""
    old = {row["dir"]: row for row in before.get("classes", ())}
    names = ("well_split", "closed", "pending", "merges", "expired")
    rows = []
    for row in files["classes"]:
        grown = [value / seconds for value in changes(row, old.get(row["dir"]), names)]
        text = f"{row['dir']:{LABEL}}" + cells(
            [*map(plain, grown), f"{row['aligned_percent']} %", f"{row['full_percent']} %",
             duration(row["longest_us"] * 1e3)], 7)
        rows.append((text, sum(grown[:3])))
    head = f"{'requests/s':{LABEL}}" + cells(("split", "closed", "pending", "merged", "expired",
                                              "aligned", "full", "longest"), 7)
    yield from bar_table(head, rows, width, room)


PANELS = {"regions": region_lines, "units": unit_lines, "preference": preference_lines,
          "classes": class_lines}


def stats_line(files: dict, before: dict, seconds: float) -> Iterator[Line]:
    """Yield what all schedulers of this project count."""
    old = {(row["tier"], row["dir"]): row for row in before.get("stats", ())}
    names = ("expired", "bypassed")
    sums = [0, 0]
    for row in files["stats"]:
        grown = changes(row, old.get((row["tier"], row["dir"])), names)
        sums = [a + b for a, b in zip(sums, grown, strict=True)]
    waited = sum(changes(files["readers"], before.get("readers"), ("waited_us", "alone_us"))
                 if files.get("readers") else ())
    yield (f"per second:  after the deadline {plain(sums[0] / seconds)}, "
           f"past the queue {plain(sums[1] / seconds)}" +
           (f";  writes wait for reads {waited / seconds / 1e4:.0f} %" if waited else "") +
           (";  the drive takes one at a time" if files.get("readers", {}).get("takes_one") else "")
           ), PLAIN


def panel(figures: dict, before: dict[str, Parsed], width: int, room: int) -> list[Line]:
    """Return what only this scheduler shows. @before: the same statistics at the start of the
    interval."""
    if "scheduler" in figures["missing"]:
        return [(f"nothing of the scheduler: {figures['missing']['scheduler']}", WARNING)]
    files, seconds = figures["statistics"], figures["seconds"]
    found = list(stats_line(files, before, seconds)) if files.get("stats") else []
    for name, lines in PANELS.items():
        if name in files:
            found += lines(files, before, seconds, width, room - len(found))
    return found


def lines_of(figures: dict, before: dict[str, Parsed], width: int,
             height: int | None = None) -> list[Line]:
    """Return the view for a terminal of this size; None: as high as needed."""
    found = [title(figures, width), scheduler_line(figures), ("", PLAIN),
             *rate_lines(figures), ("", PLAIN), *latency_lines(figures, width)]
    room = 1000 if height is None else height - len(found) - 1
    last = panel(figures, before, width, room) if room > 1 else []
    if last:
        found += [("", PLAIN), *last]
    return [(text.rstrip()[:width], style) for text, style in found][:height]
