# SPDX-License-Identifier: GPL-2.0
"""Imported by bench.py: the same jobs on real drives of other machines, through fio's client
and server. Each machine runs "fio --server" as root.

The file HOSTS names one drive in a line; '#' starts a comment:

    ADDRESS[,PORT] /dev/NAME

All data on these drives is lost. The user must therefore type each name again, and before
each job the machine checks that the drive is a whole drive without partitions, holders or
mounts; otherwise fio's server does not run the job. At the end the drive's scheduler is
selected again. Times are wall-clock times of real machines: they do not repeat, and must not
be compared with those of emulated devices.
"""
import dataclasses
import json
import pathlib
import re
import string
import subprocess
import tempfile
import uuid

import guests
import matrix
import model

LINE = re.compile(r"([A-Za-z0-9_.:-]+(?:,\d+)?)\s+(/dev/[A-Za-z0-9_/-]+)")
# No ';': it starts a comment in a job file.
WHOLE = ("test -b {device} && test $(lsblk -nro NAME {device} | wc -l) = 1 && "
         "lsblk -nro TYPE {device} | grep -qvx part && "
         "test -z $(lsblk -nro MOUNTPOINT {device})")
SELECT = ("test -e {saved} || sed s/.*[[]// {queue} | sed s/].*// >{saved} && "
          "echo {scheduler} >{queue}")
RESTORE = "cat {saved} >{queue} && rm {saved}"
LABEL = "real drives, wall-clock time"
# For the depth of the deep writers: the requests that such a drive is taken to take at a time.
TAGS = 64


@dataclasses.dataclass
class Drive:
    """A drive of another machine."""
    host: str
    device: str

    def __str__(self):
        return f"{self.host} {self.device}"

    def __post_init__(self):
        # A name of this run only: the file of another run may hold another scheduler.
        self.saved = f"/tmp/ssd-iosched-{uuid.uuid4().hex}"

    def command(self, text: str, scheduler: str = "") -> str:
        """Return a shell command for the machine; @text: WHOLE, SELECT or RESTORE."""
        name = self.device.removeprefix("/dev/").replace("/", "!")
        return "(" + text.format(device=self.device, scheduler=scheduler, saved=self.saved,
                                 queue=f"/sys/class/block/{name}/queue/scheduler") + ")"


def read_hosts(path: pathlib.Path) -> list[Drive]:
    """Return the drives that a HOSTS file names."""
    drives = []
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise model.Failed(f"{path}: {error.strerror}") from None
    for number, whole in enumerate(lines, 1):
        line = whole.partition("#")[0].strip()
        found = LINE.fullmatch(line)
        if line and not found:
            raise model.Failed(f"{path}:{number}: not 'ADDRESS[,PORT] /dev/NAME'")
        if line:
            drives.append(Drive(*found.groups()))
    if not drives:
        raise model.Failed(f"{path} names no drive")
    return drives


def confirm(drives: list[Drive]):
    """Ask for each drive's name; raise Failed if another text is typed."""
    print("All data on these drives will be lost:", *map(str, drives), sep="\n    ")
    for drive in drives:
        try:
            typed = input(f"Type '{drive}' to continue: ")
        except EOFError:
            typed = ""
        if typed.strip() != str(drive):
            raise model.Failed(f"{drive} was not confirmed: nothing was written")


def job_text(drive: Drive, run: model.Run) -> str:
    """Return a run's job file with the values of its variables: fio does not pass the
    environment to a server."""
    text = string.Template((model.JOBS / f"{run.job}.fio").read_text()).substitute(
        {**run.variables, "DEVICE": drive.device})
    percentiles = ":".join(map(str, model.PERCENTILES))
    prerun = drive.command(f"{WHOLE} && {SELECT}", run.scheduler)
    return (f"[global]\nexec_prerun={prerun}\nlat_percentiles=1\nclat_percentiles=0\n"
            f"percentile_list={percentiles}\n") + text


def fio(drive: Drive, text: str) -> dict | None:
    """Run the job file @text on a machine. Return fio's result, None if the machine refused
    the job."""
    with tempfile.NamedTemporaryFile("w", suffix=".fio") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(["fio", f"--client={drive.host}", "--output-format=json",
                               file.name], capture_output=True, text=True, check=False)
    if done.returncode or "{" not in done.stdout:
        reason = (done.stderr.strip() or done.stdout.strip() or "no answer").splitlines()[-1]
        raise model.Failed(f"{drive}: {reason}")
    stats = json.loads(done.stdout[done.stdout.index("{"):]).get("client_stats", [])
    if not stats or not sum(stats[0][way]["total_ios"] for way in ("read", "write")):
        return None
    return {"jobs": stats[:1]}


def check(drive: Drive):
    """Raise Failed if a drive is not a whole, unused drive. Reads one block of it."""
    text = (f"[check]\nexec_prerun={drive.command(WHOLE)}\nfilename={drive.device}\n"
            "rw=read\nbs=4k\nsize=4k\nio_size=4k\n")
    if fio(drive, text) is None:
        raise model.Failed(f"{drive}: refused: it has to be a whole drive that is not "
                           "mounted, not partitioned and not in use")


def restore(drive: Drive):
    """Select the scheduler that the drive had before the first job."""
    fio(drive, f"[restore]\nexec_prerun={drive.command(RESTORE)}\nfilename={drive.device}\n"
        "rw=read\nbs=4k\nsize=4k\nio_size=4k\n")


def measure_drive(drive: Drive, workloads: dict[str, matrix.Workload], times: dict[str, str],
                  seeds: int, progress: guests.Progress) -> list[matrix.Cell]:
    """Measure @workloads on a drive with each of @seeds; return a cell for each. fio counts what
    it gets done by its own runtime."""
    cells = []
    for name, workload in workloads.items():
        cell = matrix.Cell("fleet", str(drive), name)
        for seed in range(1, seeds + 1):
            for scheduler in (*model.PEERS, *model.ours()):
                run = model.Run("", workload.job, scheduler, device=str(drive),
                                variables=workload.variables | times | {"SEED": str(seed)})
                got = fio(drive, job_text(drive, run))
                if got is None:
                    progress.step(f"{drive}, {name}, {scheduler}: not run, the machine does "
                                  "not have this scheduler")
                    continue
                run.result = {"fio": got, "ssdemu": {}}
                run.result["figures"] = model.figures_of(run)
                cell.runs.append(run)
                progress.step(f"{drive}, {name}, {scheduler}: "
                              f"{run.result['figures']['mbps']:.1f} MB/s")
        cells.append(cell)
    return cells


def measure(path: pathlib.Path, quick: bool) -> list[matrix.Cell]:
    """Confirm, check and measure the drives of a HOSTS file; return their cells."""
    drives = read_hosts(path)
    confirm(drives)
    for drive in drives:
        check(drive)
    seconds = 1 if quick else 30
    times = {"RAMP": "250ms" if quick else "5s", "RUNTIME": f"{seconds}s"}
    workloads = {name: workload.on(TAGS) for name, workload in
                 (matrix.WORKLOADS_QUICK if quick else matrix.WORKLOADS).items()
                 if not workload.drives}
    seeds = matrix.SEEDS_QUICK if quick else matrix.SEEDS
    progress = guests.Progress(len(drives) * len(workloads) * seeds
                               * len((*model.PEERS, *model.ours())))
    cells = []
    for drive in drives:
        try:
            cells += measure_drive(drive, workloads, times, seeds, progress)
        finally:
            restore(drive)
    return cells
