# SPDX-License-Identifier: GPL-2.0
"""What is published of emulated drives: what a scheduler gains on one, and what it costs.
evidence.json is made from Documentation/results/ by scripts/doc-kinds."""
import dataclasses
import functools
import json
import math
import pathlib

from ssd_ctl.choice import Choice

FILE = pathlib.Path(__file__).resolve().parent / "evidence.json"
# {figure: (what it is, its unit)}.
FIGURES = {"start_s": ("an application starts", "s"), "ops_s": ("reads of a store", "1/s"),
           "install_s": ("a package is installed", "s"), "read_mbps": ("read", "MB/s"),
           "write_mbps": ("written", "MB/s"), "write_p99": ("a write waits (99 %)", "ms")}
# Of these less is better; where nothing was read or written there is no time.
LESS = {"start_s", "install_s", "write_p99"}
# A program that has not ended by then is not waited for.
LONGEST = {"start_s": 60, "install_s": 60}
# The score by which a scheduler may be worse than another one, and a figure that stands for 0.
WORSE, TINY = -0.02, 1e-3
# The matrix with nothing set but the scheduler.
SELECTED = "selected"
PEERS = ("none", "mq-deadline", "bfq")


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a @scheduler on an emulated drive. @means: {scheduler: mean of the seeds}."""
    drive: str
    workload: str
    figure: str
    source: str
    scheduler: str
    means: dict[str, float]

    @property
    def what(self) -> str:
        """What it is, with its unit."""
        name, unit = FIGURES[self.figure]
        return f"{self.workload}: {name}, {unit}"

    @property
    def page(self) -> str:
        """The document that has it."""
        return f"Documentation/results/{self.source}.md"

    def text(self, scheduler: str) -> str:
        """Return a scheduler's value for eyes."""
        value = self.means.get(scheduler)
        if value is None or self.figure in LESS and not value:
            return "-"
        longest = LONGEST.get(self.figure)
        if longest and value >= longest:
            return f"{longest} or more"
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"

    def shown(self) -> tuple[str, ...]:
        """Return the schedulers whose values are shown."""
        return (self.scheduler, *PEERS)

    def against(self, *peers: str) -> str:
        """Return it for eyes, with the values of other schedulers, and where it is published if
        more was set than the scheduler."""
        others = ", ".join(f"{peer} {self.text(peer)}" for peer in peers if peer in self.means)
        page = "" if self.source == SELECTED else f", {self.page}"
        return f"{self.what}: {self.text(self.scheduler)} ({others}){page}"

    def differs(self, peer: str) -> float:
        """Return how much the scheduler's value differs from that of another one: the logarithm of
        their ratio, infinite if one has none."""
        own, other = self.means[self.scheduler], self.means.get(peer, 0)
        return abs(math.log(own / other)) if own and other else math.inf

    def better(self, peer: str) -> bool:
        """Return true if the scheduler's value is better than that of another one."""
        own, other = self.means[self.scheduler], self.means.get(peer, 0)
        if self.figure in LESS and own and other:
            return own < other
        return own > other

    def lost(self, *peers: str) -> float:
        """Return how much the scheduler's value is worse than the best one of others, as differs();
        negative: it is better than all."""
        return max(self.differs(peer) * (-1 if self.better(peer) else 1) for peer in peers)

    def __str__(self) -> str:
        return self.against(*PEERS)

    def as_json(self) -> dict:
        """Return it for json.dump()."""
        return {"drive": self.drive, "workload": self.workload, "figure": self.figure,
                "source": self.page, "means": self.means}


def telling(figures: list[Figure], peer: str) -> list[Figure]:
    """Return figures, those that differ most from those of another scheduler first."""
    return sorted(figures, key=lambda each: -each.differs(peer))


def worst(figures: list[Figure], *peers: str) -> list[Figure]:
    """Return of each load the figure that is most behind one of other schedulers, those that are
    most behind first."""
    found: dict[str, Figure] = {}
    for each in sorted(figures, key=lambda each: -each.lost(*peers)):
        found.setdefault(each.workload, each)
    return list(found.values())


@functools.cache
def cells() -> list[dict]:
    """Return the cells."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def score(drive: str, workload: str, scheduler: str, peer: str) -> float:
    """Return how much better a scheduler is than another one under a load on an emulated drive: the
    mean of the logarithms of the ratios of the load's figures, as the score of ssdctl advise. 0
    counts as a thousandth."""
    logs = [math.log((cell["means"][scheduler] or TINY) / (cell["means"][peer] or TINY)) *
            (-1 if cell["figure"] in LESS else 1)
            for cell in cells() if (cell["drive"], cell["workload"]) == (drive, workload)]
    return sum(logs) / len(logs)


def behind(drive: str, scheduler: str, peer: str) -> list[str]:
    """Return the loads under which a scheduler is worse than another one on an emulated drive, by
    more than WORSE; [] if the other one was not measured on it."""
    loads = dict.fromkeys(cell["workload"] for cell in cells()
                          if cell["drive"] == drive and peer in cell["means"])
    return [load for load in loads if score(drive, load, scheduler, peer) < WORSE]


def better(drive: str, present: str, choice: Choice) -> str:
    """Return a sentence that says under which loads the @present scheduler of a drive does better
    than a choice, by the emulated @drive; "" if it does not."""
    loads = behind(drive, choice.scheduler, present)
    return f"it has {present}, which does better than {choice} in: {', '.join(loads)}" if loads \
        else ""


def of(drive: str, scheduler: str, *peers: str) -> tuple[list[Figure], list[Figure]]:
    """Return what a scheduler gains on an emulated drive, against none and other @peers, and what
    it costs against one of these, where the intervals of the seeds decide it."""
    gains, costs = [], []
    for cell in cells():
        signs = cell["signs"].get(scheduler, {})
        against = [signs.get(peer, 0) for peer in {"none", *peers}]
        found = Figure(cell["drive"], cell["workload"], cell["figure"], cell["source"], scheduler,
                       cell["means"])
        if cell["drive"] != drive:
            continue
        if min(against) < 0:
            costs.append(found)
        elif max(against) > 0:
            gains.append(found)
    return gains, costs
