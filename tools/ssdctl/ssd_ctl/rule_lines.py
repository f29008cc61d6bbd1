# SPDX-License-Identifier: GPL-2.0
"""What the files of udev's rules that ssdctl writes have in common: their first lines, and those
that select a choice."""
import re

from ssd_ctl import schedulers
from ssd_ctl.choice import Choice

PREFIX = "70-ssd-iosched-"
FIRST = "# Written by ssdctl persist. To remove it: ssdctl revert, or ssdctl undo-all.\n"
ABOUT = "# About: "
OPPOSITE = {"=": "!", "!": "="}
# The property of udev that a drive has for an event, once a rule of its own has matched.
KEPT = "SSD_IOSCHED_KEPT"
PROGRAM = re.compile(r"/[A-Za-z0-9_./+-]+")


def mark_of(scheduler: str) -> tuple[str, str]:
    """Return how a rule tests that a scheduler is selected: whether a file exists ("=") or not
    ("!"), and the file. The text of queue/scheduler is no test, because udev reads it only once for
    an event, which may be before the scheduler is selected."""
    if scheduler == schedulers.NONE:
        return "!", "queue/iosched"
    name = schedulers.MARKS.get(scheduler)
    return "=", f"queue/iosched/{name}" if name else "queue/iosched"


def assignments(condition: str, choice: Choice) -> list[str]:
    """Return the lines that select a choice. @condition: terms before each, with ", " at the end,
    or "". The settings of a scheduler must not become those of another one, so they are made only
    if it has been selected."""
    operator, mark = mark_of(choice.scheduler)
    return [f'{condition}ATTR{{queue/scheduler}}="{choice.scheduler}"',
            *(f'{condition}TEST{operator}="{mark}", ATTR{{queue/{file}}}="{value}"'
              for file, value in choice.settings().items())]


def keeping(condition: str) -> str:
    """Return the line by which the rules by kind leave a drive to a rule of its own. @condition: as
    of assignments()."""
    return f'{condition}ENV{{{KEPT}}}="1"'


def retried(condition: str, choice: Choice, program: str) -> list[str]:
    """Return the line that calls @program if the scheduler has not been selected, because the
    kernel was busy; none without a program whose path a rule can have."""
    operator, mark = mark_of(choice.scheduler)
    if not PROGRAM.fullmatch(program):
        return []
    return [f'{condition}ACTION=="add", TEST{OPPOSITE[operator]}="{mark}", TEST=="{program}", '
            f'RUN+="{program} udev-apply %k"']


def meant(text: str) -> list[str]:
    """Return the lines of a rule's file that tell whether it was edited: without ABOUT, which
    another version of ssdctl may word otherwise, and keeping(), which former ones did not write."""
    return [line for line in text.splitlines()
            if not line.startswith(ABOUT) and not line.endswith(keeping(""))]
