# SPDX-License-Identifier: GPL-2.0
"""What a drive's scheduler shows of itself in debugfs: its queue, and the statistics that only
it has. Documentation/tunables.md describes the files of this project's schedulers."""
import dataclasses
import pathlib
import re

from ssd_common.drive import in_flight, read
from ssd_common.policies import POLICIES
from ssd_ctl.latencies import CLASSES, DIRECTIONS

# As this project's schedulers print them, and mq-deadline.
CLASS_NAMES = {"rt": "real-time", "be": "best-effort", "idle": "idle"}
COMMON = ("stats", "readers")
FILES = {name: (*COMMON, *policy.files) for name, policy in POLICIES.items()}
# Rows with a first line of names; the others are lines with names and numbers.
TABLES = ("stats", "regions", "units", "batches", "classes")
Row = dict[str, int | str]
Parsed = list[Row] | dict[str, int]


@dataclasses.dataclass
class Queue:
    """Requests of a drive. @queued: in the scheduler; a direction is None, or "all" is the only
    key, if the scheduler does not tell; empty without a scheduler. @in_flight: at the drive.
    @classes: both by class and direction, if the scheduler tells; of mq-deadline "queued" only."""
    queued: dict[str, int]
    in_flight: dict[str, int]
    classes: dict[str, dict[str, dict[str, int]]]


def number(text: str) -> int | str:
    """Return a word as a number if it is one."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def table(text: str) -> list[Row]:
    """Return the rows of a table. A column may be empty, so one space separates columns."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if not lines:
        return []
    names = lines[0].split()
    return [dict(zip(names, map(number, line.split(" ")), strict=False)) for line in lines[1:]]


def numbers(text: str) -> dict[str, int]:
    """Return {name: number} of lines such as "hits 3" and "batches read 3 write 4"; a name in
    front of others is added to them."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if "log2" in line or len(words) < 2:
            continue
        front = f"{words.pop(0)} " if len(words) % 2 else ""
        found |= {front + name: int(value)
                  for name, value in zip(words[::2], words[1::2], strict=True)}
    return found


class SchedulerFiles:
    """The files of a drive in debugfs."""

    def __init__(self, name: str, debugfs: pathlib.Path, sysfs: pathlib.Path):
        """@name: of the drive, as in sysfs."""
        self.folder = debugfs / "block" / name
        self.sysfs = sysfs

    def statistics(self, scheduler: str) -> dict[str, Parsed]:
        """Return the contents of the scheduler's own files, {file: contents}."""
        texts = {name: read(self.folder / "sched" / name) for name in FILES.get(scheduler, ())}
        return {name: table(text) if name in TABLES else numbers(text)
                for name, text in texts.items() if text}

    def queue(self, scheduler: str) -> Queue:
        """Return the requests of the drive."""
        at_drive = in_flight(self.sysfs)
        if scheduler == "none":
            return Queue({}, at_drive, {})
        rows = table(read(self.folder / "sched/stats"))
        if rows:
            return self.ours(rows)
        if (self.folder / "sched/read0_fifo_list").exists():
            return self.deadline(at_drive)
        return Queue(self.tags(sum(at_drive.values())), at_drive, {})

    @staticmethod
    def ours(rows: list[Row]) -> Queue:
        """Return what a scheduler of this project shows."""
        classes: dict = {name: {} for name in CLASSES}
        for row in rows:
            # Polled requests are counted apart.
            classes[CLASS_NAMES[row["tier"]]][row["dir"]] = {
                "queued": row["queued"], "in_flight": row["in_flight"] + row["polled"]}
        sums = {key: {way: sum(classes[tier][way][key] for tier in CLASSES) for way in DIRECTIONS}
                for key in ("queued", "in_flight")}
        return Queue(sums["queued"], sums["in_flight"], classes)

    def deadline(self, at_drive: dict[str, int]) -> Queue:
        """Return what mq-deadline shows: a line for each queued request in files for directions
        and classes, which it numbers in the order of CLASSES."""
        queued = {tier: {way: len(read(self.folder / f"sched/{way}{number}_fifo_list").splitlines())
                         for way in DIRECTIONS} for number, tier in enumerate(CLASSES)}
        return Queue({way: sum(ways[way] for ways in queued.values()) for way in DIRECTIONS},
                     at_drive, {tier: {way: {"queued": count} for way, count in ways.items()}
                                for tier, ways in queued.items()})

    def tags(self, at_drive: int) -> dict[str, int]:
        """Return the queued requests of another scheduler, of both directions: those that have
        a scheduler's tag, but are not at the drive."""
        queues = sorted(self.folder.glob("hctx[0-9]*"))
        if queues and "HCTX_SHARED" in read(queues[0] / "flags"):
            queues = queues[:1]
        texts = [read(queue / "sched_tags") for queue in queues]
        if not any(texts):
            return {}
        busy = sum(int(count) for text in texts for count in re.findall(r"^busy=(\d+)", text, re.M))
        return {"all": max(0, busy - at_drive)}
