# SPDX-License-Identifier: GPL-2.0
"""What the administrator of a machine has chosen for a drive, which the rules by kind leave as it
is: by a rule of udev in /etc that comes before them, or by ssdctl apply."""
import re

from ssd_common.drive import Drive
from ssd_ctl import CtlError, by_kind, keeping, rules, saved, schedulers
from ssd_ctl.choice import Choice
from ssd_ctl.setters import Setter
from ssd_ctl.setters import rules as events

RULE = re.compile(r"/(etc|run|(?:usr/(?:local/)?)?lib)/udev/rules\.d/([^/]+):\d+")


def by_file(drive: Drive, choice: Choice) -> Setter | None:
    """Return the line in /etc that selects another scheduler than a choice before the rules by kind
    do, None if there is none. One that comes after them wins, and is no choice to look for."""
    found, _ = events.of(drive, "", rules.PREFIX, choice)
    decides = None
    for each in found:
        place = RULE.fullmatch(each.place)
        if place and each.file == "scheduler" and each.sure and place[2] < by_kind.NAME:
            decides = each
    theirs = decides and decides.place.startswith("/etc/")
    return decides if theirs and keeping.contradicts(choice, decides) else None


def by_apply(drive: Drive, choice: Choice) -> Choice | None:
    """Return what ssdctl apply has selected instead of a choice and of what rules select, None if
    nothing."""
    applied = saved.applied(drive)
    if not applied or not schedulers.holds(drive, applied):
        return None
    usual = any(schedulers.holds(drive, each) for each in (choice, *rules.choices(drive)))
    return None if usual else applied


def condition(drive: Drive, choice: Choice) -> str:
    """Return the terms of a rule that match a drive: by its serial number, its place or, if udev
    knows neither, its name."""
    for by_path in (False, True):
        try:
            match = rules.recognized_by(drive, False, by_path)
        except CtlError:
            continue
        kernel = rules.kernel_names(drive.name)
        return rules.Rule(choice, kernel, match, "", False, "").condition()
    return rules.Rule(choice, rules.pattern(drive.name), {}, "", False, "").condition()
