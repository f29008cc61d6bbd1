# SPDX-License-Identifier: GPL-2.0
"""Imported by bench.py: its report, one HTML file that needs no network, and PNGs.

Everything is made from results.json, so a report can be made again without
measuring: python3 tests/bench/page.py FOLDER
"""
import base64
import html
import itertools
import json
import pathlib
import re
import sys

import harness
from report import LABEL, number
from results import COLUMNS, Results, cost_rows, gain

PANELS = ("mbps", "read_mean", "read_p99", "write_mean", "write_p99")
# What is told apart by colour in curves: peers grey to black, ours in colours.
PEER_COLOURS = {"none": "#9aa5b1", "mq-deadline": "#6b7785", "kyber": "#434d59",
                "bfq": "#000000"}
OUR_COLOURS = ("#0b6e99", "#c2571a", "#2e7d32", "#7b3fa0")
STYLE = """
body { font: 15px/1.45 sans-serif; color: #222; max-width: 78rem; margin: 2rem auto;
       padding: 0 1rem }
h1 { font-size: 1.7rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccd }
h3 { margin: 1.6rem 0 .3rem } .label { color: #5f6b76; font-size: .85rem }
table { border-collapse: collapse; font-size: .83rem; margin: .4rem 0 1rem }
th, td { padding: .18rem .55rem; text-align: right; border-bottom: 1px solid #e5e8eb }
th:first-child, td:first-child { text-align: left } tr.ours td { background: #eef6fa }
td.best { font-weight: bold } td.gain { color: #1b6e2f } td.loss { color: #b3261e }
img { max-width: 100% } pre { font-size: .75rem; background: #f5f6f7; padding: .6rem;
      overflow-x: auto } details { margin: .3rem 0 } .scroll { overflow-x: auto }
"""


def colour(results, label):
    """The colour of a scheduler in a plot."""
    name = label.partition(" ")[0]
    if name in results.ours:
        return OUR_COLOURS[results.ours.index(name) % len(OUR_COLOURS)]
    return PEER_COLOURS.get(name, "#9aa5b1")


def table(head, rows):
    """An HTML table; a row is (class, [cell or (class, cell)])."""
    def cells(tag, values):
        for value in values:
            kind, text = value if isinstance(value, tuple) else ("", value)
            yield (f"<{tag}{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>"
                   f"{html.escape(str(text))}</{tag}>")
    lines = ["<div class=scroll><table><tr>", *cells("th", head), "</tr>"]
    for kind, values in rows:
        lines += [f"<tr{f' class={kind}' if kind else ''}>", *cells("td", values), "</tr>"]
    return "".join([*lines, "</table></div>"])


def percent(value):
    """A gain or a loss, in its colour."""
    if value is None:
        return ("", "")
    return ("gain" if value > 0.05 else "loss" if value < -0.05 else "", f"{value:+.1f} %")


def cell_table(results, cell):
    """All figures of a cell, the best of each column in bold; below each of ours what
    it gains or loses against the best of the peers, column by column."""
    columns = [column for column in COLUMNS
               if any(column.key in row for row in cell["results"].values())]
    best = {column.key: number(column.best([row[column.key] for row in cell["results"].values()
                                            if column.key in row])) for column in columns}
    rows = []
    for label, row in cell["results"].items():
        ours = "ours" if results.is_ours(label) else ""
        values = [number(row[column.key]) if column.key in row else "" for column in columns]
        rows.append((ours, [label, *(("best", value) if value == best[column.key] else value
                                     for value, column in zip(values, columns, strict=True))]))
        if ours:
            rows.append((ours, ["against the best peer", *(
                percent(gain(results, cell, label, column)) if column.unit in ("ms", "MB/s")
                else "" for column in columns)]))
    head = ["scheduler", *(f"{column.head} {column.unit}".strip() for column in columns)]
    return table(head, rows)


