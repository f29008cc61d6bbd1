#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Whatever a job file says, fio writes to what is measured and to its logs alone: random job files,
# of all options that fio has, change no other drive and no file, run no program and connect to
# nothing, neither as ssdctl advise reads them, nor if fio gets them as they are, in its sandbox;
# what a job file may include is no link and nothing elsewhere; jobs after each other, discards and
# flushes are logged and counted
# kernels: 6.1 6.12 debug-6.1 debug-6.12 debug-7.2
# check: 6.12
# timeout: 900
# precedence: no
"""Each job file is read; those that are accepted run, and all run as they are, as far as there is
time: RUN_S, or $DURATION. At the end the same files run without the sandbox, which must show."""

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tools/ssdctl"), str(PROJECT / "tools/common")]

import job_fuzz  # noqa: E402
import numpy  # noqa: E402
from checks import SEED, check, run, wait_for  # noqa: E402
from job_fuzz import CRAFTED, DRIVE, FOLDER, PORT, PROGRAM  # noqa: E402
from ssd_ctl import CtlError  # noqa: E402  (in a folder added above)
from ssd_common.drive import Drive  # noqa: E402
from ssd_ctl.advice import candidates, engine, report, rounds, sandbox, workload  # noqa: E402

DURATION = float(os.environ.get("DURATION") or 0)
JOBS, RUN_S = (10000, DURATION) if DURATION else (300, 1)
# A job file runs for so much longer than fio takes to begin.
STARTS, MORE_S = 2, 0.2
BATCH = 20 if DURATION else 8
# Of the crafted ones each TEETH-th runs.
TEETH = 1 if DURATION else 4
SIZE = 16 << 20
MEASURED, SYSFS = "/dev/loop6", "/sys/block/loop6"
IMAGES = pathlib.Path("/tmp/images")
# Each job file in $2 runs for $1 seconds. What it leaves running ends with it.
RUN = """
cd "$2"
ulimit -v 4000000
for job in *.fio; do
    timeout -s KILL "$1" fio --output-format=terse "$job" </dev/null >/dev/null 2>&1
    kill -KILL -1 2>/dev/null
done
"""
# Where job files name paths, too. /tmp is not among them: a guest sees what the host writes there.
WATCHED = ("/", "/etc", "/home", "/opt", "/srv", "/run", "/dev", "/dev/shm", "/usr/local")


def loopback_up():
    """Have the guest reach itself."""
    set_flags, up = 0x8914, 1
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", up))


