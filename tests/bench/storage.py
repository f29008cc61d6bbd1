# SPDX-License-Identifier: GPL-2.0
"""Results on disk: the store, result files, and the digests of what decides a result."""
import collections.abc
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import threading

import model

# The guest's program for a plan of fio jobs on devices.
PROGRAM = "runs.py"
# {job of a run: Debian packages that only its guest needs}
PACKAGES = {"store": ("rocksdb-tools",), "install": ("dpkg", "tar")}
# The project's files in each guest of the benchmark. The fio jobs and the presets of its runs
# are added file by file (run_files()): a changed job then leaves the image, and with it the
# results of all other jobs, as they were.
IN_GUEST = ("tests/bench/guest", "tests/lib/ssd.py", "tests/lib/checks.py", "scripts/read-trace",
            "scripts/ssdemu")
# The project's files that decide a result, as git knows them, without presets and jobs.
SOURCES = (*IN_GUEST, "Kbuild", "*-iosched.c", "include", "tests/ioload", "tests/tide",
           "tests/ssdemu/*.[ch]", "tests/ssdemu/Kbuild", "scripts/labvm", "scripts/lab-guest",
           "scripts/sim-kernel*")
# What the guests of emulated devices are.
GUEST = ("I/O: scripts/lab --simulate (User Mode Linux, instructions take no time); instructions: "
         "scripts/lab --virtual-time (1 CPU, 1 instruction = 1 ns)")


class Store:
    """Results of a guest's @program in a folder. Each is in a file named by a digest of the guest's
    image without the project's schedulers, that of the run's scheduler, the run, and the run's
    files, all as they are when the store is made or a file is first used. An interrupted benchmark
    continues with them. The folder also knows how long each kind of run last took, with any
    image."""

    def __init__(self, folder: pathlib.Path, program: str = PROGRAM):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.program = program
        # {options of scripts/lab: digests of the guest}, as they were when first used. Each guest
        # is made from the working tree: what is measured is what was there at the start.
        self.images = {}
        commit()
        self.times = folder / "seconds"
        self.lock = threading.Lock()
        self.seconds = json.loads(self.times.read_text()) if self.times.exists() else {}

    @staticmethod
    def kind(run: model.Run) -> str:
        """Return the name of runs that take as long as this one."""
        variables = [value for name, value in run.variables.items()
                     if name not in ("SEED", "RAMP", "LOG")]
        return " ".join([run.preset, run.job, *variables])

    def estimate(self, runs: list[model.Run], unknown: collections.abc.Callable) -> float:
        """Return the seconds that a guest takes for @runs; @unknown: returns those of a run whose
        kind was never measured."""
        return sum(self.seconds.get(self.kind(run)) or unknown(run) for run in runs)

    def image(self, run: model.Run) -> list[str]:
        """Return the digests of the guest that decide the result of a run."""
        options = options_of(run, self.program)
        if options not in self.images:
            self.images[options] = lab_digests(options)
        return image_of(self.images[options], run)

    def path(self, run: model.Run) -> pathlib.Path:
        """Return the file of a run's result."""
        spec = {key: value for key, value in dataclasses.asdict(run).items()
                if key not in ("result", "label", "device", "seconds")}
        texts = [text_of(path) for path in run_files(run)]
        key = json.dumps([self.image(run), spec, texts], sort_keys=True)
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"

    def check(self, runs: list[model.Run]):
        """Raise Failed if a guest for @runs would be made of other sources than at the start."""
        changed = sorted({os.path.relpath(path, model.PROJECT) for run in runs
                          for path in run_files(run) if path.read_text() != text_of(path)})
        if not changed:
            # All runs of a guest have the same options.
            now = lab_digests.__wrapped__(options_of(runs[0], self.program))
            if any(image_of(now, run) != self.image(run) for run in runs):
                changed = ["the guest's image"]
        if changed:
            raise model.Failed(f"changed since the start: {', '.join(changed)}; start again, what "
                               "was measured so far is kept")

    def recall(self, run: model.Run) -> bool:
        """Set a run's result from the store; return False if the store does not have it."""
        try:
            run.result = json.loads(self.path(run).read_text())
        except FileNotFoundError:
            return False
        return True

    def keep(self, run: model.Run):
        """Put the result of a run into the store."""
        path = self.path(run)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(run.result))
        part.rename(path)
        with self.lock:
            self.seconds[self.kind(run)] = round(run.seconds, 1)
            self.times.write_text(json.dumps(self.seconds, indent=1))


@functools.cache
def text_of(path: pathlib.Path) -> str:
    """Return the text of a file as it was when it was first used."""
    return path.read_text()


def run_files(run: model.Run) -> list[pathlib.Path]:
    """Return the files of the project that only runs like this one use: the fio job, the
    preset and the logs that are replayed."""
    found = []
    # A benchmark of a guest's program has no file.
    for job in (run.job, run.variables.get("LOAD")):
        if (model.JOBS / f"{job}.fio").exists():
            found.append(model.JOBS / f"{job}.fio")
    if run.preset != model.NULL_BLK:
        found.append(model.PRESETS / f"{run.preset}.conf")
    if "LOG" in run.variables:
        found += [model.PROJECT / name for name in run.variables["LOG"].split(":")]
    return found


