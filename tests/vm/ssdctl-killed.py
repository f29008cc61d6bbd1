#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# After a measurement that was killed, the next command of ssdctl restores what the drive had before
# it, and what apply has saved can be reverted after that; of an earlier boot nothing is restored
# check: 6.12
# timeout: 600
# precedence: no

import json
import os
import pathlib
import signal

from checks import check
from iosched import Disk, insert
from ssd import Device
from ssdctl import State, has, nothing_left, ssdctl

from ssd_ctl import schedulers  # (in folders that ssdctl.py has added)
from ssd_common import former
from ssd_common.drive import Drive
from ssd_ctl.choice import Choice

CANDIDATES = (Choice("kyber", {"read_lat_nsec": 5000000}), Choice.recommended("bp"))
UNUSUAL = {"iosched/slice_idle_us": 33, "nr_requests": 77, "wbt_lat_usec": 5000,
           "read_ahead_kb": 64, "iostats": 0}


def die(*_):
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def measured(name, *left, early=False):
    """Have a process begin a measurement, select what is @left, and be killed. @early: as soon as
    it has selected none."""
    child = os.fork()
    if not child:
        try:
            if early:
                former.time.sleep = die
            drive = Drive(f"/dev/{name}")
            with drive.locked(), former.changed(drive, {"iostats": "1"}, print):
                for choice in left:
                    schedulers.change(drive, choice)
                die()
        finally:
            os._exit(1)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, "it was killed")


def restored(name, file):
    """Revert restores what the drive had, whenever the measurement was killed."""
    before = State(name)
    for early, left in ((True, ()), (False, CANDIDATES)):
        measured(name, *left, early=early)
        check(State.text(before.queue / "scheduler") != "bfq" and
              file.stat().st_mode & 0o777 == 0o600, "its former settings are in a file")
        said = ssdctl("revert", name)[0]
        check("was killed: it has bfq again, as before" in said and "not undone" not in said and
              not file.exists(), "it says so")
        before.same(f"reverted after {len(left)} candidates")


def still_revertable(name, file):
    """What apply has saved is undone by the next revert, or by undo-all at once. Other commands
    begin with what the drive had."""
    before = State(name)
    ssdctl("apply", name, "pass", "depth=4", "read_ahead_kb=256")
    applied = State(name)
    measured(name, *CANDIDATES)
    check("apply or persist is not undone" in ssdctl("revert", name)[0], "it says what is left")
    applied.same("what was applied")
    measured(name, *CANDIDATES)
    said = ssdctl("apply", name, "kyber")[1]
    check("was killed: it has pass again" in said, "apply restores it before")
    measured(name, *CANDIDATES)
    drive = Drive(f"/dev/{name}")
    with drive.locked(), former.changed(drive, {}, print):
        kept = json.loads(file.read_text())["settings"]
        check(kept["under"]["scheduler"] == "kyber" and kept["bare"]["scheduler"] == "none",
              "the next measurement keeps the oldest settings")
    has(name, "kyber")
    measured(name, *CANDIDATES)
    ssdctl("undo-all")
    before.same("all undone")
    nothing_left()


def earlier_boot(name, file):
    """Settings do not survive a boot: what is said of an earlier one is dropped."""
    measured(name, *CANDIDATES)
    made = json.loads(file.read_text())
    file.write_text(json.dumps(made | {"instance": f"another boot {made['instance']}"}))
    now = State(name)
    check("nothing to undo" in ssdctl("revert", name)[0] and not file.exists(), "dropped")
    now.same("what an earlier boot had is not restored")


def main():
    for name in ("pass", "bp"):
        insert(name)
    with Device("small", memory_backed=1) as device:
        name = Disk(device.name, "bfq").name
        for setting, value in UNUSUAL.items():
            pathlib.Path("/sys/block", name, "queue", setting).write_text(str(value))
        file = former.FOLDER / f"{name}.json"
        restored(name, file)
        still_revertable(name, file)
        earlier_boot(name, file)
        pathlib.Path("/sys/block", name, "queue/scheduler").write_text("none")


if __name__ == "__main__":
    main()
