# SPDX-License-Identifier: GPL-2.0
"""The load: a job file of fio, made to run for as long as is wanted on the file or device that is
measured on, and what counts of a window.

Of a user's job file all is kept but what says where and for how long (CHANGED), and what is logged.
Its jobs run together and without end; what does not fit that is refused.

What counts: of each job with no limit of its own the rate; of a job that a rate or pauses limit,
whose rate says little, the inverse of the mean latency of its reads and of its writes (the mean of
their logarithms). Each is a part: something done, and what it took. The score is the mean of the
logarithms over the jobs, so that twice the rate of one job is worth half the rate of another one. A
comment "# weight=N" in a job's section gives it another weight than 1. Its numjobs are one job
together.
"""
import dataclasses
import pathlib
import re

import numpy

from ssd_ctl import CtlError

JOBS = pathlib.Path(__file__).resolve().parents[2] / "jobs"
NAMED = ("desktop", "database", "copy")
# Options that are kept only if they are in percent.
PARTS = ("size", "offset", "offset_increment")
PERCENT = re.compile(r"(\d*\.?\d+)%")
# Parts are whole numbers of so many bytes, one at least.
ALIGN = 1 << 20
# Other names of options.
ALIASES = {"fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime"}
# Options that are ours.
CHANGED = {
    "filename", "directory", "filename_format", "nrfiles", "filesize", "file_size", "openfiles",
    "runtime", "ramp_time", "time_based", "loops", "io_size", "io_limit", "number_ios",
    "startdelay", "opendir", "file_append", "fill_device", "fill_fs", *PARTS,
    "write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log",
    "log_avg_msec", "log_offset", "log_prio", "log_compression", "log_store_compressed",
    "per_job_logs", "log_hist_msec", "log_max_value", "log_unix_epoch", "log_issue_time",
    "log_alternate_epoch", "log_alternate_epoch_clock_id", "group_reporting", "new_group",
    "gtod_reduce", "disable_lat", "disable_clat", "disable_slat", "exitall", "exit_what",
    "unlink", "unlink_each_loop", "create_only", "overwrite", "zero_buffers", "fallocate",
    "stats", "clocksource", "gtod_cpu", "lat_percentiles", "clat_percentiles", "percentile_list",
    "do_verify", "experimental_verify"}
# fio verifies data if a job has an option that begins so.
VERIFY = "verify"
REFUSED = {
    "stonewall": "its jobs do not run together", "wait_for": "its jobs do not run together",
    "wait_for_previous": "its jobs do not run together",
    "read_iolog": "it replays a trace", "replay_redirect": "it replays a trace",
    "client": "it runs elsewhere", "zonemode": "zones are not supported",
    "trim_percentage": "discards are not measured"}
RATE = ("rate", "rate_iops")
PACED = (*RATE, "rate_min", "rate_iops_min", "thinktime", "thinkcycles")
# Options with which a job flushes. fio logs no latencies of that.
FLUSHES = ("fsync", "fdatasync", "sync_file_range")
WEIGHT = re.compile(r"[#;]\s*weight\s*=\s*(\d*\.?\d+)\s*$")
READ, WRITE = 0, 1
WAYS = {READ: "read", WRITE: "write"}
# Latencies are logged with the time of completion by this clock, in ms.
CLOCK_MONOTONIC = 1
# Values of rw whose jobs read and write, and what can leave out one of the two.
MIXED = ("rw", "readwrite", "randrw")
SINGLE = {"read": READ, "randread": READ, "write": WRITE, "randwrite": WRITE}
ONLY = {"rwmixread": {"100": READ, "0": WRITE}, "rwmixwrite": {"100": WRITE, "0": READ}}
# Bytes in which rates are counted.
BLOCK = 4096


