# SPDX-License-Identifier: GPL-2.0
"""The load: a job file of fio, made to run for as long as is wanted on the file or device that is
measured on, and what counts of a window.

Of a user's job file the options are kept that change the load (options.ALLOWED). Its jobs run
together and without end; what does not fit that is refused.

What counts: of each job with no limit of its own the rate; of a job that a rate or pauses limit,
whose rate says little, the inverse of the mean latency of its reads and of its writes (the mean of
their logarithms). Each is a part: something done, and what it took. The score is the mean of the
logarithms over the jobs, so that twice the rate of one job is worth half the rate of another one. A
comment "# weight=N" in a job's section gives it another weight than 1. Its numjobs are one job
together.
"""
import dataclasses
import pathlib

import numpy

from ssd_ctl import CtlError
from ssd_ctl.advice.job_file import PARTS, PERCENT, Section, sections_of, text_of
from ssd_ctl.advice.options import ENGINES, OF_ENGINES

JOBS = pathlib.Path(__file__).resolve().parents[2] / "jobs"
NAMED = ("desktop", "database", "copy")
# Parts are whole numbers of so many bytes, one at least.
ALIGN = 1 << 20
RATE = ("rate", "rate_iops")
PACED = (*RATE, "thinktime")
# Options with which a job flushes. fio logs no latencies of that.
FLUSHES = ("fsync", "fdatasync", "sync_file_range")
# Processes of all jobs together: each has memory and logs of its own.
MOST_JOBS = 1024
# What fio uses of itself.
ENGINE = "psync"
READ, WRITE = 0, 1
WAYS = {READ: "read", WRITE: "write"}
# Latencies are logged with the time of completion by this clock, in ms.
CLOCK_MONOTONIC = 1
# Values of rw whose jobs only read or only write, and what can make the others do so.
SINGLE = {"read": READ, "randread": READ, "write": WRITE, "randwrite": WRITE}
ONLY = {"rwmixread": {"100": READ, "0": WRITE}, "rwmixwrite": {"100": WRITE, "0": READ}}
# Bytes in which rates are counted.
BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a job did in a window, in one direction. Latencies are in ms."""
    ios: int
    bytes: int
    mean: float
    p99: float


class Workload:
    """A load. @name: as the user calls it."""

    def __init__(self, name: str, text: str, where: str):
        self.name = name
        self.sections = sections_of(text, where)
        self.jobs = [section for section in self.sections if not section.shared()]
        self.check(where)

    def check(self, where: str):
        """Raise CtlError if the load cannot be used."""
        if not self.jobs:
            raise CtlError(f"{where} has no job of fio")
        if not sum(job.weight for job in self.jobs):
            raise CtlError(f"{where}: all weights are 0: then nothing counts")
        few = self.jobs[:MOST_JOBS]
        count = len(self.jobs) - len(few) + sum(map(self.number_of, few))
        if count > MOST_JOBS:
            raise CtlError(f"{where}: {count} jobs, by their numjobs: {MOST_JOBS} can run at most")

    def number_of(self, job: Section) -> int:
        """Return how many processes or threads of fio run a job."""
        return int(self.options(job).get("numjobs", "1"))

    def options(self, job: Section) -> dict[str, str]:
        """Return the options that a job has, with the global ones before it."""
        found: dict[str, str] = {}
        for section in self.sections:
            if section.shared():
                found = later(found, section.options)
            elif section is job:
                break
        return later(found, job.options)

    def has_any(self, job: Section, names: tuple[str, ...]) -> bool:
        """Return true if a job has one of these options, and its value is not 0."""
        options = self.options(job)
        return any(options.get(name, "") not in ("", "0") for name in names)

    def paced(self, job: Section) -> bool:
        """Return true if a rate or pauses limit a job."""
        return self.has_any(job, PACED)

    def has_rate(self, job: Section) -> bool:
        """Return true if a job has a rate."""
        return self.has_any(job, RATE)

    def unlogged(self) -> list[str]:
        """Return the names of jobs whose latencies count, and that flush."""
        return [job.name for job in self.jobs if self.paced(job) and self.has_any(job, FLUSHES)]

    def parts_of(self, job: Section, size: int) -> dict[str, int]:
        """Return where a job does I/O, in bytes of the first @size of what is measured on."""
        options = self.options(job)
        share = {key: float(match[1]) / 100 for key in PARTS
                 if (match := PERCENT.fullmatch(options.get(key, "")))}
        made = {key: int(size * share[key]) // ALIGN * ALIGN for key in PARTS if key in share}
        others = self.number_of(job) - 1
        last = made.get("offset", 0) + others * made.get("offset_increment", 0)
        if last + ALIGN > size:
            raise CtlError(f"[{job.name}]: its offset leaves nothing of {size >> 20} MiB")
        made["size"] = max(ALIGN, min(made.get("size", size), size - last))
        return made

    def kept(self, job: Section) -> dict[str, str]:
        """Return the options of a job that fio gets as they are: without those of other engines,
        which fio takes only in a global section."""
        options = self.options(job)
        others = OF_ENGINES - ENGINES[options.get("ioengine", ENGINE)]
        return {key: value for key, value in options.items() if key not in others}

    def job_file(self, place: str, size: int, logs: str, seed: int, threads: bool = False) -> str:
        """Return the job file for fio, whose jobs have their numbers as names. @place: what is
        measured on, the first @size bytes of it, @logs: the folder for logs, @seed: of this
        run, @threads: the jobs are threads, which end with fio's process."""
        lines = []
        for number, job in enumerate(self.jobs):
            kept = self.kept(job) | self.parts_of(job, size) | {
                "filename": place, "allow_file_create": 0, "overwrite": 1, "fallocate": "none",
                "invalidate": 0, "time_based": 1, "runtime": 1000000, "exitall_on_error": 1,
                "randseed": seed * 1000 + number, "disk_util": 0, "disable_slat": 1,
                "disable_clat": 1, "write_lat_log": f"{logs}/{number}", "log_alternate_epoch": 1,
                "log_alternate_epoch_clock_id": CLOCK_MONOTONIC}
            if threads:
                kept["thread"] = 1
            lines += [f"[{number}]", *(key if value == "" else f"{key}={value}"
                                       for key, value in kept.items())]
        return "\n".join(lines) + "\n"

    def ways(self, job: Section) -> list[int]:
        """Return the directions in which a job does I/O."""
        options = self.options(job)
        way = direction(options)
        if way in SINGLE:
            return [SINGLE[way]]
        shares = [ONLY[key].get(value) for key, value in options.items() if key in ONLY]
        return list(WAYS) if not shares or shares[-1] is None else [shares[-1]]

    def parts(self) -> list[tuple[int, int | None, float]]:
        """Return what counts: the number of a job; the direction if its latencies count, None if
        its rate does; the weight. All weights are 1 together."""
        total = sum(job.weight for job in self.jobs)
        return [(number, way, job.weight / total / len(ways))
                for number, job in enumerate(self.jobs)
                for ways in [self.ways(job) if self.paced(job) else [None]] for way in ways]

    def weights(self) -> numpy.ndarray:
        """Return the weights of the parts."""
        return numpy.array([weight for _, _, weight in self.parts()])

    def served(self, done: list[dict[int, Figures]], seconds: float) -> numpy.ndarray:
        """Return what a window did of each part, and what it took: blocks and s, or I/Os and ms of
        their latencies; of no I/O, the window's. @done: of each job, by direction."""
        made = []
        for number, way, _ in self.parts():
            figures = done[number]
            if way is None:
                made.append((sum(each.bytes for each in figures.values()) / BLOCK, seconds))
            elif way in figures:
                made.append((figures[way].ios, figures[way].ios * figures[way].mean))
            else:
                made.append((0, seconds * 1e3))
        return numpy.array(made)


