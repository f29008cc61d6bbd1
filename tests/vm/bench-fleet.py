#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# The benchmark on drives of other machines, with this one in place of them: a device that is not
# confirmed, is in use, holds data or is no drive is refused and not written to, and so is a drive
# that was replaced between two jobs; it is held meanwhile, also by the fio that a killed agent
# leaves; both drives are measured and keep their scheduler and its settings, also after a kill;
# what was measured is kept if a drive ends early
# kernels: 6.12
# cpus: 1
# check: none
# timeout: 900
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import fleet  # noqa: E402  (beside the benchmark)
import matrix  # noqa: E402
import model  # noqa: E402
from checks import modprobe  # noqa: E402
from ssd import NullBlk, check  # noqa: E402

# In place of ssh: it runs the command here, in a folder with a module that is not Python's, after a
# banner; but for one machine that does not answer and one that has no Python.
SSH = r"""#!/bin/sh
while [ "$1" != -- ]; do [ "$1" != -p ] || port=$2; shift; done
case ${2#*@} in
silent) echo "ssh: connect to host silent port ${port:-22}: Connection refused" >&2; exit 255 ;;
bare) echo "sh: 1: exec: python3: not found" >&2; exit 127 ;;
esac
printf 'Welcome\n{ to\n{"this": "machine"}\n[1]\n\351\n'
cd "${0%/*}" || exit
shift 2
exec sh -c "$*"
"""
MNT = pathlib.Path("/run/mounted")
# The jobs are processes of their own, and run for some seconds.
FORKED = """[forked]
filename={device}
rw=randwrite
bs=4k
direct=1
numjobs=2
time_based=1
runtime={seconds}
"""


def run(*command):
    """Run a program; fail if it fails."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def written(device):
    """Return the number of writes that a device has completed."""
    return int(pathlib.Path(f"/sys/block/{device.name}/stat").read_text().split()[4])


def scheduler_of(device):
    """Return the selected scheduler."""
    text = pathlib.Path(f"/sys/block/{device.name}/queue/scheduler").read_text()
    return text.partition("[")[2].partition("]")[0]


def text_of(file):
    """Return the text of a setting, None if it cannot be read: wbt may be off."""
    try:
        return file.read_text()
    except OSError:
        return None


def settings_of(device):
    """Return what a change of the scheduler changes."""
    queue = pathlib.Path(f"/sys/block/{device.name}/queue")
    files = [queue / "nr_requests", queue / "wbt_lat_usec", *sorted(queue.glob("iosched/*"))]
    return {"scheduler": scheduler_of(device), **{file.name: text_of(file) for file in files}}


def tune(device):
    """Select mq-deadline with unusual settings; return all."""
    device.scheduler("mq-deadline")
    queue = pathlib.Path(f"/sys/block/{device.name}/queue")
    (queue / "iosched/fifo_batch").write_text("7")
    (queue / "nr_requests").write_text("50")
    return settings_of(device)


def is_free(device):
    """Return true if a device can be opened exclusively."""
    try:
        os.close(os.open(device.path, os.O_RDWR | os.O_EXCL))
    except OSError:
        return False
    return True


def wait_for(what, happened):
    """Wait for some seconds until something has happened."""
    end = time.monotonic() + 30
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
    check(happened(), what)


def begin(device, seconds):
    """Return an agent that runs FORKED on a device."""
    machine = fleet.Machine(fleet.Drive("here", None, device.path))
    before = written(device)
    text = FORKED.format(device=machine.found["device"], seconds=seconds)
    machine.process.stdin.write(json.dumps({"job": text, "scheduler": "none"}) + "\n")
    machine.process.stdin.flush()
    wait_for("a job writes", lambda: written(device) > before)
    return machine


class Hosts:
    """A HOSTS file in a folder."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "hosts"

    def measure(self, lines, typed):
        """Measure a file of these @lines with the lines @typed on stdin; return the cells."""
        self.path.write_text("".join(f"{line}\n" for line in lines))
        bytes_of = "".join(f"{line}\n" for line in typed).encode(errors="surrogateescape")
        sys.stdin = io.TextIOWrapper(io.BytesIO(bytes_of), "utf-8")
        return fleet.measure(self.path, True)

    def refused(self, reason, device, line, typed=None):
        """Check that a line is refused for @reason and @device is not written to."""
        before = written(device)
        try:
            self.measure([line], [device.name if typed is None else typed])
        except model.Failed as error:
            check(reason in str(error), f"refused: {error}")
        else:
            check(False, f"{line} is refused: {reason}")
        check(written(device) == before, "nothing was written")


