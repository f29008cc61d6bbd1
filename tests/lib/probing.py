# SPDX-License-Identifier: GPL-2.0
"""ssd-probe in a test: started, answered, ended, and the settings of a drive's queue."""

import contextlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

from checks import fail
from ssd import PROJECT

COMMAND = PROJECT / "tools/ssd-probe/ssd-probe"
# The same with other procedures.
FAKE = PROJECT / "tests/lib/probe_fake.py"
STATES = pathlib.Path("/var/lib/ssd-probe")
SKIP = 4


def skip_without_parts():
    """Skip the test if a part of ssd-probe that is not Python's is missing."""
    if not (PROJECT / "build/tools/ssd-probe-io").exists():
        print("build/tools/ssd-probe-io is missing: make tools")
        sys.exit(SKIP)
    for module in ("jinja2", "jsonschema", "numpy", "scipy"):
        if not importlib.util.find_spec(module):
            print(f"python3-{module} is missing: scripts/setup tools")
            sys.exit(SKIP)


def start(*options, program=FAKE, **environment):
    """Start ssd-probe; its input is a pipe."""
    return subprocess.Popen([program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment})


def probe(*options, typed="", **how):
    """Run ssd-probe with this input; return (status, output, errors)."""
    with start(*options, **how) as running:
        out, errors = running.communicate(typed)
    return said(options, running.returncode, out, errors)


def said(options, status, out, errors):
    """Print what ssd-probe was called with and its @errors; return (status, output, errors)."""
    print(f"$ ssd-probe {' '.join(map(str, options))}\n{errors}", flush=True)
    return status, out, errors


def forked(main, *options, typed=""):
    """Call ssd-probe's @main() in a forked child, as probe() does with the program: to start Python
    and to load numpy takes seconds in a guest. @main's modules are those of this process."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
        files[0].write(typed)
        files[0].seek(0)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            run_child(main, options, files)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in files:
            file.seek(0)
        return said(options, status, files[1].read(), files[2].read())


def run_child(main, options, files):
    """End this process with the status of @main(), which has @files as input, output and errors."""
    status = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.argv = ["ssd-probe", *map(str, options)]
        status = main()
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait_for_line(running, part):
    """Wait until ssd-probe has printed a line with @part on stderr; return all lines until then."""
    lines = []
    for line in running.stderr:
        lines.append(line)
        if part in line:
            return "".join(lines)
    fail(f"ssd-probe printed no '{part}': {''.join(lines)}")


def queue_settings(name):
    """Return the values of all settings of a drive's queue that can be written."""
    queue = pathlib.Path("/sys/block", name, "queue")
    return {str(file.relative_to(queue)): file.read_text().strip()
            for file in sorted(queue.rglob("*")) if file.is_file() and file.stat().st_mode & 0o200}


def states():
    """Return the files that interrupted runs have left."""
    return sorted(STATES.glob("*"))