@dataclasses.dataclass
class Section:
    """A job: its name, its options without the global ones, in order, and what it is worth."""
    name: str
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    weight: float = 1.0

    def shared(self) -> bool:
        """Return true if fio takes its options as those of all later jobs."""
        return self.name.startswith("global")


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
        for section in self.sections:
            for key in section.options:
                if key in REFUSED:
                    raise CtlError(f"{where}: {key} in [{section.name}]: {REFUSED[key]}: "
                                   "leave it out")
            way = direction(section.options)
            if "trim" in way:
                raise CtlError(f"{where}: rw={way} in [{section.name}]: discards are not measured")
            if way not in (*MIXED, *SINGLE):
                raise CtlError(f"{where}: rw={way} in [{section.name}]: write a direction of fio")
        for job in self.jobs:
            if self.options(job).get("io_submit_mode") == "offload":
                raise CtlError(f"{where}: io_submit_mode=offload in [{job.name}]: fio does not end "
                               "with it: leave it out")
        if not sum(job.weight for job in self.jobs):
            raise CtlError(f"{where}: all weights are 0: then nothing counts")

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
        """Return where a job does I/O, in bytes of the first @size of what is measured on. A size
        or offset that is not in percent fits only the user's own file, and is ignored."""
        options = self.options(job)
        share = {key: float(match[1]) / 100 for key in PARTS
                 if (match := PERCENT.fullmatch(options.get(key, "")))}
        made = {key: int(size * share[key]) // ALIGN * ALIGN for key in PARTS if key in share}
        jobs = options.get("numjobs") or "1"
        if not jobs.isdecimal():
            raise CtlError(f"[{job.name}]: numjobs={jobs}: write a number")
        last = made.get("offset", 0) + (int(jobs) - 1) * made.get("offset_increment", 0)
        if last + ALIGN > size:
            raise CtlError(f"[{job.name}]: its offset leaves nothing of {size >> 20} MiB")
        made["size"] = max(ALIGN, min(made.get("size", size), size - last))
        return made

    def job_file(self, place: str, size: int, logs: str, seed: int) -> str:
        """Return the job file for fio. @place: what is measured on, the first @size bytes of it,
        @logs: the folder for logs, @seed: of this run."""
        lines = []
        for number, job in enumerate(self.jobs):
            options = self.options(job)
            kept = {key: value for key, value in options.items()
                    if key not in CHANGED and not key.startswith(VERIFY)}
            kept |= {key: str(value) for key, value in self.parts_of(job, size).items()}
            kept |= {"filename": place, "time_based": "1", "runtime": "1000000",
                     "exitall_on_error": "1",
                     "overwrite": "1", "fallocate": "none", "disable_slat": "1",
                     "disable_clat": "1",
                     "randseed": str(seed * 1000 + number), "write_lat_log": f"{logs}/{number}",
                     "log_alternate_epoch": "1",
                     "log_alternate_epoch_clock_id": str(CLOCK_MONOTONIC)}
            lines += [f"[{job.name}]", *(f"{key}={value}" if value else key
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
    """Return the value of rw, or of its other name, without what follows a colon."""
    values = [value for key, value in options.items() if key in ("rw", "readwrite")]
    return values[-1].partition(":")[0] if values else "read"


def sections_of(text: str, where: str) -> list[Section]:
    """Return the sections of a job file, with numbers that tell those of one name apart."""
    found: list[Section] = []
    for number, line in enumerate(text.splitlines(), 1):
        weight = WEIGHT.fullmatch(line.strip())
        words = re.split(r"\s[;#]", line.strip())[0].strip()
        if weight and found:
            found[-1].weight = float(weight[1])
        if not words or words[0] in "#;":
            continue
        if words.startswith("[") and words.endswith("]"):
            found.append(Section(words[1:-1]))
        elif words.startswith("include "):
            raise CtlError(f"{where}:{number}: include is not supported: insert the file")
        elif found:
            key, _, value = words.partition("=")
            key = key.strip().lower()
            found[-1].options[ALIASES.get(key, key)] = value.strip()
        else:
            raise CtlError(f"{where}:{number}: {words} is in no section: is this a job file?")
    return found


def load(name: str) -> Workload:
    """Return a workload by its name, or of a job file by its path."""
    path = JOBS / f"{name}.fio" if name in NAMED else pathlib.Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is no text"
        raise CtlError(f"{path}: {reason} (a job file of fio, or one of {', '.join(NAMED)})"
                       ) from None
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
