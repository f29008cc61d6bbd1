# SPDX-License-Identifier: GPL-2.0
"""The load: a job file of fio, made to run for as long as is wanted on the file or device that is
measured on, and what counts of a window.

Of a user's job file the options are kept that change the load (options.ALLOWED). Its jobs run
without end; what does not fit that is refused. Jobs run together unless one waits for others
(stonewall, wait_for): then each phase of them runs alone, since that is the load that the user has,
and all together would be another one. A phase in which nothing counts does not run.

What counts: of each job with no limit of its own the rate; of a job that a rate or pauses limit,
whose rate says little, the inverse of the mean latency of its reads and of its writes (the mean of
their logarithms). Each is a part: something done, and what it took. The score is the mean of the
logarithms over the jobs, so that twice the rate of one job is worth half the rate of another one. A
comment "# weight=N" in a job's section gives it another weight than 1. Its numjobs are one job
together. Discards count as writes do. fio logs no latencies of flushes: those of a job whose
latencies count are the drive's, by the kernel's count.
"""
import dataclasses
import pathlib

import numpy

from ssd_ctl import CtlError
from ssd_ctl.advice import command_line, job_text
from ssd_ctl.advice.job_file import PARTS, PERCENT, Section, sections_of
from ssd_ctl.advice.options import ENGINES, OF_ENGINES, OFF, ORDER

