# SPDX-License-Identifier: GPL-2.0
"""Results of the benchmark, and how schedulers compare in them.

A cell is a dictionary: kind, device, workload, and results, {label: {key: figure}}.
"""
from tables import Column

LABEL = "emulated device, virtual time"
THROUGHPUT = Column("total", "mbps", "MB/s", more=True)
COLUMNS = (
    THROUGHPUT,
    *(Column(f"{way} {key}", f"{way}_{key}", "ms")
      for way in ("read", "write") for key in ("mean", "p50", "p99", "p99.9", "max")),
    Column("WA", "write_amplification", "x"),
    Column("erases", "erases"),
    Column("units busy", "utilisation", "of 1", more=True),
    Column("of bound", "of_bound", "of 1", more=True),
    Column("seeds apart", "apart", "%"),
)


class Results:
    """The content of results.json, @saved."""

    def __init__(self, saved: dict):
        self.saved = saved
        self.ours = saved["schedulers"]["ours"]
        self.peers = saved["schedulers"]["peers"]

    def cells(self, *kinds: str) -> list:
        """Return the cells of these kinds."""
        return [cell for kind in kinds for cell in self.saved["cells"] if cell["kind"] == kind]

    def is_ours(self, label: str) -> bool:
        """Return True if a label names a scheduler of this project."""
        return label.partition(" ")[0] in self.ours


def best_peer(results, cell, column) -> float:
    """Return the best figure of the peers in a cell, with defaults or tuned; 0 if none has
    one."""
    values = [column.value(row) for label, row in cell["results"].items()
              if not results.is_ours(label)]
    known = [value for value in values if value is not None]
    return column.best(known) if known else 0


def gain(results, cell, label, column=THROUGHPUT) -> float | None:
    """Return the percent by which a scheduler is better than the best peer in a cell."""
    ours, best = column.value(cell["results"][label]), best_peer(results, cell, column)
    return column.gain(ours, best) if ours and best else None


def ranked(results, scheduler, cells) -> list:
    """Return [(gain in throughput, cell)] of a scheduler, the worst first."""
    return sorted(((gain(results, cell, scheduler), cell) for cell in cells
                   if scheduler in cell["results"]),
                  key=lambda item: (item[0], item[1]["device"], item[1]["workload"]))


def standing(gains: list) -> tuple[int, int, int, float]:
    """Return of gains in percent how many are above 2, within 2 and below -2, and the mean."""
    return (sum(value > 2 for value in gains), sum(-2 <= value <= 2 for value in gains),
            sum(value < -2 for value in gains), sum(gains) / len(gains))


def cost_rows(results) -> list:
    """Return [(workload, {scheduler: instructions an I/O})]."""
    return [(cell["workload"], {label: row["instructions"]
                                for label, row in cell["results"].items()})
            for cell in results.cells("cpu")]
