# SPDX-License-Identifier: GPL-2.0
"""How a test decides: checks, waiting, and what the guest and the environment give it."""

import errno
import functools
import os
import pathlib
import subprocess
import time

RELEASE = tuple(map(int, os.uname().release.split(".")[:2]))
# A debug kernel executes at least ten times as many instructions for the same work.
DEBUG_KERNEL = any(pathlib.Path("/sys/kernel/debug", name).exists()
                   for name in ("kmemleak", "kcsan"))
QUICK = bool(os.environ.get("TEST_QUICK"))
# Of another architecture than the host's, an emulated CPU takes several times as long.
SLOW = os.uname().machine == "aarch64"
SEED = int(os.environ.get("SEED") or 1)


class Failed(Exception):
    """A check of the test failed."""


def check(condition, text):
    """Print what was checked; end the test unless @condition holds."""
    print(("ok    " if condition else "FAIL  ") + text, flush=True)
    if not condition:
        raise Failed(text)


def fail(text):
    """End the test."""
    check(False, text)


def amount(full):
    """How often a test repeats something: @full times; a fifth of that with tests/run --quick,
    where each takes long, and on a debug kernel, which reports a defect when its code is executed
    once."""
    return -(-full // 5) if DEBUG_KERNEL or QUICK or SLOW else full


def near(measured, expected, percent, text):
    """Check that a figure is within @percent of the expected one."""
    off = 100 * (measured - expected) / expected
    check(abs(off) <= percent,
          f"{text}: {measured:,.0f}, expected {expected:,.0f} ({off:+.2f} %, allowed {percent} %)")


def wait_for(condition, what, seconds=600 if DEBUG_KERNEL else 120, step=0.05):
    """Wait until @condition() holds; fail after @seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            fail(f"{what}: not within {seconds} s")
        time.sleep(step)


def is_added(name):
    """Return True if the kernel has added a drive: its queue appears after its name."""
    return pathlib.Path("/sys/block", name, "queue/scheduler").exists()


def select_scheduler(file, name):
    """Select a scheduler in @file, queue/scheduler of a device. 7.2 answers EBUSY while it adds
    the device, and while the driver may change the number of hardware queues: repeat it then."""
    def selected():
        try:
            file.write_text(name)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True
    wait_for(selected, f"{name} in {file}")


def run(*command):
    """Run a program that has to succeed; return its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{' '.join(map(str, command))}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def modprobe(*arguments):
    """Load modules, or unload them with -r."""
    subprocess.run(["modprobe", *arguments], check=True)


@functools.cache
def has_module(name):
    """Return True if the kernel has a module of this name."""
    return not subprocess.run(["modprobe", "-qn", name], check=False).returncode