def summary_table(results, kinds=("benefit", "trace", "depth", "fleet")):
    """Each of ours over all cells: where it leads and loses."""
    throughput = COLUMNS[0]
    rows = []
    for scheduler in results.ours:
        gains = []
        for cell in itertools.chain(*map(results.cells, kinds)):
            if scheduler in cell["results"]:
                gains.append((gain(results, cell, scheduler, throughput),
                              f"{cell['device']}: {cell['workload']}"))
        if not gains:
            continue
        gains.sort()
        values = [value for value, _ in gains]
        rows.append(("ours", [
            scheduler, len(values), sum(value > 2 for value in values),
            sum(-2 <= value <= 2 for value in values), sum(value < -2 for value in values),
            percent(sum(values) / len(values)),
            percent(values[-1]), gains[-1][1], percent(values[0]), gains[0][1]]))
    return table(["throughput against the best peer of each cell", "cells", "ahead by > 2 %",
                  "within 2 %", "behind by > 2 %", "mean", "best", "where", "worst", "where"],
                 rows)


def cost_table(results):
    """Instructions an I/O: none's, and what each adds."""
    rows = cost_rows(results)
    labels = [label for label in rows[0][1] if label != "none"]
    body = []
    for workload, row in rows:
        limit = (row["mq-deadline"] - row["none"]) / 2
        body.append(("", [workload, f"{row['none']:,.0f}", *(
            (("gain" if row[label] - row["none"] <= limit else "loss")
             if results.is_ours(label) else "", f"{row[label] - row['none']:+,.0f}")
            for label in labels)]))
    return table(["instructions an I/O", "none", *labels], body)


def lock_table(results):
    """What is done under the scheduler's lock."""
    locks = results.saved["locks"]
    return table(["lock", "acquisitions an I/O", "held, instructions an I/O",
                  "longest, instructions", "contended, 2 CPUs, an I/O"],
                 [("ours" if results.is_ours(name) else "", [
                     name, *(f"{row[key]:,.2f}" for key in (
                         "acquisitions", "held", "longest", "contended"))])
                  for name, row in locks.items()])


def is_row(line):
    """Whether a line of Markdown belongs to a table."""
    return line.startswith("|")


def prose(text):
    """HTML of Markdown's headings, tables and paragraphs."""
    def cells(line):
        return [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]

    for rows, group in itertools.groupby(text.splitlines(), is_row):
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
    """HTML of what the papers' tables are written in: prose, and what is fenced."""
    for place, part in enumerate(re.split("^```.*$", text, flags=re.MULTILINE)):
        if place % 2:
            yield f"<pre>{html.escape(part.strip())}</pre>"
        else:
            yield from prose(part)


