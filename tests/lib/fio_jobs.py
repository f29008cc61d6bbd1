# SPDX-License-Identifier: GPL-2.0
"""Loads by fio. One fio serves all devices of a test: starting a program is slow in an
emulated guest."""

import contextlib
import json
import pathlib
import signal
import subprocess

from checks import DEBUG_KERNEL, SEED, check, fail, wait_for

# Beyond the time limit of any test.
ENDLESS = {"time_based": 1, "runtime": 36000}


def at_once(disks):
    """The groups of @disks that one CPU can keep busy at once in virtual time: all of them, or
    on a debug kernel each by itself."""
    return [[disk] for disk in disks] if DEBUG_KERNEL else [disks]


def job_file(jobs, options, name="jobs"):
    """Write a job file of fio: {section: its options}, and options that all sections share;
    None leaves an option out."""
    common = {"direct": 1, "ioengine": "libaio", "iodepth": 16, "bs": "4k", "thread": 1,
              "randseed": SEED, "verify_fatal": 1, "verify_state_save": 0, **options}
    lines = ["[global]", *(f"{key}={value}" for key, value in common.items()
                          if value is not None)]
    for section, own in jobs.items():
        lines += [f"[{section}]", *(f"{key}={value}" for key, value in own.items())]
    path = pathlib.Path(f"/tmp/{name}.fio")
    path.write_text("\n".join(lines) + "\n")
    return path


def fio(jobs, good=True, **options):
    """Run fio to its end; return {section: its jobs}. Fail if fio fails, unless @good is
    false."""
    path = job_file(jobs, options)
    done = subprocess.run(["fio", "--output-format=json", path], capture_output=True, text=True,
                          check=False)
    if good and done.returncode:
        fail(f"fio: {done.stderr[-1000:]} {done.stdout[:1000]}")
    results = {section: [] for section in jobs}
    for job in json.loads(done.stdout[done.stdout.index("{"):])["jobs"]:
        results[job["jobname"]].append(job)
    return results


def verify(disks, **options):
    """Write each disk at random, read it back and check each block."""
    settings = {"rw": "randwrite", "bs": "4k-64k", "verify": "crc32c", "size": "4m",
                "end_fsync": 1, **options}
    fio({disk.name: {"filename": disk.path} for disk in disks}, **settings)


@contextlib.contextmanager
def load(disks, jobs, **options):
    """Load the disks while the body runs; fail if fio ends or fails by itself."""
    path = job_file(jobs, {**ENDLESS, **options}, "load")
    before = {disk: disk.ended() for disk in disks}
    with open("/tmp/load.log", "w", encoding="utf-8") as log, \
         subprocess.Popen(["fio", path], stdout=log, stderr=log) as running:
        try:
            # The body must run under load, and fio ignores a signal that arrives before it
            # has started its jobs.
            for disk in disks:
                wait_for(lambda disk=disk: disk.ended() > before[disk] + 50 or
                         running.poll() is not None, f"load on {disk.label}")
            yield running
            ended = running.poll() is not None
            # A job that starts late misses the first signal, so it is repeated. Not soon: fio's
            # handler is not safe while fio prints or frees.
            while running.poll() is None:
                running.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(20)
        finally:
            running.kill()
    said = pathlib.Path("/tmp/load.log").read_text(errors="replace")
    if ended or running.returncode not in (0, 128):
        fail(f"the load ended by itself with {running.returncode}: {said[-2000:]}")


def random_load(disks, **options):
    """load() with random reads and writes, as many to each disk. They come in bursts: in the
    pauses no other request wakes one that was forgotten, and the CPUs are free."""
    jobs = {disk.name: {"filename": disk.path} for disk in disks}
    bursts = {"thinktime": "100ms", "thinktime_blocks": 24}
    return load(disks, jobs, **{"rw": "randrw", "size": "100%", **bursts, **options})


def removed_under_load(disks, take_out, **options):
    """Remove devices under load by take_out(disk); check that all I/O ends and all are gone."""
    jobs = job_file({disk.name: {"filename": disk.path} for disk in disks},
                    {"rw": "randrw", "numjobs": 2, **ENDLESS, **options})
    with subprocess.Popen(["fio", "--minimal", jobs], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as running:
        try:
            for disk in disks:
                wait_for(lambda disk=disk: disk.counters()["completed"] > 20,
                         f"load on {disk.label}")
            for disk in disks:
                take_out(disk)
            # fio ends when every job has got an I/O error.
            wait_for(lambda: running.poll() is not None, "the end of I/O to removed devices")
        finally:
            running.kill()
    check(running.returncode not in (0, 128), f"fio ended by errors: {running.returncode}")
    for disk in disks:
        check(not disk.queue.exists(), f"{disk.label} is gone")
