# SPDX-License-Identifier: GPL-2.0
"""The report of the benchmark: one HTML file that needs no network.

Made from results.json only, so it can be made again without measuring:
    python3 tests/bench/page.py FOLDER
"""
import base64
import html
import itertools
import json
import pathlib
import re
import sys

import locks
from charts import Charts
from results import (COLUMNS, LABEL, MEANING, METRICS, Results, cost_rows, differences, facts,
                     matrix, size_text, spread)

# Differences that are listed for each class of drives.
LARGEST = 40
STYLE = """
body { font: 15px/1.45 sans-serif; color: #222; max-width: 78rem; margin: 2rem auto;
       padding: 0 1rem }
h1 { font-size: 1.7rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccd }
h3 { margin: 1.6rem 0 .3rem } .label { color: #5f6b76; font-size: .85rem }
table { border-collapse: collapse; font-size: .83rem; margin: .4rem 0 1rem }
th, td { padding: .18rem .55rem; text-align: right; white-space: pre-line;
         border-bottom: 1px solid #e5e8eb }
th:first-child, td:first-child { text-align: left } tr.ours td { background: #eef6fa }
td.gain { color: #1b6e2f } td.loss { color: #b3261e }
img { max-width: 100% } pre { font-size: .75rem; background: #f5f6f7; padding: .6rem;
      overflow-x: auto } details { margin: .3rem 0 } .scroll { overflow-x: auto }
"""


def table(head, rows):
    """Return an HTML table; a row is (class, [cell or (class, cell)])."""
    def cells(tag, values):
        for value in values:
            kind, text = value if isinstance(value, tuple) else ("", value)
            yield (f"<{tag}{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>"
                   f"{html.escape(str(text))}</{tag}>")
    lines = ["<div class=scroll><table><tr>", *cells("th", head), "</tr>"]
    for kind, values in rows:
        lines += [f"<tr{f' class={kind}' if kind else ''}>", *cells("td", values), "</tr>"]
    return "".join([*lines, "</table></div>"])


def entry(found, column):
    """A cell of the matrix; green or red if its mean is better or worse and so are more cells."""
    if found is None:
        return ("", "")
    if found.ratio is None:
        return ("", found.text("\n"))
    good = found.ratio.mean > 0 if column.more else found.ratio.mean < 0
    kind = "" if found.ahead == found.behind or good != (found.ahead > found.behind) else \
        "gain" if good else "loss"
    return (kind, found.text("\n"))


def matrix_part(results, charts):
    """Yield the matrix of each class of drives."""
    for title, cells in results.classes().items():
        yield f"<h2>Comparison: {html.escape(title)}</h2>" + image(
            charts.matrix(title, cells))
        for column in METRICS:
            head, rows = matrix(results, cells, column)
            if rows:
                yield f"<h4>{column.head}, {column.unit}</h4>" + table(["", *head], [
                    ("ours" if results.is_ours(label) else "",
                     [label, *(entry(found, column) for found in entries)])
                    for label, *entries in rows])
        yield from difference_part(results, cells)


def difference_part(results, cells):
    """Yield the largest differences between ours and the peers with defaults."""
    found = differences(results, cells)
    yield (f"<h4>The largest of {len(found)} differences between ours and a peer's "
           "defaults</h4>") + table(["", "against", "drive", "workload", "figure", "difference"], [
               ("", [label, peer, cell["device"], cell["workload"], column.head,
                     ("gain" if sign > 0 else "loss", size_text(size))])
               for size, label, peer, column, cell, sign in found[:LARGEST]])


def cell_table(results, cell):
    """All figures of a cell."""
    columns = [column for column in COLUMNS
               if any(any(row.get(column.get, ())) for row in cell["results"].values())]
    return table(["scheduler", *(column.title() for column in columns)], [
        ("ours" if results.is_ours(label) else "",
         [label, *(spread(cell, label, column) for column in columns)])
        for label in cell["results"]])


def cost_table(results):
    """Instructions an I/O under none, and those that each scheduler adds."""
    rows = cost_rows(results)
    labels = [label for label in rows[0][1] if label != "none"]
    body = []
    for workload, row in rows:
        limit = row["mq-deadline"].mean / 2
        body.append(("", [workload, f"{row['none'].mean:,.0f}", *(
            (("gain" if row[label].mean <= limit else "loss") if results.is_ours(label) else "",
             f"{row[label].mean:+,.0f}") for label in labels)]))
    return table(["instructions an I/O", "none", *labels], body)


def lock_table(results):
    """What an I/O does with several CPUs."""
    return table(["an I/O under", *locks.COLUMNS],
                 [("ours" if results.is_ours(row[0].partition(",")[0]) else "", row)
                  for row in locks.rows(results.saved["locks"])])


def is_row(line):
    """Return True if a line of Markdown belongs to a table."""
    return line.startswith("|")


def prose(text):
    """Yield the HTML of Markdown's headings, tables and paragraphs."""
    def cells(line):
        return [cell.strip() for cell in line.strip("|").split("|")]

    for rows, group in itertools.groupby(text.replace("**", "").splitlines(), is_row):
        lines = list(group)
        if rows and len(lines) > 2:
            yield table(cells(lines[0]), [("", cells(line)) for line in lines[2:]])
            continue
        for paragraph in "\n".join(lines).split("\n\n"):
            mark, _, rest = paragraph.strip().partition(" ")
            if re.fullmatch("#+", mark):
                yield f"<h4>{html.escape(rest)}</h4>"
            elif paragraph.strip():
                yield f"<p>{html.escape(paragraph.strip())}</p>"