def guest_options(program: str = PROGRAM, simulate: bool = False) -> tuple[str, ...]:
    """Return the options of scripts/lab for a guest of @program, a simulated one or one in
    virtual time, without the files of its runs. A program names the Debian packages that it needs
    in a comment, such as "# packages: sysbench"."""
    head = re.search(r"^# packages: (.+)$", (model.GUEST / program).read_text(), re.MULTILINE)
    return ("--simulate" if simulate else "--virtual-time", f"--kernel={model.KERNEL}",
            *(f"--only={path}" for path in IN_GUEST),
            *(f"--package={name}" for name in (head[1].split() if head else [])))


def options_of(run: model.Run, program: str = PROGRAM) -> tuple[str, ...]:
    """Return the same for a guest of runs like this one."""
    return (*guest_options(program, run.simulate),
            *(f"--package={name}" for name in PACKAGES.get(run.job, ())))


@functools.cache
def lab_digests(options: tuple[str, ...]) -> dict[str, str]:
    """Return digests of all that decides the figures of a guest of scripts/lab with these
    options: as "guest" of its files, the kernel, and QEMU; and by the name of each of the
    project's schedulers that of its module."""
    done = subprocess.run([model.PROJECT / "scripts/lab", *options, "--digest", "--", "true"],
                          cwd=model.PROJECT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise model.Failed(f"scripts/lab cannot make the guest: status {done.returncode}")
    return json.loads(done.stdout)


def image_of(digests: dict[str, str], run: model.Run) -> list[str]:
    """Return those of a guest's digests that decide the result of a run."""
    return [digests["guest"], digests.get(run.scheduler, "")]


def image_digest(runs: list[model.Run], program: str = PROGRAM) -> str:
    """Return a digest of the guests that make @runs of a @program. The first call takes some
    seconds."""
    found = [lab_digests(options) for options in sorted({options_of(run, program) for run in runs})]
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


@functools.cache
def sources_digest() -> str:
    """Return a digest of SOURCES in the working tree. Guests of two machines may have other
    images, because a Debian package was updated, and yet the same of the project."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *SOURCES], cwd=model.PROJECT,
                            stdout=subprocess.PIPE, check=True).stdout
    found = hashlib.sha256()
    for name in sorted(filter(None, listed.split(b"\0"))):
        found.update(name + b"\0" + (model.PROJECT / os.fsdecode(name)).read_bytes() + b"\0")
    return found.hexdigest()


def first_line(*command: str | pathlib.Path) -> str:
    """Return the first line that a command prints; "" if there is no such command."""
    try:
        done = subprocess.run(command, cwd=model.PROJECT, capture_output=True,
                              text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip().partition("\n")[0]


def release() -> str:
    """Return the release of the guests' kernel."""
    name = first_line(model.PROJECT / "scripts/fetch-kernel", "--cached", model.KERNEL)
    return name or first_line(model.PROJECT / "scripts/fetch-kernel", model.KERNEL)


def circumstances(runs: list[model.Run], program: str = PROGRAM) -> dict:
    """Return what is needed to repeat @runs of a guest's @program with the same figures."""
    emulated = any(run.preset for run in runs)
    presets = sorted({run.preset for run in runs} - {model.NULL_BLK, ""})
    jobs = sorted({run.job for run in runs if (model.JOBS / f"{run.job}.fio").exists()})
    return {
        "what": "emulated device, virtual time",
        "command": [os.path.relpath(sys.argv[0], model.PROJECT), *sys.argv[1:]],
        "commit": commit(),
        "sources": sources_digest() if emulated else "",
        "image": image_digest(runs, program) if emulated else "",
        "kernel": release(),
        "guest": GUEST,
        "qemu": first_line("qemu-system-x86_64", "--version"),
        "fio": first_line("fio", "--version"),
        "host": platform.platform(),
        "seeds": "each run's SEED: the same for every scheduler",
        "presets": {name: text_of(model.PRESETS / f"{name}.conf") for name in presets},
        "jobs": {name: text_of(model.JOBS / f"{name}.fio") for name in jobs},
    }


def save(path: pathlib.Path, runs: list[model.Run], program: str = PROGRAM, **more):
    """Write @runs of a guest's @program with their results to a JSON file, with their
    circumstances and @more, which replaces entries of the same name."""
    path.write_text(json.dumps({
        **circumstances(runs, program), **more,
        "runs": [dataclasses.asdict(run) for run in runs]}, indent=1) + "\n")


def read_back(path: pathlib.Path, runs: list[model.Run]) -> dict:
    """Set the results of @runs from a file that save() wrote for runs in the same order;
    return the content of the file."""
    name = os.path.relpath(path, model.PROJECT)
    try:
        saved = json.loads(path.read_text())
    except FileNotFoundError:
        raise model.Failed(f"no {name} yet: run it without --again") from None
    if len(runs) != len(saved["runs"]):
        raise model.Failed(f"{name} holds other runs: run it without --again")
    for run, was in zip(runs, saved["runs"], strict=True):
        run.result = was["result"]
    return saved


@functools.cache
def commit() -> str:
    """Return the commit at the first call, marked if the working tree differs from it."""
    return first_line("git", "describe", "--always", "--dirty", "--abbrev=12")
