# SPDX-License-Identifier: GPL-2.0
"""Charts as PNG files."""
import pathlib
import re
import statistics

import model
from intervals import interval
from results import COLUMNS, METRICS, cost_rows, labels_of, standing
from tables import number

PANELS = ("read_mbps", "write_mbps", "read_mean", "read_p99", "write_p99")
# Peers are light grey in bars and grey to black in curves, ours in colours.
PEER, QUIET = "#b8c0c8", "#5f6b76"
PEER_COLOURS = {"none": "#9aa5b1", "mq-deadline": "#6b7785", "kyber": "#434d59",
                "bfq": "#000000"}
OUR_COLOURS = ("#0b6e99", "#c2571a", "#2e7d32", "#7b3fa0")


def plotting():
    """Return matplotlib's pyplot, which needs no display. Imported here, as only charts need
    matplotlib."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def shading():
    """Return the colours from worse to better."""
    from matplotlib import colors
    return colors.LinearSegmentedColormap.from_list("better", ("#e58a78", "#ffffff", "#6fbf83"))


def bars(axes, values: dict, title: str, colours: list, size: float = 8, halves=None):
    """Draw bars of {label: value} with their numbers; @size is that of the text in points;
    @halves: of the intervals, in the order of the bars."""
    labels = list(values)
    axes.barh(labels, list(values.values()), color=colours, height=0.7, xerr=halves,
              error_kw={"elinewidth": 0.8, "ecolor": QUIET})
    most = max(*values.values(), 1e-9)
    for place, value in enumerate(values.values()):
        axes.text(max(value, 0) + most * 0.02, place,
                  number(value) if value >= 0 else f"{value:.0f}", va="center",
                  fontsize=size - 0.5)
    axes.set_xlim(min(0, *values.values()), most * 1.22)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=size, loc="left")
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=size)
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def heat(panel, rows: list, column):
    """Draw a table of Standings, None for an empty field, as coloured fields with their text."""
    sign = 1 if column.more else -1
    shades = [[sign * found.ratio.mean if found and found.ratio else 0 for found in row]
              for row in rows]
    panel.imshow(shades, cmap=shading(), vmin=-30, vmax=30, aspect="auto")
    for y, row in enumerate(rows):
        for x, found in enumerate(row):
            if found:
                size = f"{found.ratio.mean:+.1f} %  " if found.ratio else ""
                panel.text(x, y, f"{size}{found.ahead}:{found.behind}",
                           ha="center", va="center", fontsize=8)
    panel.set_title(column_title(column), fontsize=9, loc="left")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)


def beside_peers(path: pathlib.Path, title: str, footer: str, ours: str, groups: list):
    """Draw the PNG of the demo: a row of panels for each of @groups, (title, {scheduler: row
    of figures}, columns); the scheduler @ours in colour."""
    pyplot = plotting()
    width = max(len(columns) for _, _, columns in groups)
    figure = pyplot.figure(figsize=(3 * width + 0.6, 2.75 * len(groups) + 1.2),
                           layout="constrained")
    figure.get_layout_engine().set(h_pad=0.1)
    figure.suptitle(title, fontsize=15, fontweight="bold", x=0.01, ha="left")
    figure.supxlabel(footer, fontsize=8, color=QUIET, x=0.01, ha="left")
    rows = figure.subfigures(len(groups), 1, squeeze=False)[:, 0]
    for row, (heading, results, columns) in zip(rows, groups, strict=True):
        row.suptitle(heading, fontsize=11.5, x=0.01, ha="left")
        panels = row.subplots(1, width, squeeze=False)[0]
        colours = [OUR_COLOURS[0] if name == ours else PEER for name in results]
        for axes, column in zip(panels, columns, strict=False):
            bars(axes, {name: column.value(figures) for name, figures in results.items()},
                 column_title(column), colours, 9.5)
            axes.texts[list(results).index(ours)].set(color=OUR_COLOURS[0], fontweight="bold")
            if axes is not panels[0]:
                axes.set_yticklabels([])
    figure.savefig(path, dpi=140, facecolor="white")
    pyplot.close(figure)


def column_title(column) -> str:
    """Return the title of a panel that shows a column."""
    return f"{column.head}, {column.unit} ({'more' if column.more else 'less'} is better)"


def measured(figures: dict, key: str) -> bool:
    """Return True if a scheduler has a figure with each seed."""
    return key in figures and None not in figures[key]


class Charts:
    """Charts of the benchmark's @results, PNG files in @folder. Each method that draws
    returns the path."""

    def __init__(self, results, folder: pathlib.Path):
        self.pyplot = plotting()
        self.results, self.folder = results, folder

    def save(self, figure, name):
        """Write a PNG; return its path."""
        path = self.folder / f"{name}.png"
        saved = self.results.saved
        figure.supxlabel(f"{saved['where']}  ·  Linux {saved['kernel']}  ·  "
                         f"commit {saved['commit']}",
                         fontsize=8, color=QUIET, x=0.01, ha="left")
        figure.savefig(path, dpi=110, facecolor="white")
        self.pyplot.close(figure)
        return path

    def colour(self, label):
        """Return the colour of a scheduler in curves."""
        name = label.partition(" ")[0]
        if name in self.results.ours:
            return OUR_COLOURS[self.results.ours.index(name) % len(OUR_COLOURS)]
        return PEER_COLOURS.get(name, "#9aa5b1")

    def untuned(self, cell):
        """Return [(scheduler, figures)] of a cell: the peers' defaults, and ours."""
        return [(label, row) for label, row in cell["results"].items()
                if label in self.results.peers or label in self.results.ours]

    def panels(self, rows, columns, height=2.6):
        """Return a figure and its panels; @height of a row in inches."""
        return self.pyplot.subplots(rows, columns, squeeze=False, layout="constrained",
                                    figsize=(3.1 * columns + 1.2, height * rows + 0.6))

    def bars(self, axes, values, title, halves=None):
        """Draw bars of {scheduler: value}; @halves: of their intervals."""
        bars(axes, values, title, [self.colour(label) if self.results.is_ours(label) else PEER
                                   for label in values], halves=halves)

    def matrix(self, name, cells):
        """Draw the comparison over @cells: a panel for each metric, a row for each scheduler, a
        column for each peer."""
        labels, peers = labels_of(cells), self.results.peers
        figure, axes = self.pyplot.subplots(
            2, 3, layout="constrained", figsize=(15, 2 * (1.3 + 0.27 * len(labels))))
        for panel, column in zip(axes.flat, METRICS, strict=True):
            heat(panel, [[standing(cells, label, peer, column) if label != peer else None
                          for peer in peers] for label in labels], column)
            panel.set_xticks(range(len(peers)), peers, fontsize=8)
            panel.set_yticks(range(len(labels)), labels, fontsize=8)
            if panel not in axes[:, 0]:
                panel.set_yticklabels([])
        figure.suptitle(f"{name}: the row against the column, {len(cells)} cells; green: the row "
                        "is better", x=0.01, ha="left")
        return self.save(figure, f"matrix-{re.sub('[^a-z]+', '-', name.lower())}")

    def costs(self):
        """Draw the instructions an I/O that each scheduler adds to none's."""
        rows = cost_rows(self.results)
        columns = 3
        figure, axes = self.panels(-(-len(rows) // columns), columns, 2.0)
        for panel in axes.flat[len(rows):]:
            panel.set_visible(False)
        for panel, (workload, row) in zip(axes.flat, rows, strict=False):
            self.bars(panel, {label: found.mean for label, found in row.items()
                              if label != "none"}, workload)
        figure.suptitle("Instructions an I/O over none, less is better", x=0.01, ha="left")
        return self.save(figure, "cpu")

    def cells(self, name, cells):
        """Draw throughput and latencies, a row of panels for each cell."""
        columns = [column for column in COLUMNS if column.get in PANELS and any(
            measured(row, column.get) for cell in cells for row in cell["results"].values())]
        height = 0.9 + 0.19 * max(len(cell["results"]) for cell in cells)
        figure, axes = self.panels(len(cells), len(columns), height)
        for row, cell in zip(axes, cells, strict=True):
            for panel, column in zip(row, columns, strict=True):
                found = {label: interval(figures[column.get]) for label, figures
                         in cell["results"].items() if measured(figures, column.get)}
                if not found:
                    panel.set_visible(False)
                    continue
                self.bars(panel, {label: each.mean for label, each in found.items()},
                          column_title(column), [each.half or 0 for each in found.values()])
                if panel is not row[0]:
                    panel.set_yticklabels([])
            row[0].set_ylabel(cell["workload"], fontsize=8)
        figure.suptitle(f"{name}: throughput and latency", x=0.01, ha="left")
        return self.save(figure, f"bars-{name}")

    def latencies(self, name, cells):
        """Draw the distributions of the latencies, a row of panels for each cell."""
        figure, axes = self.panels(len(cells), 2, 2.7)
        for row, cell in zip(axes, cells, strict=True):
            for panel, way in zip(row, ("read", "write"), strict=True):
                for label, figures in self.untuned(cell):
                    keys = {p: key for p in model.PERCENTILES
                            if measured(figures, key := f"{way}_p{p:g}")
                            and key not in cell["bounds"][label]}
                    points = {p: statistics.fmean(figures[key]) for p, key in keys.items()}
                    if points:
                        panel.plot([max(value, 1e-3) for value in points.values()], list(points),
                                   label=label, color=self.colour(label), linewidth=1.3)
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
        """Draw throughput and latency by depth, the last word of each cell's workload."""
        columns = [column for column in COLUMNS if column.get in ("read_mbps", "read_p99")]
        figure, axes = self.panels(1, len(columns), 3.2)
        for panel, column in zip(axes[0], columns, strict=True):
            for label, _ in self.untuned(cells[0]):
                found = {int(cell["workload"].rpartition(" ")[2]):
                         statistics.fmean(cell["results"][label][column.get])
                         for cell in cells if measured(cell["results"][label], column.get)}
                panel.plot(list(found), list(found.values()), marker="o", markersize=3,
                           label=label, color=self.colour(label))
            panel.set_xscale("log", base=2)
            panel.set_xlabel("depth", fontsize=8)
            panel.set_title(column_title(column), fontsize=9, loc="left")
            panel.grid(alpha=0.3)
            panel.legend(fontsize=7)
        figure.suptitle(f"{name}: 4k random, half reads, by depth", x=0.01, ha="left")
        return self.save(figure, f"depth-{name}")
