# SPDX-License-Identifier: GPL-2.0
"""What the judges of ssd-probe and of ssdctl advise have in common: guests that work on a list of
cases and may be lost with one, and shares with their intervals."""
import collections.abc
import dataclasses
import json
import math
import pathlib
import signal
import time

from scipy import stats

import guests
import model


@dataclasses.dataclass(frozen=True)
class Work:
    """What guests do. @program: in guest/, which prints a line that begins with "@@ " and then one
    of JSON for each case of its plan, @options: of scripts/lab, @plan: returns what the program is
    told of a case, @done: called with a case, what was printed of it and the real seconds that it
    took, @lost: with a case that a guest was lost with, and why, @files: [(name in the guest,
    path)]."""
    program: str
    options: list[str]
    plan: collections.abc.Callable
    done: collections.abc.Callable
    lost: collections.abc.Callable
    files: tuple = ()


class Guest:
    """A guest that works on @cases in turn. @path: of its files, without their endings."""

    # Set by an interruption, which ends all guests.
    interrupted = False

    def __init__(self, work: Work, path: pathlib.Path, cases: list):
        self.work, self.path, self.cases = work, path, cases
        self.clock = time.monotonic()

    def handle(self, line: str):
        """Take a line that the guest prints."""
        if line.startswith("@@ "):
            self.clock = time.monotonic()
        if line.startswith("{"):
            self.work.done(self.cases.pop(0), json.loads(line), time.monotonic() - self.clock)

    def run(self):
        """Work on all cases. One that a guest is lost with is not tried again."""
        plan = self.path.with_suffix(".plan.json")
        while self.cases:
            plan.write_text(json.dumps(list(map(self.work.plan, self.cases))))
            try:
                guests.lab(guests.program_command(self.work.program, "plan.json"),
                           self.path.with_suffix(".log"), self.handle, self.work.options,
                           [("plan.json", plan), *self.work.files])
            except model.Failed as error:
                if Guest.interrupted or not self.cases:
                    raise
                self.work.lost(self.cases.pop(0), str(error))


def interrupt(*what):
    """Handle a signal that ends the program."""
    Guest.interrupted = True
    signal.default_int_handler(*what)


def run(work: Work, cases: list, folder: pathlib.Path, most: int):
    """Have guests work on @cases, several at a time, each on @most in a row. Their plans and logs
    are left in @folder."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    size = min(most, math.ceil(len(cases) / guests.GUESTS))
    guests.run_all([Guest(work, folder / f"guest-{at}", cases[at:at + size]).run
                    for at in range(0, len(cases), size)])


def share(count: int, number: int, digits: int = 0) -> str:
    """Return a share in percent with Wilson's interval of 95 %."""
    bounds = stats.binomtest(count, number).proportion_ci(0.95, "wilson")
    low, high = (f"{100 * bound:.{digits}f}" for bound in (bounds.low, bounds.high))
    return f"{100 * count / number:.{digits}f} ({low}-{high})"