def machines(hosts, device):
    """Check what is refused because of the line or of the machine."""
    path = device.path
    line = f"here {path}"
    for typed in ("", path, f"{device.name}0", line, "\udcff"):
        hosts.refused("was not confirmed", device, line, typed)
    hosts.refused("hosts:1: not", device, f"{line}; reboot")
    hosts.refused("hosts:1: not", device, f"-oProxyCommand=reboot {path}")
    hosts.refused(f"silent,8803 {path}: ssh: connect to host silent port 8803", device,
                  f"silent,8803 {path}")
    hosts.refused("Python 3.10 or newer is needed", device, f"user@bare {path}")
    hosts.refused("is not a block device", device, "here /dev/null")
    hosts.refused("No such file", device, "here /dev/not-there")


def in_use(hosts, device):
    """Check that a device that is in use or holds data is refused."""
    path = device.path
    line = f"here {path}"
    run("addpart", path, "1", "2048", "8192")
    hosts.refused("it is partitioned", device, line)
    names = subprocess.run(["lsblk", "-nrpo", "NAME,TYPE", path], capture_output=True,
                           text=True, check=True).stdout.split()
    hosts.refused("is a partition", device, f"here {names[names.index('part') - 1]}")
    run("delpart", path, "1")
    run("mkfs.ext4", "-q", "-F", path)
    hosts.refused("it holds data: ext4", device, line)
    MNT.mkdir(exist_ok=True)
    # Read-only, so that the file system does not write either.
    run("mount", "-o", "ro", path, MNT)
    hosts.refused(f"it is mounted on {MNT}", device, line)
    run("umount", MNT)
    run("wipefs", "--quiet", "--all", path)
    with open(path, "rb"):
        hosts.refused("(bench-fleet.py) has it open", device, line)


def pooled(hosts):
    """Check that the device of a mounted btrfs that is not named as what is mounted is refused."""
    modprobe("btrfs")
    disk = {"size": 128, "memory_backed": 1}
    with NullBlk(folder="one", **disk) as one, NullBlk(folder="two", **disk) as two:
        run("mkfs.btrfs", "-q", "-m", "raid1", "-d", "raid1", one.path, two.path)
        run("btrfs", "device", "scan")
        run("mount", "-o", "ro", one.path, MNT)
        for device in (one, two):
            hosts.refused("it belongs to the btrfs", device, f"here {device.path}")
        run("umount", MNT)


def replaced(hosts):
    """Check that a drive that is replaced after a job is refused and not written to; nobody else
    can have it during a job."""
    def changing():
        return NullBlk(folder="changing", size=64, memory_backed=1)

    def fio(machine, text, scheduler):
        jobs.append(scheduler)
        if len(jobs) == 1:
            done = subprocess.run(["mkfs.ext4", "-q", "-F", devices[0].path], check=False,
                                  capture_output=True)
            check(done.returncode, f"it is held: {done.stderr}")
        if len(jobs) == 2:
            devices[0].remove()
            devices.append(changing())
            check(devices[1].path == devices[0].path, "another drive has its name")
        return known(machine, text, scheduler)

    known, jobs, devices = fleet.Machine.fio, [], [changing()]
    fleet.Machine.fio = fio
    try:
        hosts.measure([f"here {devices[0].path}"], [devices[0].name])
    except model.Failed as error:
        check("it is another drive now" in str(error) and len(jobs) == 2, f"refused: {error}")
    else:
        check(False, "a drive that was replaced is refused")
    finally:
        fleet.Machine.fio = known
    check(not written(devices[1]), "it is not written to")
    devices[1].remove()


def shorten(*names):
    """Have as many workloads measured, with one seed and two peers."""
    job, variables = matrix.mixed("randrw", "4k", 8)
    matrix.WORKLOADS_QUICK = {name: matrix.Workload(job, variables) for name in names}
    model.PEERS = ("none", "mq-deadline")
    matrix.SEEDS_QUICK = 1