def later(options: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Return options with @more behind them: of two names of an option the last one counts."""
    return {key: value for key, value in options.items() if key not in more} | more


def direction(options: dict[str, str]) -> str:
    """Return the value of rw without what follows a colon."""
    return options.get("rw", "read").partition(":")[0]


def load(name: str) -> Workload:
    """Return a workload by its name, or of a job file by its path."""
    path = JOBS / f"{name}.fio" if name in NAMED else pathlib.Path(name)
    try:
        text = text_of(path)
    except OSError as error:
        raise CtlError(f"{path}: {error.strerror} (a job file of fio, or one of "
                       f"{', '.join(NAMED)})") from None
    return Workload(name if name in NAMED else path.name, text, str(path))


def figures(times: numpy.ndarray, begin: int, end: int) -> dict[int, Figures]:
    """Return what a job did by direction between two points in ms. @times: rows of its logs: ms of
    completion, latency in ns, direction, bytes."""
    inside = times[(times[:, 0] >= begin) & (times[:, 0] < end)]
    made = {}
    for way in WAYS:
        part = inside[inside[:, 2] == way]
        if len(part):
            latencies = part[:, 1] / 1e6
            made[way] = Figures(len(part), int(part[:, 3].sum()), float(latencies.mean()),
                                float(numpy.quantile(latencies, 0.99)))
    return made