def from_markdown(text):
    """Yield the HTML of Markdown: prose() and fenced text."""
    for place, part in enumerate(re.split("^```.*$", text, flags=re.MULTILINE)):
        if place % 2:
            yield f"<pre>{html.escape(part.strip())}</pre>"
        else:
            yield from prose(part)


def image(path):
    """HTML that contains a PNG."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(path.stem)}" src="data:image/png;base64,{data}">'


def by_device(cells):
    """Return [(device, its cells)] in the order of the cells."""
    found = {}
    for cell in cells:
        found.setdefault(cell["device"], []).append(cell)
    return found.items()


def benefit_part(results, charts, kind, title):
    """Yield the tables and charts of the cells of a kind."""
    cells = results.cells(kind)
    if not cells:
        return
    yield f"<h2>{title}</h2><p class=label>{results.saved['where']}</p>"
    for device, group in by_device(cells):
        yield f"<h3>{html.escape(device)}</h3>"
        if kind == "depth":
            yield image(charts.depths(device, group))
        elif kind not in ("programs", "front"):
            name = f"{kind}-{re.sub('[^A-Za-z0-9.-]+', '-', device)}"
            yield image(charts.cells(name, group)) + image(charts.latencies(name, group))
        for cell in group:
            yield (f"<h4>{html.escape(cell['workload'])}</h4><p class=label>{facts(cell)}</p>"
                   + cell_table(results, cell))


def tunables_part(results):
    """Yield the tunables of the runs, device by device."""
    rows = {(run["preset"], run["label"], json.dumps(run["tunables"]))
            for run in results.saved["runs"] if run["tunables"]}
    if not rows:
        return
    yield "<h2>Tunables</h2><p>Peers with their defaults and with tuned values; ours with " \
          "what a probe of the device would find out, taken from the preset.</p>"
    yield table(["device", "scheduler", "tunables"], [
        ("", [preset, label, " ".join(f"{name.rpartition('/')[2]}={value}" for name, value
                                      in json.loads(tunables).items())])
        for preset, label, tunables in sorted(rows)])


def circumstances_part(saved):
    """Yield what is needed to repeat the measurement."""
    yield "<h2>Circumstances</h2>" + table(["", ""], [
        ("", [key, " ".join(saved[key]) if isinstance(saved[key], list) else saved[key]])
        for key in ("what", "command", "commit", "kernel", "guest", "qemu", "fio", "seeds",
                    "cpu_seconds")])
    for kind in ("presets", "jobs"):
        for name, text in saved[kind].items():
            yield (f"<details><summary>{kind[:-1]} {html.escape(name)}</summary>"
                   f"<pre>{html.escape(text)}</pre></details>")


def parts(results, folder):
    """Yield the page; charts are written into @folder."""
    saved = results.saved
    charts = Charts(results, folder)
    yield (f"<!doctype html><html lang=en><meta charset=utf-8><title>ssd-iosched bench</title>"
           f"<style>{STYLE}</style><h1>ssd-iosched: what each scheduler costs and gains</h1>"
           f"<p class=label>{saved['where']}; Linux {html.escape(saved['kernel'])}, commit "
           f"{html.escape(saved['commit'])}, {saved['how']}</p><p>" + (
               "Figures of an emulated device compare schedulers under a stated model; they "
               "are not measurements of a drive. " if saved["where"] == LABEL else
               "Not in virtual time: not to be compared with the figures of emulated "
               "devices. Ours with their defaults. ") + f"{MEANING}</p>")
    yield from matrix_part(results, charts)
    if results.cells("cpu"):
        yield ("<h2>CPU cost</h2><p class=label>null_blk, virtual time: instructions an I/O, "
               "fio's and the kernel's; then what each scheduler adds. Green: at most half of "
               "what mq-deadline adds.</p>" + cost_table(results) + image(charts.costs()))
    if saved.get("locks"):
        yield (f"<h2>With several CPUs</h2><p class=label>{locks.MEANING}</p>"
               + lock_table(results))
    yield from benefit_part(results, charts, "selected", "As selected")
    yield from benefit_part(results, charts, "programs", "Programs, as selected")
    yield from benefit_part(results, charts, "front", "With other values of write_share")
    yield from benefit_part(results, charts, "benefit", "Benefit")
    yield from benefit_part(results, charts, "depth", "By depth")
    yield from benefit_part(results, charts, "trace", "Recorded traces")
    yield from benefit_part(results, charts, "fleet", "Other machines' drives")
    if saved["papers"]:
        yield "<h2>The papers' tables</h2>"
    for paper in saved["papers"]:
        yield (f"<h3>{html.escape(paper['name'])}</h3><p class=label>{LABEL}; from "
               f"{html.escape(paper['from'])}</p>")
        yield from from_markdown(paper["text"])
    yield from tunables_part(results)
    yield from circumstances_part(saved)
    yield "</html>"


def make(folder: pathlib.Path):
    """Write report.html and the PNGs into the folder of results.json."""
    results = Results(json.loads((folder / "results.json").read_text()))
    (folder / "report.html").write_text("\n".join(parts(results, folder)), encoding="utf-8")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