class Plots:
    """PNGs, left in the folder and put into the page."""

    def __init__(self, results, folder):
        # Here, so that nothing else needs matplotlib, and without a display.
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
        self.pyplot = pyplot
        self.results, self.folder = results, folder

    def save(self, figure, name):
        """Leave a PNG; return the HTML that shows it."""
        path = self.folder / f"{name}.png"
        saved = self.results.saved
        figure.supxlabel(f"{saved['where']}  ·  Linux {saved['kernel']}  ·  "
                         f"commit {saved['commit']}",
                         fontsize=8, color="#5f6b76", x=0.01, ha="left")
        figure.savefig(path, dpi=110, facecolor="white")
        self.pyplot.close(figure)
        data = base64.b64encode(path.read_bytes()).decode()
        return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'

    def panels(self, rows, columns, height=2.6):
        """A figure of so many panels."""
        return self.pyplot.subplots(rows, columns, squeeze=False, layout="constrained",
                                    figsize=(3.1 * columns + 1.2, height * rows + 0.6))

    def bar_panel(self, axes, values, title):
        """Bars of {label: value}."""
        labels = list(values)
        axes.barh(labels, [values[label] for label in labels],
                  color=[colour(self.results, label) if self.results.is_ours(label)
                         else "#b8c0c8" for label in labels], height=0.7)
        most = max(*values.values(), 1e-9)
        for place, label in enumerate(labels):
            axes.text(max(values[label], 0) + most * 0.02, place, number(values[label])
                      if values[label] >= 0 else f"{values[label]:.0f}",
                      va="center", fontsize=7.5)
        axes.set_xlim(min(0, *values.values()), most * 1.22)
        axes.invert_yaxis()
        axes.set_title(title, fontsize=8, loc="left")
        axes.set_xticks([])
        axes.tick_params(axis="y", length=0, labelsize=8)
        axes.spines[["top", "right", "bottom"]].set_visible(False)

    def costs(self):
        """Instructions over none."""
        rows = cost_rows(self.results)
        columns = 3
        figure, axes = self.panels(-(-len(rows) // columns), columns, 2.0)
        for place, panel in enumerate(axes.flat):
            if place >= len(rows):
                panel.set_visible(False)
                continue
            workload, row = rows[place]
            self.bar_panel(panel, {label: value - row["none"] for label, value in row.items()
                                   if label != "none"}, workload)
        figure.suptitle("Instructions an I/O over none, less is better", x=0.01, ha="left")
        return self.save(figure, "cpu")

    def bars(self, name, cells):
        """A row a cell: throughput and latencies."""
        columns = [column for column in COLUMNS if column.key in PANELS]
        height = 0.9 + 0.19 * max(len(cell["results"]) for cell in cells)
        figure, axes = self.panels(len(cells), len(columns), height)
        for row, cell in zip(axes, cells, strict=True):
            for panel, column in zip(row, columns, strict=True):
                values = {label: figures[column.key] for label, figures
                          in cell["results"].items() if column.key in figures}
                if not values:
                    panel.set_visible(False)
                    continue
                better = "more" if column.more else "less"
                self.bar_panel(panel, values, f"{column.head}, {column.unit} ({better} is "
                                              "better)")
                if panel is not row[0]:
                    panel.set_yticklabels([])
            row[0].set_ylabel(cell["workload"], fontsize=8)
        figure.suptitle(f"{name}: throughput and latency", x=0.01, ha="left")
        return self.save(figure, f"bars-{name}")

    def cdfs(self, name, cells):
        """Latency distributions, by direction."""
        figure, axes = self.panels(len(cells), 2, 2.7)
        for row, cell in zip(axes, cells, strict=True):
            for panel, way in zip(row, ("read", "write"), strict=True):
                for label, figures in cell["results"].items():
                    if f"{way}_p50" not in figures or (
                            label not in self.results.peers and label not in self.results.ours):
                        continue
                    panel.plot([max(figures[f"{way}_p{p:g}"], 1e-3)
                                for p in harness.PERCENTILES],
                               harness.PERCENTILES, label=label,
                               color=colour(self.results, label), linewidth=1.3)
                panel.set_xscale("log")
                panel.set_title(f"{cell['workload']}: {way}s", fontsize=8, loc="left")
                panel.set_xlabel("ms", fontsize=8)
                panel.set_ylabel("% of requests", fontsize=8)
                panel.tick_params(labelsize=7)
                panel.grid(alpha=0.3)
                if panel.lines:
                    panel.legend(fontsize=6)
        figure.suptitle(f"{name}: latency", x=0.01, ha="left")
        return self.save(figure, f"latency-{name}")

    def depths(self, name, cells):
        """Throughput by depth."""
        figure, axes = self.panels(1, 2, 3.2)
        for panel, key, title in zip(axes[0], ("mbps", "read_p99"),
                                     ("MB/s", "read p99, ms"), strict=True):
            for label in cells[0]["results"]:
                if label not in self.results.peers and label not in self.results.ours:
                    continue
                panel.plot([int(cell["workload"].rpartition(" ")[2]) for cell in cells],
                           [cell["results"][label][key] for cell in cells], marker="o",
                           markersize=3, label=label, color=colour(self.results, label))
            panel.set_xscale("log", base=2)
            panel.set_xlabel("depth", fontsize=8)
            panel.set_title(title, fontsize=9, loc="left")
            panel.grid(alpha=0.3)
            panel.legend(fontsize=7)
        figure.suptitle(f"{name}: 4k random, half reads, by depth", x=0.01, ha="left")
        return self.save(figure, f"depth-{name}")


def by_device(cells):
    """[(device, its cells)] in the order of the cells."""
    found = {}
    for cell in cells:
        found.setdefault(cell["device"], []).append(cell)
    return found.items()


def benefit_part(results, plots, kind, title):
    """Tables and plots of emulated devices."""
    cells = results.cells(kind)
    if not cells:
        return
    yield f"<h2>{title}</h2><p class=label>{results.saved['where']}</p>"
    for device, group in by_device(cells):
        yield f"<h3>{html.escape(device)}</h3>"
        if kind == "depth":
            yield plots.depths(device, group)
        else:
            name = f"{kind}-{re.sub('[^A-Za-z0-9.-]+', '-', device)}"
            yield plots.bars(name, group) + plots.cdfs(name, group)
        for cell in group:
            yield f"<h4>{html.escape(cell['workload'])}</h4>" + cell_table(results, cell)


def tunables_part(results):
    """What was set, device by device."""
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
    """How to get the same."""
    yield "<h2>Circumstances</h2>" + table(["", ""], [
        ("", [key, " ".join(saved[key]) if isinstance(saved[key], list) else saved[key]])
        for key in ("what", "command", "commit", "kernel", "guest", "qemu", "fio", "seeds",
                    "cpu_seconds")])
    for kind in ("presets", "jobs"):
        for name, text in saved[kind].items():
            yield (f"<details><summary>{kind[:-1]} {html.escape(name)}</summary>"
                   f"<pre>{html.escape(text)}</pre></details>")


def parts(results, folder):
    """The page, piece by piece."""
    saved = results.saved
    plots = Plots(results, folder)
    yield (f"<!doctype html><html lang=en><meta charset=utf-8><title>ssd-iosched bench</title>"
           f"<style>{STYLE}</style><h1>ssd-iosched: what each scheduler costs and gains</h1>"
           f"<p class=label>{saved['where']}; Linux {html.escape(saved['kernel'])}, commit "
           f"{html.escape(saved['commit'])}, {saved['how']}</p><p>" + (
               "Figures of an emulated device compare schedulers under a stated model; they "
               "are not measurements of a drive. " if saved["where"] == LABEL else
               "Not in virtual time: not to be compared with the figures of emulated "
               "devices. Ours with their defaults. ") + "Bold: best of its column. Green and red: "
           "better and worse than the best of the peers, whichever that is, tuned ones "
           "included.</p>")
    yield summary_table(results)
    if results.cells("cpu"):
        yield ("<h2>CPU cost</h2><p class=label>null_blk, virtual time: instructions an I/O, "
               "fio's and the kernel's; then what each scheduler adds. Green: at most half of "
               "what mq-deadline adds.</p>" + cost_table(results) + plots.costs())
    if saved.get("locks"):
        yield ("<h2>Under the lock</h2><p class=label>debug kernel (lock statistics and "
               "debugging make everything longer), virtual time</p>" + lock_table(results))
    yield from benefit_part(results, plots, "benefit", "Benefit")
    yield from benefit_part(results, plots, "depth", "By depth")
    yield from benefit_part(results, plots, "trace", "Recorded traces")
    yield from benefit_part(results, plots, "fleet", "Other machines' drives")
    if saved["papers"]:
        yield "<h2>The papers' tables</h2>"
    for paper in saved["papers"]:
        yield (f"<h3>{html.escape(paper['name'])}</h3><p class=label>{LABEL}; from "
               f"{html.escape(paper['from'])}</p>")
        yield from from_markdown(paper["text"])
    yield from tunables_part(results)
    yield from circumstances_part(saved)
    yield "</html>"


def make(folder):
    """Write report.html and the PNGs."""
    results = Results(json.loads((folder / "results.json").read_text()))
    (folder / "report.html").write_text("\n".join(parts(results, folder)), encoding="utf-8")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
