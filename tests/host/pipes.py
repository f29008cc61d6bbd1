#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# Every program of the project ends quietly if the reader of its output ends, as head does, also
# while it prints its options; an output that is full is told in one line
# quick: host

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "scripts")]

from checks import check  # noqa: E402  (in a folder added above)

SSDCTL, PROBE, TRACES = (PROJECT / "tools" / path for path in (
    "ssdctl/ssdctl", "ssd-probe/ssd-probe", "trace-to-fio/trace-to-fio"))
# Programs that only a guest calls, whose output the lab reads.
OF_GUEST = ("tests/bench/guest/", "tests/guest-runner", "tests/crash-guest", "tests/host/",
            "tests/vm/", "tests/lib/", "tests/bench/ssdemu-figures.py")
# Their bytes are a part of what names the results of make bench that are kept.
KEPT = ("scripts/read-trace", "scripts/ssdemu")
QUIET = (1, 128 + signal.SIGPIPE, -signal.SIGPIPE)


def ended(*command, buffered=True, **how):
    """Call a program whose output nothing reads; return (status, errors)."""
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    try:
        done = subprocess.run([sys.executable, "-B", *map(str, command)], stdout=writer,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=environment, check=False, **how)
    finally:
        os.close(writer)
    return done.returncode, done.stderr


def quiet(*command, ways=(True, False), **how):
    """Check that a program says nothing to a reader that has ended. @ways: with and without a
    buffer."""
    for buffered in ways:
        status, errors = ended(*command, buffered=buffered, **how)
        check(not errors and status in QUIET,
              f"{' '.join(map(str, command[:3]))}: {status} {errors.strip()[-300:]}")


def programs():
    """The programs in Python that a developer or a user calls."""
    named = subprocess.run(["git", "grep", "-lI", "^#!.*python3"], cwd=PROJECT, check=True,
                           capture_output=True, text=True).stdout.split()
    return [path for path in named if not path.startswith((*OF_GUEST, *KEPT))
            and (PROJECT / path).read_text().startswith("#!")]


def all_of_them():
    """Each program goes through what ends quietly."""
    for path in programs():
        text = (PROJECT / path).read_text()
        check("finish(main)" in text or path.startswith("tools/"), f"{path} ends by finish()")


def one_each():
    """One program of each family that prints."""
    for words in ((SSDCTL, "--help"), (SSDCTL, "--interval", "0"), (PROBE, "--help"),
                  (TRACES, "--help"), ("tests/run", "--list")):
        quiet(*words, cwd=PROJECT)
    more = [(SSDCTL, "--version"), (SSDCTL, "report", "--help"), (SSDCTL, "report", "-o", "-"),
            (PROBE, "--version"), ("scripts/lab", "--help"), ("scripts/doc-tables", "--help"),
            ("scripts/kbuild/gen-kernel-header", "--help")]
    if importlib.util.find_spec("numpy"):
        more += [(PROBE, "--list"), ("tests/bench/bench.py", "--help")]
    for words in more:
        quiet(*words, ways=(True,), cwd=PROJECT)


def others_fail():
    """A pipe of the program's own that breaks is no quiet end."""
    with tempfile.TemporaryDirectory() as place:
        for folder, call in (("scripts/kbuild", "quiet.finish(main)"),
                             ("tools/common", "sys.exit(output.finish('x', main))")):
            script = pathlib.Path(place, "script.py")
            script.write_text(f"import sys\nsys.path.insert(0, '{PROJECT / folder}')\n" + (
                "import quiet\n" if folder == "scripts/kbuild" else
                "from ssd_common import output\n") +
                f"def main():\n    raise BrokenPipeError(32, 'Broken pipe')\n{call}\n")
            done = subprocess.run([sys.executable, "-B", script], capture_output=True, text=True,
                                  check=False)
            check(done.returncode == 1 and "Broken pipe" in done.stderr,
                  done.stderr.splitlines()[-1])


def full():
    """What cannot be written is told, also of the options."""
    for program in (SSDCTL, PROBE, TRACES):
        with open("/dev/full", "w", encoding="ascii") as out:
            done = subprocess.run(
                [sys.executable, "-B", program, "--help"], stdout=out, stderr=subprocess.PIPE,
                text=True, check=False, env={**os.environ, "PYTHONUNBUFFERED": ""})
        check(done.returncode == 1 and done.stderr.count("\n") == 1 and
              "the output: No space left" in done.stderr, done.stderr.strip()[-200:])


def main():
    all_of_them()
    one_each()
    others_fail()
    full()


if __name__ == "__main__":
    main()