JOBS = pathlib.Path(__file__).resolve().parents[2] / "jobs"
NAMED = ("desktop", "database", "copy")
# Parts are whole numbers of so many bytes, one at least.
ALIGN = 1 << 20
RATE = ("rate", "rate_iops")
PACED = (*RATE, "thinktime")
# Options with which a job that writes flushes.
FLUSHES = ("fsync", "fdatasync")
# Processes of all jobs together: each has memory and logs of its own.
MOST_JOBS = 1024
# What fio uses of itself.
ENGINE = "psync"
READ, WRITE, TRIM = 0, 1, 2
WAYS = {READ: "read", WRITE: "write", TRIM: "discard"}
# What a job waits for beside its I/O.
FLUSH = 3
# Latencies are logged with the time of completion by this clock, in ms.
CLOCK_MONOTONIC = 1
# What a job does by its value of rw, without what begins it if it is random; and what can make the
# others only read or only write.
DONE = {"read": [READ], "write": [WRITE], "trim": [TRIM], "trimwrite": [WRITE, TRIM]}
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
    """A load. @name: as the user calls it, @jobs: the text of a job file, or its sections, @where:
    its name in messages, @folder: what it may include from. @flushes: the phases in which the drive
    has flushes, which then count."""

    def __init__(self, name: str, jobs: str | list[Section], where: str,
                 folder: job_text.Folder | None = None):
        self.name = name
        self.flushes: set[int] = set()
        self.sections = sections_of(jobs, where, folder) if isinstance(jobs, str) else jobs
        self.jobs = [section for section in self.sections if not section.shared()]
        self.check_number(where)
        phases = [phase for phase in self.in_order(where) if any(job.weight for job in phase)]
        self.jobs = [job for phase in phases for job in phase]
        if not self.jobs:
            raise CtlError(f"{where}: all weights are 0: then nothing counts")
        numbers = iter(range(len(self.jobs)))
        # The numbers of the jobs that run together.
        self.phases = [[next(numbers) for _ in phase] for phase in phases]
        for phase in phases:
            count = sum(map(self.number_of, phase))
            if count > MOST_JOBS:
                raise CtlError(f"{where}: {count} jobs at once, by their numjobs: {MOST_JOBS} can "
                               "run at most")

    def check_number(self, where: str):
        """Raise CtlError if there is no job, or are too many."""
        if not self.jobs:
            raise CtlError(f"{where} has no job of fio")
        if len(self.jobs) > MOST_JOBS:
            raise CtlError(f"{where}: {len(self.jobs)} jobs: {MOST_JOBS} can run at most")

    def in_order(self, where: str) -> list[list[Section]]:
        """Return the jobs by when they run: a job with stonewall, and those behind it, after all
        before it; one with wait_for after the job of that name."""
        first, phases = 0, []
        for job in self.jobs:
            options = self.options(job)
            if options.get("stonewall", "0") != "0":
                first = len(phases)
            after, at = options.get("wait_for", ""), first
            if after not in ("", *OFF):
                waited = [number for number, phase in enumerate(phases)
                          if any(each.name == after for each in phase)]
                if not waited:
                    raise CtlError(f"{where}: wait_for={after} in [{job.name}]: there is no job of "
                                   "this name before it")
                at = max(first, waited[-1] + 1)
            phases += [[] for _ in range(at + 1 - len(phases))]
            phases[at].append(job)
        return phases

    def phase_of(self, number: int) -> int:
        """Return in which phase a job runs."""
        return next(at for at, phase in enumerate(self.phases) if number in phase)

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

    def is_flushing(self, job: Section) -> bool:
        """Return true if a job flushes what it writes."""
        return WRITE in self.ways(job) and self.has_any(job, FLUSHES)

    def unlogged(self) -> list[str]:
        """Return the names of jobs whose latencies count and that write to the page cache, so that
        they wait for flushes, and not for what is logged."""
        return [job.name for job in self.jobs if self.paced(job) and self.is_flushing(job) and
                not self.has_any(job, ("direct", "atomic")) and
                self.options(job).get("buffered") != "0"]

    def check_place(self, size: int, kind: str, discards: bool):
        """Raise CtlError if the jobs cannot do their I/O on the first @size bytes of what is
        measured on. @kind: "file", "partition" or "drive", @discards: the drive has them."""
        for job in self.jobs:
            self.parts_of(job, size)
            if TRIM not in self.ways(job):
                continue
            said = f"[{job.name}]: rw={self.options(job)['rw']} discards"
            if kind == "file":
                raise CtlError(f"{said}: fio does that on a drive or a partition (--destroy), not "
                               "on a file")
            if not discards:
                raise CtlError(f"{said}, and the drive has no discards: leave the job out")

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
        which fio takes only in a global section, and those for which we start the jobs in
        phases."""
        options = self.options(job)
        others = OF_ENGINES - ENGINES[options.get("ioengine", ENGINE)] | ORDER.keys()
        return {key: value for key, value in options.items() if key not in others}

    def job_file(self, place: str, size: int, logs: str, seed: int, phase: int = 0,
                 threads: bool = False) -> str:
        """Return the job file for fio, whose jobs have their numbers as names. @place: what is
        measured on, the first @size bytes of it, @logs: the folder for logs, @seed: of this
        run, @phase: the jobs that run, @threads: they are threads, which end with fio's process."""
        lines = []
        for number in self.phases[phase]:
            job = self.jobs[number]
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
        way = options.get("rw", "read").partition(":")[0].removeprefix("rand")
        if way in DONE:
            return DONE[way]
        shares = [ONLY[key].get(value.removesuffix("%"))
                  for key, value in options.items() if key in ONLY]
        return [READ, WRITE] if not shares or shares[-1] is None else [shares[-1]]

    def counting(self, number: int) -> list[int | None]:
        """Return what counts of a job: the directions whose latencies do, FLUSH if those of flushes
        do; None for its rate."""
        job = self.jobs[number]
        if not self.paced(job):
            return [None]
        flushes = self.phase_of(number) in self.flushes and self.is_flushing(job)
        return self.ways(job) + [FLUSH] * flushes

    def parts(self) -> list[tuple[int, int | None, float]]:
        """Return what counts: the number of a job, what of it, and the weight. All weights are 1
        together."""
        total = sum(job.weight for job in self.jobs)
        return [(number, what, job.weight / total / len(counting))
                for number, job in enumerate(self.jobs)
                for counting in [self.counting(number)] for what in counting]

    def weights(self) -> numpy.ndarray:
        """Return the weights of the parts."""
        return numpy.array([weight for _, _, weight in self.parts()])

    def served(self, done: list[dict[int, Figures]], seconds: float, phase: int = 0,
               flushes: tuple[int, float] = (0, 0.0)) -> numpy.ndarray:
        """Return what a window did of each part, and what it took: blocks and s, or I/Os and ms of
        their latencies; of no I/O, the window's. Nothing of the parts of other phases. @done: of
        each job, by direction, @flushes: of the drive, and their ms."""
        made = []
        for number, what, _ in self.parts():
            figures = done[number]
            if number not in self.phases[phase]:
                made.append((0, 0))
            elif what is None:
                made.append((sum(each.bytes for each in figures.values()) / BLOCK, seconds))
            elif what == FLUSH and flushes[0]:
                made.append(flushes)
            elif what in figures:
                made.append((figures[what].ios, figures[what].ios * figures[what].mean))
            else:
                made.append((0, seconds * 1e3))
        return numpy.array(made)


def later(options: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Return options with @more behind them: of two names of an option the last one counts."""
    return {key: value for key, value in options.items() if key not in more} | more


def load(name: str) -> Workload:
    """Return a workload by its name, or of a job file by its path."""
    path = JOBS / f"{name}.fio" if name in NAMED else pathlib.Path(name)
    try:
        text, folder = job_text.read(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no name of a file"
        raise CtlError(f"{path}: {why} (a job file of fio, or one of "
                       f"{', '.join(NAMED)})") from None
    return Workload(name if name in NAMED else path.name, text, str(path), folder)


def of_command(text: str) -> Workload:
    """Return the workload of a command line of fio."""
    return Workload("a command of fio", command_line.sections_of(text), command_line.OPTION)


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
