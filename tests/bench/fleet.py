# SPDX-License-Identifier: GPL-2.0
"""Imported by bench.py: the same jobs on real drives of other machines, through
fio's own client and server (on each machine, as root: fio --server).

HOSTS names a drive a line, '#' begins a comment:

    ADDRESS[,PORT] /dev/NAME

All that is on these drives is lost. So each name must be typed in again, and the
machine itself is asked before each job whether the drive is a whole one, without
partitions, holders or mounts; fio's server runs no job otherwise. The drive's own
scheduler is selected again at the end. Times here are wall-clock times of real
machines: not reproducible like the others, and not to be compared with them.
"""
import dataclasses
import json
import re
import string
import subprocess
import tempfile
import uuid

import harness
import matrix

LINE = re.compile(r"([A-Za-z0-9_.:-]+(?:,\d+)?)\s+(/dev/[A-Za-z0-9_/-]+)")
# A ';' would begin a comment in a job file.
WHOLE = ("test -b {device} && test $(lsblk -nro NAME {device} | wc -l) = 1 && "
         "lsblk -nro TYPE {device} | grep -qvx part && "
         "test -z $(lsblk -nro MOUNTPOINT {device})")
SELECT = ("test -e {saved} || sed s/.*[[]// {queue} | sed s/].*// >{saved} && "
          "echo {scheduler} >{queue}")
RESTORE = "cat {saved} >{queue} && rm {saved}"
LABEL = "real drives, wall-clock time"


@dataclasses.dataclass
class Drive:
    """A drive of another machine."""
    host: str
    device: str

    def __str__(self):
        return f"{self.host} {self.device}"

    def __post_init__(self):
        # Of this run: another one's file must not tell of the drive's scheduler.
        self.saved = f"/tmp/ssd-iosched-{uuid.uuid4().hex}"

    def command(self, text, scheduler=""):
        """A shell command for the machine."""
        name = self.device.removeprefix("/dev/").replace("/", "!")
        return "(" + text.format(device=self.device, scheduler=scheduler, saved=self.saved,
                                 queue=f"/sys/class/block/{name}/queue/scheduler") + ")"


def read_hosts(path):
    """The drives that a file names."""
    drives = []
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise harness.Failed(f"{path}: {error.strerror}") from None
    for number, whole in enumerate(lines, 1):
        line = whole.partition("#")[0].strip()
        found = LINE.fullmatch(line)
        if line and not found:
            raise harness.Failed(f"{path}:{number}: not 'ADDRESS[,PORT] /dev/NAME'")
        if line:
            drives.append(Drive(*found.groups()))
    if not drives:
        raise harness.Failed(f"{path} names no drive")
    return drives


def confirm(drives):
    """Have each drive's name typed in again."""
    print("All data on these drives will be lost:", *map(str, drives), sep="\n    ")
    for drive in drives:
        try:
            typed = input(f"Type '{drive}' to go on: ")
        except EOFError:
            typed = ""
        if typed.strip() != str(drive):
            raise harness.Failed(f"{drive} was not confirmed: nothing was written")


def job_text(drive, job, variables, scheduler):
    """A job file with everything in it: a server knows no variables of ours."""
    text = string.Template((harness.JOBS / f"{job}.fio").read_text()).substitute(
        {"SEED": "1", **variables, "DEVICE": drive.device})
    percentiles = ":".join(map(str, harness.PERCENTILES))
    prerun = drive.command(f"{WHOLE} && {SELECT}", scheduler)
    return (f"[global]\nexec_prerun={prerun}\nlat_percentiles=1\nclat_percentiles=0\n"
            f"percentile_list={percentiles}\n") + text


def fio(drive, text):
    """fio's result of a job on a machine; None if the machine refused it."""
    with tempfile.NamedTemporaryFile("w", suffix=".fio") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(["fio", f"--client={drive.host}", "--output-format=json",
                               file.name], capture_output=True, text=True, check=False)
    if done.returncode or "{" not in done.stdout:
        reason = (done.stderr.strip() or done.stdout.strip() or "no answer").splitlines()[-1]
        raise harness.Failed(f"{drive}: {reason}")
    stats = json.loads(done.stdout[done.stdout.index("{"):]).get("client_stats", [])
    if not stats or not sum(stats[0][way]["total_ios"] for way in ("read", "write")):
        return None
    return {"jobs": stats[:1]}


def check(drive):
    """Refuse a drive that is not whole and unused; reads one block of it."""
    text = (f"[check]\nexec_prerun={drive.command(WHOLE)}\nfilename={drive.device}\n"
            "rw=read\nbs=4k\nsize=4k\nio_size=4k\n")
    if fio(drive, text) is None:
        raise harness.Failed(f"{drive}: refused: it has to be a whole drive that is not "
                             "mounted, not partitioned and not in use")


def restore(drive):
    """Select the scheduler that the drive had before."""
    fio(drive, f"[restore]\nexec_prerun={drive.command(RESTORE)}\nfilename={drive.device}\n"
        "rw=read\nbs=4k\nsize=4k\nio_size=4k\n")


def measure_drive(drive, workloads, schedulers, progress):
    """Cells of a drive."""
    cells = []
    for workload, (job, variables) in workloads.items():
        cell = matrix.Cell("fleet", str(drive), workload)
        for scheduler in schedulers:
            got = fio(drive, job_text(drive, job, variables, scheduler))
            if got is None:
                progress.step(f"{drive}, {workload}, {scheduler}: not run, the machine does "
                              "not have this scheduler")
                continue
            run = harness.Run("", job, scheduler, variables=variables, device=str(drive))
            run.result = {"fio": got, "ssdemu": {}, "figures": harness.figures(got, {})}
            cell.runs.append(run)
            progress.step(f"{drive}, {workload}, {scheduler}: "
                          f"{run.result['figures']['mbps']:.1f} MB/s")
        cells.append(cell)
    return cells


def measure(path, quick):
    """Ask, check, measure: the cells of all drives of a HOSTS file."""
    drives = read_hosts(path)
    confirm(drives)
    for drive in drives:
        check(drive)
    seconds = 1 if quick else 30
    times = {"RAMP": "250ms" if quick else "5s", "RUNTIME": f"{seconds}s"}
    workloads = {name: (job, variables | times) for name, (job, variables) in
                 (matrix.WORKLOADS_QUICK if quick else matrix.WORKLOADS).items()}
    schedulers = (*harness.PEERS, *harness.ours())
    progress = harness.Progress(len(drives) * len(workloads) * len(schedulers))
    cells = []
    for drive in drives:
        try:
            cells += measure_drive(drive, workloads, schedulers, progress)
        finally:
            restore(drive)
    return cells
