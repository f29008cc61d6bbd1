# SPDX-License-Identifier: GPL-2.0
"""Facts of a section: what children have read, and what is missing."""
import os
from collections.abc import Callable

from ssd_ctl.report import Section
from ssd_ctl.report.bounded import ANSWER_S, Answer, Budget, answer, answers, text_of

ABSENT = os.strerror(2)
# Names of what is missing for one reason.
MOST_NAMED = 4


def shown(answered: Answer) -> str:
    """Return an answer as the text of a fact."""
    return f"({answered.why})" if answered.why else str(answered.value)


def note(section: Section, what: str, answered: Answer):
    """Note what is missing."""
    if answered.why:
        section.lacking.append(f"{what}: {answered.why}")


def read_all(section: Section, files: dict[str, str], budget: Budget,
             read: Callable[[str], str] = text_of):
    """Add what files have, {name of the fact: path}. One that is not there is no fact."""
    names = {path: name for name, path in files.items()}
    silent: dict[str, list[str]] = {}
    for each in answers(read, list(names), budget):
        if each.why != ABSENT and each.value != "":
            section.facts[names[each.item]] = shown(each)
            if each.why:
                silent.setdefault(each.why, []).append(names[each.item])
    section.lacking += [f"{few(found)}: {why}" for why, found in silent.items()]


def few(names: list[str]) -> str:
    """Return some of many names."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def add(section: Section, what: str, call: Callable[[], dict[str, str]], budget: Budget,
        seconds: float = ANSWER_S):
    """Add the facts that a call returns. @what: they are, if they are missing."""
    found = answer(call, budget, seconds)
    section.facts |= found.value or {}
    note(section, what, found)
