# SPDX-License-Identifier: GPL-2.0
"""Heat maps of the published results: our schedulers in each cell against none and mq-deadline.

maps() returns them. A field has a colour if one is ahead by tests/bench/results.py: blue if it is
ours, orange if it is the other.
"""
import bisect
import html
import json
import lzma
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests/bench"))

from intervals import interval  # noqa: E402  (in a folder added above)
from results import PROGRAMS, RATES, TIMES, Results, compared, front_columns  # noqa: E402

RESULTS = HERE.parent / "results"
BASES, OTHERS = ("none", "mq-deadline"), ("kyber", "bfq")
# Ratios from which the next colour begins, and the colours of what is better and worse.
STEPS = (1.05, 1.15, 1.4, 2.0)
BETTER = ("#e3eef8", "#bdd7ee", "#86b9df", "#3f86bf", "#1b5690")
WORSE = ("#fde8d8", "#fbcba4", "#f3a161", "#d66f20", "#9c420c")
EVEN, QUIET = "#f1f1f1", "#5f5f5f"
# Sizes in pixels: a field, the space between panels, and what a letter takes at most on average,
# also of a wide font in bold.
WIDTH, HEIGHT, GAP, LETTER = 36, 17, 14, 7.5
TOP, LEFT = 92, 20
SUMS = ("better : worse", f"against {OTHERS[0]} (left) and {OTHERS[1]} (right)")
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}"
 font-family="sans-serif" font-size="11" text-anchor="middle">
