# SPDX-License-Identifier: GPL-2.0
"""Rules of udev in /etc that select a scheduler before the rules by kind do: for which drives, as
terms of a rule, so that the rules by kind leave to them also drives that appear later.

A condition is copied if it says all that decides: what a program prints, or what several terms skip
together, is not. The action is left out: what is selected for a drive in one event counts in all.
So is the scheduler, which the rule itself has changed by then."""
import dataclasses
import re
from collections.abc import Iterator

from ssd_ctl import by_kind, rules
from ssd_ctl.choice import canonical
from ssd_ctl.setters import files
from ssd_ctl.setters import rules as events

# Keys of terms that may be copied; of those of parents "not" means another thing than its opposite.
OWN = {"KERNEL", "SUBSYSTEM", "DEVPATH", "ATTR", "ENV", "TEST"}
COPIED = OWN | events.PARENTS
FLIPPED = {"==": "!=", "!=": "=="}
# Terms of a line that selects a scheduler for all drives that the rules by kind are for.
ANY = 'SUBSYSTEM=="block"'


@dataclasses.dataclass(frozen=True)
class Theirs:
    """A line that selects a scheduler. @place: FILE:LINE, @terms: of the drives that it is for; ""
    if that cannot be told."""
    place: str
    terms: str


def terms_of(line: events.Line) -> list[re.Match]:
    """Return the terms that a line compares, with their text."""
    return [term for term in events.TERM.finditer(line.text) if term[3] in events.MATCH]


def selected(line: events.Line) -> str:
    """Return the scheduler that a line selects, "" if none."""
    return next((canonical(value) for key, name, operator, value in line.terms
                 if (key, name) == ("ATTR", "queue/scheduler") and operator not in events.MATCH),
                "")


def counts(line: events.Line) -> set[bool]:
    """Return whether a line is for an event, of each action that counts."""
    terms = [term for term in terms_of(line) if term[1] == events.ACTION]
    return {all(events.compared(action, term[3], term[4]) for term in terms)
            for action in events.ACTIONS}


def conditions(line: events.Line) -> list[re.Match]:
    """Return the terms of a line but for those of the action."""
    return [term for term in terms_of(line) if term[1] != events.ACTION]


def of_scheduler(term: re.Match) -> bool:
    """Return true if a term is about the scheduler."""
    name = term[4] if term[1] == "TEST" else term[2] or ""
    return term[1] in ("ATTR", "TEST") and events.OF_SCHEDULER.fullmatch(name) is not None


def copied(term: re.Match, keys: set[str]) -> bool:
    """Return true if a term of these keys means in another file what is known of it here."""
    plain = term[0][term.end(3) - term.start():].lstrip().startswith('"')
    return plain and term[1] in keys and not (term[2] or "").startswith((".", "[")) and \
        not re.search(r"[$%]", f"{term[2]}{term[4]}")


def skipping(lines: list[events.Line], at: int) -> Iterator[events.Line]:
    """Yield the lines that may skip line @at."""
    for number, line in enumerate(lines[:at]):
        target = line.value("GOTO")
        if target and not any(each.value("LABEL") == target for each in lines[number + 1:at + 1]):
            yield line


def opposite(term: re.Match) -> str:
    """Return the text of a term with the other operator."""
    start, end = (place - term.start() for place in term.span(3))
    return term[0][:start] + FLIPPED[term[3]] + term[0][end:]


def reached(lines: list[events.Line], at: int) -> list[str] | None:
    """Return the terms by which line @at is not skipped, None if they cannot be told."""
    found = []
    for line in skipping(lines, at):
        terms = conditions(line)
        # What skips it in one action only leaves it to the other.
        if counts(line) != {True} or (terms and all(map(of_scheduler, terms))):
            continue
        if len(terms) != 1 or not copied(terms[0], OWN) or has_program(line):
            return None
        found.append(opposite(terms[0]))
    return found


def has_program(line: events.Line) -> bool:
    """Return true if what a program says is a condition of a line."""
    return any(key in ("PROGRAM", "RESULT", "IMPORT") for key, *_ in line.terms)


def terms_at(lines: list[events.Line], at: int) -> str:
    """Return the terms of the drives that line @at is for, "" if they cannot be told."""
    terms = [term for term in conditions(lines[at]) if not of_scheduler(term)]
    before = reached(lines, at)
    if before is None or has_program(lines[at]) or not all(copied(term, COPIED) for term in terms):
        return ""
    return ", ".join(dict.fromkeys([*before, *(term[0] for term in terms)])) or ANY


def theirs(file: by_kind.File) -> list[Theirs]:
    """Return the lines in /etc that select a scheduler before the rules by kind do, and not what
    those in @file select for all drives for which they select anything."""
    ours = {entry.words.split()[0] for entry in file.entries if entry.words}
    return [Theirs(line.place, terms_at(lines, at))
            for path, lines in events.every_file()
            if files.shown(path).startswith("/etc/") and path.name < by_kind.NAME and
            not path.name.startswith(rules.PREFIX)
            for at, line in enumerate(lines)
            if selected(line) and {selected(line)} != ours and counts(line) != {False}]
