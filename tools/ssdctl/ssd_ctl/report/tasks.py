# SPDX-License-Identifier: GPL-2.0
"""The tasks that are blocked: those in uninterruptible sleep, what they wait in, and their stacks.
"""
import os
import re

from ssd_ctl.report import Section
from ssd_ctl.report.bounded import Budget, answer, answers, names_in
from ssd_ctl.report.facts import note
from ssd_ctl.report.machine import at

# The end of a process's name, and its state, in /proc/PID/stat; idle threads of the kernel are I.
STATE = re.compile(r"\A(\d+) \((.*)\) (\S)", re.S)
MOST = 60
# Not cmdline: a read of it waits for memory that a blocked task may hold.
FILES = ("wchan", "stack")


def blocked() -> list[list[str]]:
    """Return (thread, name) of each blocked thread, MOST at most."""
    found = []
    for process in filter(str.isdigit, names_in(at("proc"))):
        for thread in names_in(at(f"proc/{process}/task")):
            match = STATE.match(file_text(f"proc/{process}/task/{thread}/stat"))
            if match and match[3] == "D":
                found.append([f"{process}/task/{thread}", match[2]])
    return found[:MOST]


def file_text(path: str) -> str:
    """Return a file of a thread, "" if it has ended."""
    try:
        with open(at(path), encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except (FileNotFoundError, ProcessLookupError):
        return ""


def waiting(thread: list[str]) -> str:
    """Return what a thread waits in."""
    place, denied, texts = thread[0], "", []
    for name in FILES:
        try:
            texts.append(file_text(f"proc/{place}/{name}").strip())
        except OSError as error:
            denied = f"({name}: {error.strerror})"
    return "\n".join(filter(None, (*texts, denied)))


def section(budget: Budget) -> Section:
    """Return the blocked tasks."""
    made, found = Section("blocked tasks"), answer(blocked, budget, 10)
    note(made, "blocked tasks", found)
    for each in answers(waiting, found.value or [], budget):
        place, name = each.item
        made.facts[f"{os.path.basename(place)} {name}"] = each.value or f"({each.why})"
    if found.value == []:
        made.facts["tasks"] = "none"
    if any("(stack: " in text for text in made.facts.values()):
        made.lacking.append("stacks of blocked tasks: only root may read them")
    return made