<rect width="{0}" height="{1}" rx="6" fill="#fff"/>"""


def ratio_text(ratio: float) -> str:
    """Return a ratio as text: in percent, or how many times if that is two and more."""
    if abs(ratio - 1) < 0.005:
        return "0"
    if 0.5 < ratio < 2:
        return f"{100 * (ratio - 1):+.0f}"
    times = max(ratio, 1 / ratio)
    return f"{'×' if ratio > 1 else '÷'}{times:.{1 if times < 9.95 else 0}f}"


def shade(times: float, sign: int) -> str:
    """Return the colour of a field in which one figure is so many times the other, and ours is
    better or worse by @sign."""
    return (BETTER if sign > 0 else WORSE)[bisect.bisect(STEPS, max(times, 1 / times))]


def field(cell: dict, label: str, base: str, column) -> tuple[str, str, int] | None:
    """Return text, colour and sign of a field; None if it was not measured."""
    found = compared(cell, label, base, column)
    if not found:
        return None
    logs, sign = found
    if not logs:
        return ("∞" if sign > 0 else "-∞", (BETTER if sign > 0 else WORSE)[-1], sign)
    ratio = math.exp(interval(logs).mean)
    return ratio_text(ratio), shade(ratio, sign) if sign else EVEN, sign


def better_worse(cells: list, label: str, base: str, choose) -> str:
    """Return in how many cells a scheduler is ahead and behind."""
    signs = [found[1] for cell in cells if (column := choose(cell))
             and (found := compared(cell, label, base, column))]
    return f"{signs.count(1)}:{signs.count(-1)}" if signs else ""


class Map:
    """A heat map of @cells: a panel for each of @figures, {title: function of a cell that returns
    its column or None}, and each base; a column for each of @labels."""

    def __init__(self, title: str, notes: list, cells: list, labels: list, figures: dict):
        self.cells, self.labels = cells, labels
        self.panels = [(title, choose, base) for title, choose in figures.items()
                       for base in BASES]
        names = (*SUMS, *(cell["workload"] for cell in cells))
        self.margin = LEFT + 8 + LETTER * max(map(len, names))
        # Where the picture ends.
        self.right = self.left(len(self.panels)) - GAP
        self.fields, self.texts = {}, []
        self.text(LEFT, 26, title, "start", "bold")
        for number, note in enumerate(notes):
            self.text(LEFT, 44 + 15 * number, note, "start")

    def text(self, x, y, text, anchor="", weight="", fill=""):
        """Add a text."""
        more = "".join(f' {name}="{value}"' for name, value in (
            ("text-anchor", anchor), ("font-weight", weight), ("fill", fill)) if value)
        if anchor == "start":
            self.right = max(self.right, x + LETTER * len(text))
        self.texts.append(f'<text x="{x:g}" y="{y:g}"{more}>{html.escape(text)}</text>')

    def left(self, panel: int) -> float:
        """Return where a panel begins."""
        return self.margin + panel * (len(self.labels) * WIDTH + GAP)

    def middle(self, panel: int, column: int) -> float:
        """Return the middle of a column."""
        return self.left(panel) + (column + 0.5) * WIDTH

    def heads(self, y: float):
        """Add the heads of panels and columns."""
        for panel, (title, _, base) in enumerate(self.panels):
            if panel % len(BASES) == 0:
                self.text(self.left(panel), y, title, "start", "bold")
            self.text(self.left(panel), y + 15, f"against {base}", "start")
            for column, label in enumerate(self.labels):
                self.text(self.middle(panel, column), y + 30, label)

    def row(self, y: float, cell: dict):
        """Add the fields of a cell."""
        for panel, (_, choose, base) in enumerate(self.panels):
            chosen = choose(cell)
            for column, label in enumerate(self.labels if chosen else ()):
                found = field(cell, label, base, chosen)
                if not found:
                    continue
                text, colour, sign = found
                x = self.left(panel) + column * WIDTH
                self.fields.setdefault(colour, []).append((x, y))
                dark = colour in (BETTER[4], WORSE[4])
                self.text(x + WIDTH / 2, y + 12.5, text,
                          fill="#fff" if dark else "" if sign else QUIET)

    def sums(self, y: float) -> float:
        """Add the counts against each peer; return where they end."""
        for text, bases in zip(SUMS, (BASES, OTHERS), strict=True):
            self.text(self.margin - 8, y + 12.5, text, "end", "bold")
            for panel, (_, choose, _) in enumerate(self.panels):
                for column, label in enumerate(self.labels):
                    self.text(self.middle(panel, column), y + 12.5, better_worse(
                        self.cells, label, bases[panel % len(BASES)], choose))
            y += HEIGHT
        return y

    def legend(self, y: float):
        """Add what the colours and texts mean."""
        x = self.margin
        for colours, word in ((reversed(WORSE), "worse"), (BETTER, "better")):
            if word == "better":
                self.fields.setdefault(EVEN, []).append((x, y))
                x += WIDTH
            for colour in colours:
                self.fields.setdefault(colour, []).append((x, y))
                x += WIDTH
        self.text(self.margin - 8, y + 12.5, "worse", "end")
        self.text(x + 6, y + 12.5, "better; shades from 5, 15, 40 and 100 %", "start")
        for number, line in enumerate((
                "A number is the change of the figure in percent; × and ÷: times. Grey: undecided.",
                "∞ and -∞: only ours, or only the other, has such I/O in each window.")):
            self.text(self.margin, y + 34 + 15 * number, line, "start")

    def svg(self) -> str:
        """Return the picture."""
        y, drive = TOP + 36.0, None
        self.heads(TOP)
        for cell in self.cells:
            if cell["device"] != drive:
                drive = cell["device"]
                self.text(LEFT, y + 14, drive, "start", "bold")
                y += HEIGHT + 2
            self.text(self.margin - 8, y + 12.5, cell["workload"], "end")
            self.row(y, cell)
            y += HEIGHT
        y = self.sums(y + 8)
        self.legend(y + 10)
        paths = [f'<path fill="{colour}" d="' + "".join(
                 f"M{x:g} {at:g}h{WIDTH - 1}v{HEIGHT - 1}h{1 - WIDTH}z" for x, at in places) + '"/>'
                 for colour, places in self.fields.items()]
        head = HEAD.format(math.ceil(self.right + LEFT), math.ceil(y + 76))
        return "\n".join([head, *paths, *self.texts, "</svg>"]) + "\n"


def results_of(name: str) -> Results:
    """Return published results."""
    return Results(json.loads(lzma.decompress((RESULTS / f"{name}.json.xz").read_bytes())))


def by_drive(cells: list) -> list:
    """Return cells drive by drive."""
    return sorted(cells, key=lambda cell: cell["device"])


def fixed(column):
    """Return a function of a cell: this column if it was measured."""
    def choose(cell):
        measured = any(column.get in row for row in cell["results"].values())
        return column if measured else None
    return choose


def shortest(cell: dict):
    """Return the column of the latency of reads in a cell, or None."""
    return next((column for column in (PROGRAMS[2], TIMES["read", "p99"])
                 if fixed(column)(cell)), None)


def named(cell: dict) -> dict:
    """Return a cell whose workload names the figure of its readers."""
    reads = front_columns(cell)[0]
    if reads in RATES:
        return cell
    return cell | {"workload": f"{cell['workload']} ({reads.head}, {reads.unit})"}


def maps() -> dict[str, str]:
    """Return {name: SVG}."""
    selected, full = results_of("selected"), results_of("full")
    made = {"heat-selected": Map(
        "As selected: nothing is set but the scheduler",
        ["Readers: MB/s read, or the figure of a program, which is in brackets: s are better if "
         "fewer. tide is our core without a policy.",
         f"Linux {selected.saved['kernel']}, emulated drives, commit {selected.saved['commit']}."],
        by_drive([named(cell) for cell in selected.cells("selected", "programs")]),
        [*selected.ours, "tide"],
        {"readers": lambda cell: front_columns(cell)[0], "MB/s written": fixed(RATES[1]),
         "p99 of reads, ms": shortest})}
    for title, cells in full.classes().items():
        name = title.split()[-2] if "paper" in title else "today"
        made[f"heat-{name.lower()}"] = Map(
            title[0].upper() + title[1:],
            ["Ours with the tunables that ssd-probe finds, the kernel's with their defaults.",
             f"Linux {full.saved['kernel']}, emulated drives, commit {full.saved['commit']}."],
            by_drive(cells), full.ours,
            {"MB/s read": fixed(RATES[0]), "MB/s written": fixed(RATES[1]),
             "p99 of reads, ms": fixed(TIMES["read", "p99"])})
    return {name: each.svg() for name, each in made.items()}
