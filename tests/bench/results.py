# SPDX-License-Identifier: GPL-2.0
"""Imported by the benchmark: the figures of a run, and how schedulers compare in them."""
from report import Column

COLUMNS = (
    Column("mbps", "total", "MB/s", more=True),
    *(Column(f"{way}_{key}", f"{way} {key}", "ms")
      for way in ("read", "write") for key in ("mean", "p50", "p99", "p99.9", "max")),
    Column("write_amplification", "WA", "x"),
    Column("erases", "erases", ""),
    Column("utilisation", "units busy", "of 1", more=True),
    Column("of_bound", "of bound", "of 1", more=True),
    Column("apart", "seeds apart", "%"),
)


class Results:
    """What a run of the benchmark has left in results.json: @saved, its content."""

    def __init__(self, saved):
        self.saved = saved
        self.ours = self.saved["schedulers"]["ours"]
        self.peers = self.saved["schedulers"]["peers"]

    def cells(self, kind):
        """The cells of a kind."""
        return [cell for cell in self.saved["cells"] if cell["kind"] == kind]

    def is_ours(self, label):
        """Return True if a label names a scheduler of this project."""
        return label.partition(" ")[0] in self.ours


def best_peer(results, cell, key="mbps", more=True):
    """(label, value) of the best peer in a cell, tuned or not."""
    values = {label: row[key] for label, row in cell["results"].items()
              if not results.is_ours(label) and key in row}
    return (max if more else min)(values.items(), key=lambda item: item[1])


def gain(results, cell, label, column):
    """Percent by which a scheduler is better than the best peer in a cell, or None."""
    row = cell["results"][label]
    if column.key not in row:
        return None
    best = best_peer(results, cell, column.key, column.more)[1]
    return column.gain(row[column.key], best) if best and row[column.key] else None


def cost_rows(results):
    """(workload, {scheduler: instructions an I/O})"""
    return [(cell["workload"], {label: row["instructions"]
                                for label, row in cell["results"].items()})
            for cell in results.cells("cpu")]
