# SPDX-License-Identifier: GPL-2.0
"""The schedulers that the kernel has, and the one that a drive has, with its settings."""
import errno
import os
import pathlib
import subprocess
import time

from ssd_ctl import CtlError
from ssd_ctl.choice import QUEUE, Choice
from ssd_probe.drive import SETTLE_S, Drive, chosen, read

OURS = ("pass", "piq", "bp", "pai")
KERNELS = ("mq-deadline", "kyber", "bfq")
NONE = "none"
MODULES = pathlib.Path("/sys/module")
LOADED, MODULE, MISSING = "loaded", "module", "missing"
# The queue is frozen, or the device is being added.
BUSY_S = 5
# Of schedulers of the kernel, by Documentation/block and the sources.
KERNELS_DEFAULTS = {
    "mq-deadline": {"read_expire": "500", "write_expire": "5000", "writes_starved": "2",
                    "front_merges": "1", "fifo_batch": "16", "prio_aging_expire": "10000"},
    "kyber": {"read_lat_nsec": "2000000", "write_lat_nsec": "10000000"},
    "bfq": {"fifo_expire_sync": "125", "fifo_expire_async": "250", "back_seek_max": "16384",
            "back_seek_penalty": "2", "max_budget": "0", "timeout_sync": "125",
            "strict_guarantees": "0", "low_latency": "1"},
}


def present(drive: Drive) -> str:
    """Return the name of a drive's scheduler."""
    return chosen(read(drive.queue / "scheduler"))


def offered(drive: Drive) -> list[str]:
    """Return the schedulers that the kernel offers for a drive without loading a module."""
    return read(drive.queue / "scheduler").replace("[", "").replace("]", "").split()


def has_module(name: str) -> bool:
    """Return true if modprobe knows the module of a scheduler of this kernel."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    try:
        done = subprocess.run(["modprobe", "--dry-run", "--quiet", f"{name}-iosched"],
                              env={**os.environ, "PATH": path}, check=False, capture_output=True)
    except FileNotFoundError:
        return False
    return not done.returncode


def support(drive: Drive) -> dict[str, str]:
    """Return {scheduler: LOADED, MODULE or MISSING} of ours and of the kernel's for a drive."""
    there = offered(drive)
    return {name: LOADED if name in there else MODULE if has_module(name) else MISSING
            for name in (*OURS, *KERNELS)}


def available(drive: Drive) -> list[str]:
    """Return the schedulers that can be selected for a drive: none, the kernel's, then ours."""
    found = support(drive)
    return [NONE, *(name for name in (*KERNELS, *OURS) if found[name] != MISSING)]


def tunables(drive: Drive) -> dict[str, str]:
    """Return the tunables of a drive's scheduler, {name: value}."""
    files = sorted((drive.queue / "iosched").glob("*"))
    return {file.name: chosen(read(file)) for file in files if read(file)}


def defaults(name: str) -> dict[str, str]:
    """Return the defaults of a scheduler's tunables, of those that are known: ours are the
    parameters of the module."""
    if name in OURS:
        files = (MODULES / f"{name}_iosched/parameters").glob("*")
        return {file.name: chosen(read(file)) for file in files}
    return KERNELS_DEFAULTS.get(name, {})


def read_choice(drive: Drive) -> Choice:
    """Return what a drive has now, with all tunables."""
    queue = {name: read(drive.queue / name) for name in QUEUE}
    return Choice(present(drive), dict(tunables(drive)),
                  {name: value for name, value in queue.items() if value})


def write(drive: Drive, file: str, value: str):
    """Write a file below queue/; repeat it for some time while the queue is busy."""
    end = time.monotonic() + BUSY_S
    while True:
        try:
            (drive.queue / file).write_text(f"{value}\n")
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
        time.sleep(0.05)


def select(drive: Drive, name: str):
    """Select a scheduler; the kernel loads its module."""
    try:
        write(drive, "scheduler", name)
    except OSError as error:
        raise CtlError(refusal(drive, name, error)) from None
    if present(drive) != name:
        raise CtlError(f"{drive.path} still has {present(drive)} after {name} was selected")


def refusal(drive: Drive, name: str, error: OSError) -> str:
    """Return why a scheduler cannot be selected."""
    if not drive.exists():
        return f"{drive.path} has disappeared"
    if error.errno in (errno.EINVAL, errno.ENOENT) and name not in available(drive):
        return f"the running kernel, {os.uname().release}, has no scheduler {name}"
    return f"{drive.path} does not take {name}: {error.strerror}"


def set_one(drive: Drive, file: str, value: str):
    """Write one setting of a choice."""
    try:
        write(drive, file, value)
    except FileNotFoundError:
        raise CtlError(f"{present(drive)} has no {file.removeprefix('iosched/')}: it has "
                       f"{' '.join(tunables(drive)) or 'no tunables'}") from None
    except OSError as error:
        raise CtlError(f"{file.removeprefix('iosched/')} does not take {value}: "
                       f"{error.strerror}") from None


def change(drive: Drive, choice: Choice):
    """Select a choice; a failure leaves a part of it."""
    if present(drive) != choice.scheduler:
        select(drive, choice.scheduler)
    for file, value in choice.settings().items():
        set_one(drive, file, value)


def apply(drive: Drive, choice: Choice):
    """Select a choice; a failure leaves what was there before."""
    before = read_choice(drive)
    try:
        change(drive, choice)
    except BaseException:
        restore(drive, before)
        raise


def restore(drive: Drive, before: Choice) -> list[str]:
    """Select what read_choice() has returned; return the settings that the kernel did not take
    back."""
    if present(drive) != before.scheduler:
        select(drive, before.scheduler)
        # Some schedulers change settings of the queue a moment later.
        time.sleep(SETTLE_S)
    wrong = []
    for file, value in before.settings().items():
        if chosen(read(drive.queue / file)) != value:
            try:
                write(drive, file, value)
            except OSError:
                wrong.append(file)
    return wrong