class Canaries:
    """What no job may touch."""

    def __init__(self):
        IMAGES.mkdir(exist_ok=True)
        for path in (MEASURED, DRIVE):
            image = IMAGES / pathlib.Path(path).name
            image.write_bytes(b"PRECIOUS" * (SIZE // 8))
            run("losetup", path, image)
        folder = pathlib.Path(FOLDER)
        folder.mkdir()
        # Anybody may write there: nothing but the sandbox keeps fio's user out.
        folder.chmod(0o777)
        program = pathlib.Path(PROGRAM)
        program.write_text(f"#!/bin/sh\n: > {FOLDER}/ran\n")
        program.chmod(0o755)
        for name, text in (("precious", "data"), ("common.fio", f"filename={DRIVE}\n"),
                           ("replay", f"fio version 2 iolog\n{DRIVE} add\n{DRIVE} open\n"
                                      f"{DRIVE} write 0 4096\n{DRIVE} close\n")):
            (folder / name).write_text(text)
            (folder / name).chmod(0o666)
        loopback_up()
        self.port = socket.create_server(("127.0.0.1", PORT))
        self.port.setblocking(False)
        self.began = IMAGES / "began"
        self.began.write_text("")
        time.sleep(0.05)
        self.before = self.state()

    def state(self):
        """Return what is there now."""
        run("blockdev", "--flushbufs", DRIVE)
        found = {path: (path.stat().st_mode, path.stat().st_mtime_ns,
                        hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
                 for path in pathlib.Path(FOLDER).rglob("*")}
        with open(DRIVE, "rb") as file:
            found["drive"] = hashlib.sha256(file.read()).hexdigest()
        found["cgroup"] = os.path.exists("/sys/fs/cgroup/evil")
        return found

    def touched(self):
        """Return what has changed, or been called, and whatever else was written."""
        now = self.state()
        found = [str(key) for key in now | self.before if now.get(key) != self.before.get(key)]
        with contextlib.suppress(BlockingIOError):
            self.port.accept()
            found.append("the port")
        places = [path for path in WATCHED if os.path.isdir(path)]
        written = run("find", *places, "-maxdepth", "1", "-type", "f", "-newer", self.began)
        return found + written.splitlines()

    def check(self, when):
        """Check that nothing was touched."""
        found = self.touched()
        check(not found, f"untouched {when}: {' '.join(found[:20])}")

    def remove(self):
        """Remove them."""
        self.port.close()
        for path in (MEASURED, DRIVE):
            run("losetup", "-d", path)
        shutil.rmtree(FOLDER)
        shutil.rmtree(IMAGES)


@functools.cache
def run_s():
    """Return for how many seconds a job file runs: the machine may be slow."""
    began = time.monotonic()
    run("fio", "--name=a", "--ioengine=null", "--size=4k")
    return STARTS * (time.monotonic() - began) + MORE_S


def play(place, texts, confine=True):
    """Run job files in a sandbox, or as root without one, where each has to show what it does."""
    folder = tempfile.mkdtemp(dir="/dev/shm")
    logs = sandbox.LOGS if confine else f"{folder}/logs"
    command = ["sh", "-c", RUN, "sh", f"{run_s() * (1 if confine else 4):.2f}", logs]
    words = sandbox.words(folder, place, command)
    for number, text in enumerate(texts):
        path = pathlib.Path(folder, "logs", f"{number}.fio")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    started = subprocess.run(words if confine else ["unshare", "-pf", *command],
                             env=sandbox.ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL,
                             start_new_session=True, capture_output=True, text=True, check=False,
                             pass_fds=(place.descriptor,))
    shutil.rmtree(folder)
    if started.stderr:
        check(False, f"the sandbox: {started.stderr}")


def measured_on():
    """Return what is measured on, open."""
    descriptor = os.open(MEASURED, os.O_RDWR | os.O_CLOEXEC)
    return types.SimpleNamespace(path=MEASURED, size=SIZE, kind="drive", descriptor=descriptor,
                                 device_number=os.fstat(descriptor).st_rdev)


def accepted_of(texts):
    """Return what fio gets of those job files that are accepted."""
    found = []
    for number, text in enumerate(texts):
        try:
            load = workload.Workload("x", text, "x.fio")
            load.parts_of(load.jobs[0], SIZE)
            found += [load.job_file(sandbox.DEVICE, SIZE, sandbox.LOGS, number, phase)
                      for phase in range(len(load.phases))]
        except CtlError:
            pass
    return found


def crafted(place):
    """What has done something once is refused or dropped, and does nothing in the sandbox."""
    texts = [f"[a]\nrw=write\nfilename=/dev/measured\nsize=1m\n{line}\n" for line in CRAFTED]
    play(place, texts[SEED % TEETH::TEETH])
    made = "".join(accepted_of(texts))
    check(FOLDER not in made and DRIVE not in made, f"{len(texts)} crafted job files")


def fuzz(place, jobs):
    """Random job files: all are read; at first, and then as far as there is time, they run."""
    end, counted = time.monotonic() + RUN_S, {"jobs": 0, "accepted": 0, "refused": 0, "runs": 0}
    while counted["jobs"] < JOBS or DURATION and time.monotonic() < end:
        texts = [jobs.text() for _ in range(BATCH)]
        accepted = accepted_of(texts)
        counted["jobs"] += BATCH
        counted["accepted"] += len(accepted)
        counted["refused"] += BATCH - len(accepted)
        for some in (accepted, texts):
            if counted["runs"] < BATCH or time.monotonic() < end:
                play(place, some)
                counted["runs"] += len(some)
    print("counted:", *(f"{name}={number}" for name, number in counted.items()))
    check(counted["accepted"] > JOBS / 10 and counted["runs"] >= BATCH, "enough were accepted, "
          "and ran")


def included():
    """Of a folder that anybody may write to, a job file includes what is of its owner."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    path = folder / "job.fio"
    (folder / "link").symlink_to(f"{FOLDER}/common.fio")
    (folder / "own").write_text("bs=8k\n")
    os.chown(folder / "own", 1234, 1234)
    for name, because in (("link", "it is a link"), (f"{FOLDER}/common.fio", "below the folder"),
                          ("own", "of the job file's owner")):
        path.write_text(f"[a]\ninclude {name}\n")
        try:
            workload.load(str(path))
            check(False, f"included: {name}")
        except CtlError as error:
            check(because in str(error), str(error))
    os.chown(path, 1234, 1234)
    check(workload.load(str(path)).sections[0].options == {"bs": "8k"}, "its owner's file")
    shutil.rmtree(folder)


def in_phases():
    """fio runs the jobs of a phase; its discards are in its log, in its sandbox and without
    privileges; the kernel counts them, and the flushes of a drive that has them."""
    image = pathlib.Path("/dev/shm/image")
    image.write_bytes(b"PRECIOUS" * (SIZE // 8))
    path = run("losetup", "--find", "--show", image).strip()
    sysfs = pathlib.Path("/sys/block", pathlib.Path(path).name)
    (sysfs / "queue/write_cache").write_text("write back")
    drive = Drive(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    place = types.SimpleNamespace(path=path, size=SIZE, kind="drive", descriptor=descriptor,
                                  device_number=os.fstat(descriptor).st_rdev, check=lambda: None)
    load = workload.Workload("x", "[global]\nbs=64k\ndirect=1\nrate_iops=200\n[r]\nrw=randread\n"
                             "[t]\nrw=randtrim\n[w]\nstonewall\nrw=randwrite\nfsync=1\n", "x")
    load.check_place(SIZE, "drive", True)
    for phase, ran in ((0, [True, True, False]), (1, [False, False, True])):
        before = engine.completions(drive), engine.flushed(drive)
        with engine.Fio(["fio"], load, drive, place, 1, phase) as fio:
            engine.pause(drive, 10, 50)
            fio.check()
        logs = fio.logs()
        check([len(log) > 0 for log in logs] == ran,
              f"jobs of phase {phase}: {list(map(len, logs))}")
        check({int(row[2]) for log in logs for row in log} ==
              ({workload.READ, workload.TRIM} if not phase else {workload.WRITE}), "directions")
        check(engine.completions(drive) - before[0] >= len(numpy.concatenate(logs)) > 20,
              "the kernel counts them")
        check((engine.flushed(drive)[0] > before[1][0]) == bool(phase), "flushes")
    measured = rounds.Rounds(drive, place, load, candidates.candidates(["none", "mq-deadline"], {}),
                             rounds.Plan(least_s=0.1, most_s=2, limit_s=15, enough=20), ["fio"])
    measured.run()
    check(load.flushes == {1} and {one.window.phase for one in measured.measured} == {0, 1},
          f"{len(measured.measured)} windows of both phases, with flushes in the second one")
    found = report.candidate(measured, "mq-deadline")
    check([sorted(job.keys() - {"name"}) for job in found["jobs"]] ==
          [["read"], ["discard"], ["write"]] and found["flushes"]["mean_ms"] >= 0,
          f"figures of each job in its phase: {found['jobs']} {found['flushes']}")
    os.close(descriptor)
    run("losetup", "-d", path)
    image.unlink()


def watched(place):
    """fio is killed if it has a file open for writing that is not its own."""
    load = workload.Workload("x", "[a]\nrw=read\nbs=4k\ndirect=1\nrate_iops=100\n", "x")
    drive = types.SimpleNamespace(path=MEASURED, sysfs=pathlib.Path(SYSFS))
    words = sandbox.words
    with engine.Fio(["fio"], load, drive, place, 1) as fio:
        fio.check()
        status = pathlib.Path(f"/proc/{fio.processes()[-1]}/status").read_text()
        check("NoNewPrivs:\t1" in status and "CapBnd:\t0000000000000000" in status and
              "Uid:\t0" not in status, "no privileges")
    check(len(fio.logs()[0]) > 0, "its log is read")
    for path in (f"{FOLDER}/opened", DRIVE):
        def opened(folder, place, command, path=path):
            # In a wrapper that is not confined.
            made = words(folder, place, command)
            return ["sh", "-c", f'(exec 9<>{path}; exec sleep 999) & "$@"', "sh", *made]
        sandbox.words = opened
        try:
            with engine.Fio(["fio"], load, drive, place, 1):
                pass
            check(False, f"{path} is open: not noticed")
        except CtlError as error:
            check(path in str(error) and "was killed" in str(error), str(error))
        finally:
            sandbox.words = words
    pathlib.Path(FOLDER, "opened").unlink()


def held_by_fio(place):
    """The kernel's claim on what is held lasts as long as fio, also without the program."""
    def claim():
        return os.open(MEASURED, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    load = workload.Workload("x", "[a]\nrw=read\nbs=4k\ndirect=1\nrate_iops=100\n", "x")
    drive = types.SimpleNamespace(path=MEASURED, sysfs=pathlib.Path(SYSFS))
    held = types.SimpleNamespace(**vars(place) | {"descriptor": claim()})
    with engine.Fio(["fio"], load, drive, held, 1) as fio:
        os.close(held.descriptor)
        try:
            os.close(claim())
            check(False, "it can be claimed while fio runs")
        except OSError as error:
            check(error.errno == errno.EBUSY, f"while fio runs: {error}")
    os.close(claim())
    check(len(fio.logs()[0]) > 0, "its log is read")


def on_a_file():
    """A file without a name is the user's of fio; of a file system without owners, such as FAT, fio
    runs as the owner, without privileges."""
    def no_owners(*_):
        raise PermissionError
    fchown = os.fchown
    for call, owner in ((fchown, None), (no_owners, 1234), (no_owners, 0)):
        folder = tempfile.mkdtemp(dir="/dev/shm")
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(descriptor, b"before")
        fchown(descriptor, owner or 0, owner or 0)
        place = types.SimpleNamespace(descriptor=descriptor, device_number=0)
        os.fchown = call
        words = sandbox.words(folder, place, ["sh", "-c", (
            f"id -u; grep CapEff /proc/self/status; echo after > {sandbox.path_of(place)}")])
        os.fchown = fchown
        done = subprocess.run(words, env=sandbox.ENVIRONMENT, cwd="/", pass_fds=(descriptor,),
                              capture_output=True, text=True, check=False)
        user, capabilities = done.stdout.split("\n", 1)
        check(os.pread(descriptor, 9, 0) == b"after\n" and int(capabilities.split()[1], 16) == 0 and
              (int(user) == owner if call is no_owners else int(user) >= sandbox.FIRST),
              f"user {user} writes to the file: {done.stderr}")
        os.close(descriptor)
        shutil.rmtree(folder)


def with_us(place):
    """fio ends with the program that started it, however that ends."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            folder = tempfile.mkdtemp(dir="/dev/shm")
            subprocess.run(sandbox.words(folder, place, ["sleep", "987"]), cwd="/",
                           env=sandbox.ENVIRONMENT, check=False)
        os._exit(0)
    def sleeps():
        return not subprocess.run(["pgrep", "-fx", "sleep 987|/.*/sleep 987"], check=False,
                                  stdout=subprocess.DEVNULL).returncode
    wait_for(sleeps, "the program in the sandbox")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_for(lambda: not sleeps(), "its end")
    check(not sleeps(), "what runs in the sandbox ends with us")


def unconfined(place, canaries):
    """Without the sandbox the same files touch what they may not: this test would see it."""
    lines = (f"exec_prerun={PROGRAM}", f"write_iolog={FOLDER}/iolog", f"mem=mmapshared:{DRIVE}",
             f"ioengine=net\nhostname=127.0.0.1\nport={PORT}\nprotocol=tcp")
    play(place, [f"[a]\nrw=write\nfilename={MEASURED}\nsize=1m\n{line}\n" if "net" not in line
                 else f"[a]\nrw=write\nsize=1m\n{line}\n" for line in lines], confine=False)
    found = canaries.touched()
    check({f"{FOLDER}/ran", f"{FOLDER}/iolog", "drive", "the port"} <= set(found),
          f"without the sandbox they touch {' '.join(found)}")


def main():
    os.environ["EVIL"] = f"1\nfilename={DRIVE}"
    run("modprobe", "loop")
    canaries, place = Canaries(), measured_on()
    watched(place)
    held_by_fio(place)
    included()
    in_phases()
    canaries.before = canaries.state()
    crafted(place)
    canaries.check("after crafted ones")
    fuzz(place, job_fuzz.Jobs(SEED))
    canaries.check("after random ones")
    on_a_file()
    with_us(place)
    unconfined(place, canaries)
    os.close(place.descriptor)
    canaries.remove()


if __name__ == "__main__":
    main()
