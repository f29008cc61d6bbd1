# SPDX-License-Identifier: GPL-2.0
"""Runs on another machine, as root, as long as a drive of it is measured: holds the drive, checks
it before each job, selects the scheduler and runs fio. fleet.py sends this file there, with the
modules of ssd_common that check, hold and restore for ssd-probe and ssdctl, too.

Reads and prints a line of JSON at a time. At first it prints what the drive is; then it answers
{"job": text, "scheduler": name} with {"fio": fio's output}, {"missing": true} without the
scheduler, or {"refused": why}, and ends after that; the end of the input ends it, too.

From the first job on it holds the drive's lock, so that udev does not apply its rules after each
fio, and the drive's former settings are in a file of former.py, the only one that is written
there: they are restored at the end, or after a SIGKILL by the next agent, ssd-probe or ssdctl. What
cannot be restored is told by {"left": text}.
"""
import contextlib
import errno
import itertools
import json
import os
import select
import shutil
import subprocess
import sys

from ssd_common import ToolError, asking, former
from ssd_common.drive import Drive, chosen, read
from ssd_common.holding import Held
from ssd_common.signals import Interrupted, interruptible, uninterrupted

# Seconds between two looks whether the caller has gone.
LOOK_S = 1
# All of fio is killed with unshare: a process that fio forks for a job has a session of its own,
# but ends with the first one of the namespace.
FIO = ("unshare", "--pid", "--fork", "--kill-child", "fio", "--output-format=json", "-")


def reply(**found):
    """Print a line for the caller."""
    print(json.dumps(found), flush=True)


def caller_has_gone() -> bool:
    """Return true at the end of the input: while a job runs there is nothing else to read."""
    return bool(select.select([0], [], [], 0)[0])


def output_of(fio: subprocess.Popen, text: str) -> tuple[str, str]:
    """Return what fio prints, and its errors, for a job file. End the agent if the caller has
    gone."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return fio.communicate(text, timeout=LOOK_S)
        text = None
        if caller_has_gone():
            sys.exit("the caller has gone")


def run_fio(held: Held, text: str) -> str:
    """Run a job file; return fio's output. None of fio's processes is left, unless the agent is
    killed: then the drive is held until the last one ends, which has the descriptor, too."""
    for program, package in ((FIO[0], "util-linux"), ("fio", "fio")):
        if not shutil.which(program):
            raise ToolError(f"{program} is missing: install {package}")
    with subprocess.Popen(FIO, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                          pass_fds=(held.descriptor,), start_new_session=True) as fio:
        try:
            out, errors = output_of(fio, text)
        except BaseException:
            with uninterrupted():
                fio.kill()
                # Until the last process has closed it.
                fio.communicate()
            raise
    if fio.returncode or "{" not in out:
        raise ToolError(f"fio: {(errors.strip() or out.strip() or 'no output').splitlines()[-1]}")
    return out[out.index("{"):]


def select_scheduler(drive: Drive, name: str) -> bool:
    """Select a scheduler; return false if the machine does not have it."""
    try:
        former.write(drive, former.SCHEDULER, name)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise ToolError(f"{drive.path} does not take {name}: {error.strerror}") from None
    return selected(drive) == name


def selected(drive: Drive) -> str:
    """Return the scheduler that a drive has."""
    return chosen(read(drive.queue / former.SCHEDULER))


def run(held: Held, text: str, scheduler: str) -> dict:
    """Run a job file under a scheduler; return the answer."""
    held.refuse()
    if not select_scheduler(held.device, scheduler):
        return {"missing": True}
    found = run_fio(held, text)
    now = selected(held.device)
    if now != scheduler:
        raise ToolError(f"another program has selected {now} during a job under {scheduler}")
    return {"fio": found}


def told(text: str):
    """Send the caller a message; the connection may have ended."""
    with contextlib.suppress(BrokenPipeError):
        reply(left=text)


def serve(held: Held):
    """Answer until the input ends. Change nothing before the first job: until then the user has
    not answered."""
    first = sys.stdin.readline()
    if not first:
        return
    with held.device.locked(), former.changed(held.device, {}, told):
        for line in itertools.chain([first], sys.stdin):
            wanted = json.loads(line)
            reply(**run(held, wanted["job"], wanted["scheduler"]))


def hold(drive: Drive):
    """Hold a drive, say what it is, and serve."""
    with Held(drive) as held:
        facts = asking.facts(drive)
        facts[0] += f", diskseq {read(drive.sysfs / 'diskseq') or 'unknown'}"
        reply(facts=facts, answer=asking.answer(drive),
              device=f"/proc/self/fd/{held.descriptor}")
        serve(held)


def main():
    """Serve the drive that is named."""
    try:
        with interruptible():
            if os.geteuid():
                raise ToolError("it has to be root there, or a user who may run sudo without a "
                                "password")
            hold(Drive(sys.argv[1]))
    except ToolError as error:
        reply(refused=str(error))
    except (Interrupted, BrokenPipeError):
        sys.exit(1)