def both(hosts, devices):
    """Check that two drives are measured, the second of which has a scheduler before."""
    shorten("mixed")
    before = tune(devices[1])
    lines = [f"root@here {devices[0].path}", f"here,2222 {devices[1].path}"]
    cells, ended = hosts.measure(["# two drives", lines[0], f"{lines[1]}  # here"],
                                 [device.name for device in devices])
    check(not ended, "no drive has ended early")
    check([cell.device for cell in cells] == lines, "both drives were measured")
    labels = [*model.PEERS, *model.ours()]
    for cell in cells:
        check(list(cell.results()) == labels, f"under {', '.join(labels)}")
        check(all(min(row["mbps"]) > 0 and min(row["write_p99"]) > 0
                  for row in cell.results().values()), "with figures")
    check(scheduler_of(devices[0]) == "none" and settings_of(devices[1]) == before,
          "both have the scheduler and the settings that they had before")


def disturb(device):
    """Change the scheduler as soon as a job writes."""
    before = written(device)
    wait_for("a job writes", lambda: written(device) > before)
    device.scheduler("mq-deadline")


def disturbed(hosts, devices):
    """Check that a drive whose scheduler is changed during a job ends, that its cell before and the
    other drive's are kept."""
    def fio(machine, text, scheduler):
        jobs.append(scheduler)
        # The first of the second cell.
        if len(jobs) == len(schedulers) + 1:
            threading.Thread(target=disturb, args=(devices[0],)).start()
        return known(machine, text, scheduler)

    shorten("one", "two")
    schedulers = (*model.PEERS, *model.ours())
    known, jobs = fleet.Machine.fio, []
    fleet.Machine.fio = fio
    try:
        cells, ended = hosts.measure([f"here {device.path}" for device in devices],
                                     [device.name for device in devices])
    finally:
        fleet.Machine.fio = known
    check([(cell.device, cell.workload) for cell in cells] ==
          [(f"here {devices[0].path}", "one"), *((f"here {devices[1].path}", name)
                                                 for name in ("one", "two"))],
          "what was measured is kept")
    check(len(ended) == 1 and ended[0].startswith(f"here {devices[0].path}: refused: another "
                                                  "program has selected mq-deadline"),
          f"it says why: {ended}")
    check(scheduler_of(devices[0]) == "none", "the drive has its scheduler again")


def gone(device):
    """Check that the agent has the drive's lock, and that no process of fio is left when the
    connection ends during a job."""
    before = tune(device)
    machine = begin(device, 600)
    lock = ["flock", "--nonblock", device.path, "true"]
    check(subprocess.run(lock, check=False).returncode, "the drive is locked meanwhile")
    machine.close()
    run(*lock)
    check(is_free(device), "all of fio has ended with the agent")
    check(settings_of(device) == before, "the settings are restored")


def killed(device):
    """Check that a drive is held until fio ends if the agent is killed, and that the next agent
    restores its settings."""
    before = tune(device)
    machine = begin(device, 5)
    check(scheduler_of(device) == "none", "the job's scheduler is selected")
    # What is in place of ssh has become the agent.
    machine.process.kill()
    machine.close()
    check(not is_free(device), "fio holds the drive")
    wait_for("it is free when fio ends", lambda: is_free(device))
    check(scheduler_of(device) == "none", "nobody has restored the scheduler")
    with fleet.Machine(fleet.Drive("here", None, device.path)) as machine:
        machine.ask(json.dumps({"job": "", "scheduler": "no-such-scheduler"}))
    check(settings_of(device) == before, "the next agent restores the settings")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "ssh")
        program.write_text(SSH)
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        pathlib.Path(folder, "json.py").write_text("raise SystemExit('another json')\n")
        hosts = Hosts(folder)
        disk = {"size": 64, "memory_backed": 1}
        with NullBlk(**disk) as first, NullBlk(folder="second", **disk) as second:
            machines(hosts, first)
            in_use(hosts, first)
            both(hosts, (first, second))
            disturbed(hosts, (first, second))
            gone(first)
            killed(first)
        pooled(hosts)
        replaced(hosts)


if __name__ == "__main__":
    main()
