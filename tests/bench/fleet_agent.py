# SPDX-License-Identifier: GPL-2.0
"""Runs on another machine, as root, as long as a drive of it is measured: holds the drive, checks
it before each job, selects the scheduler and runs fio. fleet.py sends this file there, with the
modules of ssd_probe that check and hold for ssd-probe and ssdctl, too; nothing is written there.

Reads and prints a line of JSON at a time. At first it prints what the drive is; then it answers
{"job": text, "scheduler": name} with {"fio": fio's output}, {"missing": true} without the
scheduler, or {"refused": why}, and ends after that. The drive gets its former scheduler back at the
end, which is the end of the input at the latest.
"""
import contextlib
import json
import os
import select
import subprocess
import sys

from ssd_probe import ProbeError, asking
from ssd_probe.drive import Drive, chosen, read
from ssd_probe.holding import Held
from ssd_probe.signals import Interrupted, interruptible, uninterrupted

# Seconds between two looks whether the caller has gone.
LOOK_S = 1


def reply(**found):
    """Print a line for the caller."""
    print(json.dumps(found), flush=True)


def caller_has_gone() -> bool:
    """Return true at the end of the input: while a job runs there is nothing else to read."""
    return bool(select.select([0], [], [], 0)[0])


def run_fio(text: str) -> str:
    """Run a job file; return fio's output. End it if the caller has gone."""
    try:
        # pylint: disable=consider-using-with
        fio = subprocess.Popen(["fio", "--output-format=json", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise ProbeError("fio is missing: install fio") from None
    with fio:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, errors = fio.communicate(text, timeout=LOOK_S)
                    break
                text = None
                if caller_has_gone():
                    sys.exit("the caller has gone")
        finally:
            fio.kill()
    if fio.returncode or "{" not in out:
        raise ProbeError(f"fio: {(errors.strip() or out.strip() or 'no output').splitlines()[-1]}")
    return out[out.index("{"):]


def select_scheduler(drive: Drive, name: str) -> bool:
    """Select a scheduler; return false if the machine does not have it."""
    try:
        (drive.queue / "scheduler").write_text(name)
    except OSError:
        return False
    return chosen(read(drive.queue / "scheduler")) == name


def serve(held: Held):
    """Answer until the input ends."""
    for line in sys.stdin:
        wanted = json.loads(line)
        held.refuse()
        if select_scheduler(held.device, wanted["scheduler"]):
            reply(fio=run_fio(wanted["job"]))
        else:
            reply(missing=True)


def hold(drive: Drive):
    """Hold a drive, say what it is, and serve."""
    with Held(drive) as held:
        facts = asking.facts(drive)
        facts[0] += f", diskseq {read(drive.sysfs / 'diskseq') or 'unknown'}"
        reply(facts=facts, answer=asking.answer(drive),
              device=f"/proc/{os.getpid()}/fd/{held.descriptor}")
        former = chosen(read(drive.queue / "scheduler"))
        try:
            serve(held)
        finally:
            with uninterrupted():
                if drive.exists() and former:
                    select_scheduler(drive, former)


def main():
    """Serve the drive that is named."""
    try:
        with interruptible():
            if os.geteuid():
                raise ProbeError("it has to be root there, or a user who may run sudo without a "
                                 "password")
            hold(Drive(sys.argv[1]))
    except ProbeError as error:
        reply(refused=str(error))
    except (Interrupted, BrokenPipeError):
        sys.exit(1)
