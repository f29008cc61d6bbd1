# SPDX-License-Identifier: GPL-2.0
"""Imported by the benchmarks of this folder: tables as text, charts as PNG."""
import dataclasses

LABEL = "emulated device, virtual time"
OURS = "pass"
PEER_COLOUR, OUR_COLOUR, QUIET = "#b8c0c8", "#0b6e99", "#5f6b76"


@dataclasses.dataclass
class Column:
    """A figure of a run in a table: its key in figures(), head, and whether
    more is better."""
    key: str
    head: str
    unit: str
    more: bool = False

    def best(self, values):
        """The best of some values."""
        return max(values) if self.more else min(values)

    def gain(self, ours, theirs):
        """By how many percent @ours is better than @theirs, less than 0 if it
        is worse."""
        return 100 * ((ours / theirs - 1) if self.more else (1 - ours / theirs))


COLUMNS = (
    Column("mbps", "total", "MB/s", more=True),
    Column("read_mbps", "read", "MB/s", more=True),
    Column("write_mbps", "write", "MB/s", more=True),
    Column("read_mean", "read mean", "ms"),
    Column("read_p99", "read p99", "ms"),
    Column("read_p99.9", "read p99.9", "ms"),
    Column("write_mean", "write mean", "ms"),
    Column("write_p99", "write p99", "ms"),
)


def number(value):
    """Three digits, at most three behind the point."""
    digits = next((digits for least, digits in ((100, 0), (10, 1), (1, 2))
                   if value >= least), 3)
    return f"{value:.{digits}f}"


def gains(ours, peers, columns=COLUMNS):
    """{key: percent by which @ours is better than the best of @peers}; each is
    the figures of a run."""
    return {column.key: column.gain(ours[column.key], column.best(
                [peer[column.key] for peer in peers]))
            for column in columns if column.key in ours}


def align(rows):
    """Lines of a table: the first column to the left, the others right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]),
                       *(cell.rjust(width) for cell, width
                         in zip(row[1:], widths[1:], strict=True))]).rstrip()
            for row in rows]


def table(title, results, columns=COLUMNS):
    """Lines of a table with a row for each of @results ({scheduler: figures}),
    the best of each column marked, and one that compares PASS with the best
    of the others."""
    columns = [column for column in columns
               if all(column.key in row for row in results.values())]
    best = {column.key: number(column.best([row[column.key]
                                            for row in results.values()]))
            for column in columns}
    rows = [["", *(column.head for column in columns)],
            ["scheduler", *(column.unit for column in columns)]]
    for name, row in results.items():
        cells = [number(row[column.key]) for column in columns]
        rows.append([name, *("*" * (cell == best[column.key]) + cell
                             for cell, column in zip(cells, columns, strict=True))])
    peers = [row for name, row in results.items() if name != OURS]
    gained = gains(results[OURS], peers, columns)
    rows.append([f"{OURS} against the best other",
                 *(f"{gained[column.key]:+.1f} %" for column in columns)])
    return [f"{title} ({LABEL})", *align(rows)]


LEGEND = ("* best of its column; + PASS is better (more MB/s, less latency) "
          "than the best of the other four, - it is worse")


def bars(axes, column, results):
    """One panel: a bar for each scheduler, PASS in colour."""
    names = list(results)
    values = [results[name][column.key] for name in names]
    colours = [OUR_COLOUR if name == OURS else PEER_COLOUR for name in names]
    axes.barh(names, values, color=colours, height=0.68)
    most = max(values)
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        axes.text(value + most * 0.02, place, number(value), va="center",
                  fontsize=9, color=OUR_COLOUR if name == OURS else QUIET,
                  fontweight="bold" if name == OURS else "normal")
    axes.set_xlim(0, most * 1.2)
    axes.invert_yaxis()
    axes.set_title(f"{column.head}, {column.unit}", fontsize=10, color="#222222",
                   loc="left")
    axes.set_xlabel("more is better" if column.more else "less is better",
                    fontsize=8, color=QUIET, loc="left")
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=10)
    axes.spines[:].set_visible(False)
    axes.spines["left"].set_visible(True)
    axes.spines["left"].set_color("#d0d5da")


def chart(path, title, footer, groups):
    """A PNG: a row of panels for each of @groups: (title, {scheduler: figures},
    columns)."""
    # Here, so that tables need no matplotlib, and without a display.
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
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
        for axes, column in zip(panels, columns, strict=False):
            bars(axes, column, results)
            if axes is not panels[0]:
                axes.set_yticklabels([])
    figure.savefig(path, dpi=140, facecolor="white")
    pyplot.close(figure)
