# SPDX-License-Identifier: GPL-2.0
"""ssdctl in a guest: called in this process, because to start Python takes seconds there, beside
udev's daemon, which the lab does not start."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

from checks import check, is_added, run, wait_for

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = PROJECT / "tools/ssdctl"
sys.path[:0] = [str(TOOL), str(PROJECT / "tools/common")]

from ssd_ctl import STATE, command, rules  # noqa: E402  (in a folder added above)
from ssd_ctl.udev import reload as tell_udev  # noqa: E402

UDEVD = pathlib.Path("/lib/systemd/systemd-udevd")
PROGRAM = pathlib.Path("/usr/sbin/ssdctl")
INSTALLED = (pathlib.Path("/etc/udev/rules.d/60-ssd-iosched-hwdb.rules"),
             pathlib.Path("/etc/udev/hwdb.d/60-ssd-iosched.hwdb"))
SKIP = 4


def link():
    """Have ssdctl as if it were installed."""
    PROGRAM.unlink(missing_ok=True)
    PROGRAM.symlink_to(TOOL / "ssdctl")


@contextlib.contextmanager
def udev():
    """Have udev's daemon, with the rules of the hardware database and with /usr/sbin/ssdctl, until
    the body ends; skip the test without udev."""
    if not UDEVD.exists():
        print("udev is missing: scripts/setup lab")
        sys.exit(SKIP)
    for folder in ("/run/udev", "/etc/udev/rules.d", "/etc/udev/hwdb.d"):
        os.makedirs(folder, exist_ok=True)
    for file in INSTALLED:
        shutil.copy(TOOL / "udev" / file.name, file)
    link()
    # To compile all of it would take long. Without any, udev would not notice a later one.
    run("mount", "-t", "tmpfs", "none", "/usr/lib/udev/hwdb.d")
    run("systemd-hwdb", "update")
    with subprocess.Popen([UDEVD], stderr=subprocess.DEVNULL) as daemon:
        wait_for(lambda: os.path.exists("/run/udev/control"), "udev")
        run("udevadm", "trigger", "--action=add", "--subsystem-match=block")
        settle()
        try:
            yield
        finally:
            daemon.terminate()
    shutil.rmtree("/run/udev")
    run("umount", "/usr/lib/udev/hwdb.d")
    for file in (*INSTALLED, PROGRAM):
        file.unlink()


def reload():
    """Have udev read its rules again."""
    failed = tell_udev()
    check(not failed, failed or "udev reads its rules")


def settle(*names):
    """Wait until udev has processed all events, those that add the drives @names included. The
    kernel sends them after it has read the partitions."""
    def is_known(name):
        number = pathlib.Path("/sys/block", name, "dev")
        return number.exists() and pathlib.Path(f"/run/udev/data/b{State.text(number)}").exists()
    for name in names:
        wait_for(lambda name=name: is_added(name) and is_known(name), name)
    run("udevadm", "settle")


def ssdctl(*words, status=0):
    """Call ssdctl, check its exit status; return (output, errors)."""
    out, errors = io.StringIO(), io.StringIO()
    sys.argv = [str(PROGRAM), *map(str, words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            ended = command.main()
        except SystemExit as error:
            ended = error.code
    said = out.getvalue(), errors.getvalue()
    print(f"$ ssdctl {' '.join(map(str, words))}\n{said[0]}{said[1]}", end="", flush=True)
    check(ended == status, f"status {ended}")
    return said


def refused(because, *words, status=1):
    """Check that ssdctl refuses in one line that says @because."""
    out, errors = ssdctl(*words, status=status)
    check(not out and because in errors and errors.startswith("ssdctl: ") and
          errors.count("\n") == 1, f"one line that says {because}")


def status_of(name):
    """Return what ssdctl status --json says of a drive."""
    return json.loads(ssdctl("status", name, "--json", "--interval", 0)[0])["drives"][0]


class State:
    """What a drive has, to compare."""

    def __init__(self, name):
        self.queue = pathlib.Path("/sys/block", name, "queue")
        self.files = {str(file.relative_to(self.queue)): self.text(file)
                      for file in sorted(self.queue.rglob("*"))
                      if file.is_file() and file.stat().st_mode & 0o200}

    @staticmethod
    def text(file):
        """The text of a file; of settings that cannot be read, none. Which other schedulers are
        there does not matter."""
        try:
            text = file.read_text().strip()
        except OSError:
            return ""
        return text.partition("[")[2].partition("]")[0] if file.name == "scheduler" else text

    def same(self, what, name=None):
        """Check that the drive, or the drive of this name, has this state."""
        now = State(name or self.queue.parent.name).files
        differ = {name: (self.files.get(name), now.get(name)) for name in self.files | now
                  if self.files.get(name) != now.get(name)}
        check(not differ, f"{what}: as before {differ or ''}")


def has(name, scheduler, **settings):
    """Check that a drive has a scheduler with these tunables and settings of the queue."""
    queue = pathlib.Path("/sys/block", name, "queue")
    now = {"scheduler": State.text(queue / "scheduler")}
    for key in settings:
        file = queue / "iosched" / key
        now[key] = (file if file.exists() else queue / key).read_text().strip()
    meant = {"scheduler": scheduler, **{key: str(value) for key, value in settings.items()}}
    check(now == meant, f"{name} has {now}, meant {meant}")


def replug(*units):
    """Remove disks of the SCSI target and have them appear again."""
    for unit in units:
        gone = pathlib.Path("/sys/block", unit.name)
        unit.unplug()
        wait_for(lambda gone=gone: not gone.exists(), f"the end of {gone.name}")
    for unit in units:
        unit.plug()
    settle(*(unit.name for unit in units))


def nothing_left():
    """Check that ssdctl has left no file."""
    left = [str(path) for path in rules.files()]
    left += [path for path in (str(STATE), "/etc/ssd-iosched") if os.path.exists(path)]
    left += map(str, pathlib.Path("/run/ssd-iosched").glob("*"))
    check(not left, f"nothing is left {left or ''}")


def as_nobody(*words):
    """Call ssdctl as a user who is not root; return (status, output, errors)."""
    done = subprocess.run([PROGRAM, *words], user=65534, capture_output=True, text=True,
                          check=False)
    print(f"$ ssdctl {' '.join(words)}\n{done.stdout}{done.stderr}", end="", flush=True)
    return done.returncode, done.stdout, done.stderr
