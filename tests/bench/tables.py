# SPDX-License-Identifier: GPL-2.0
"""Tables of figures, as Markdown and as aligned text."""
import dataclasses
from collections.abc import Callable

import model


def number(value: float) -> str:
    """Format a value with three digits, at most three of them behind the point."""
    digits = next((digits for least, digits in ((100, 0), (10, 1), (1, 2))
                   if value >= least), 3)
    return f"{value:.{digits}f}"


def counter(*keys: str, scale: float = 1) -> Callable:
    """Return a function of a run: the number below these keys of its result / @scale."""
    def get(run):
        value = run.result
        for key in keys:
            value = value[key]
        return value / scale
    return get


def runs_of(row) -> list:
    """Return the runs of a table's row, none if it holds figures."""
    runs = row if isinstance(row, list) else [row]
    return [run for run in runs if isinstance(run, model.Run)]


@dataclasses.dataclass
class Column:
    """A figure that a table shows of each row.

    A row is {key: figure}, a run, or a list of runs. @get is a key of the figures, or a
    function of the row. The function returns a number, a text or None; a KeyError, a
    ValueError and a ZeroDivisionError stand for None.
    """
    head: str
    get: str | Callable
    unit: str = ""
    form: str = ""                  # of str.format(); "": number()
    more: bool = False              # is better
    percent: int | None = None      # digits of the percent by which the base differs

    def value(self, row):
        """Return the figure of a row, None if it has none or was not measured."""
        runs = runs_of(row)
        if runs and not any(run.result for run in runs):
            return None
        if not callable(self.get):
            return (row.result["figures"] if runs else row).get(self.get)
        try:
            return self.get(row)
        except (KeyError, ValueError, ZeroDivisionError):
            return None

    def cell(self, row, base=None) -> str:
        """Return the figure as text, with the percent by which it exceeds that of @base."""
        value = self.value(row)
        if value is None:
            return ""
        text = self.form.format(value) if self.form else number(value)
        if self.percent is None or base is None or base is row:
            return text
        return f"{text} ({100 * (value / self.value(base) - 1):+.{self.percent}f} %)"

    def title(self) -> str:
        """Return the head with its unit."""
        return f"{self.head} {self.unit}".strip()

    def best(self, values: list) -> float:
        """Return the best of these values."""
        return max(values) if self.more else min(values)

    def gain(self, ours: float, theirs: float) -> float:
        """Return the percent by which @ours is better than @theirs; negative if worse."""
        return 100 * ((ours / theirs - 1) if self.more else (1 - ours / theirs))


@dataclasses.dataclass
class Table:
    """@rows, [(label, row)], by @columns. Rows and columns without any figure are left
    out."""
    title: str
    rows: list
    columns: list
    base: Callable | None = None    # label -> label of the row that percents refer to
    note: Callable | None = None    # runs -> text behind the title
    below: list = ()                # rows of text below the measured ones
    complete: bool = False          # empty unless each run was measured
    sparse: bool = False            # columns of zeros are left out, too

    def runs(self) -> list:
        """Return the runs of all rows."""
        return [run for _, row in self.rows for run in runs_of(row)]

    def shown(self) -> list:
        """Return the columns in which a row has a figure."""
        return [column for column in self.columns
                if any(value if self.sparse else value is not None for value in
                       (column.value(row) for _, row in self.rows))]

    def cells(self) -> tuple[list, list]:
        """Return the head and the rows as text."""
        columns, by_label = self.shown(), dict(self.rows)
        rows = [[label, *(column.cell(row, by_label.get(self.base(label)) if self.base else None)
                          for column in columns)] for label, row in self.rows]
        return (["", *(column.title() for column in columns)],
                [row for row in rows if any(row[1:])])

    def lines(self) -> list[str]:
        """Return the lines of Markdown, none if nothing was measured."""
        if self.complete and not all(run.result for run in self.runs()):
            return []
        head, rows = self.cells()
        if not rows:
            return []
        note = f" ({self.note(self.runs())})" if self.note else ""
        return [f"**{self.title}**{note}", "", *markdown(head, [*rows, *self.below]), ""]


def labelled(runs: list) -> list:
    """Return rows of a table, each a run with its label."""
    return [(run.label, run) for run in runs]


def markdown(head: list, rows: list) -> list[str]:
    """Return the lines of a table: the first column aligned left, the others right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(map(str, row)) + " |" for row in (head, rule, *rows)]


def align(rows: list) -> list[str]:
    """Return the lines of a text table: the first column aligned left, the others right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]),
                       *(cell.rjust(width) for cell, width
                         in zip(row[1:], widths[1:], strict=True))]).rstrip()
            for row in rows]
