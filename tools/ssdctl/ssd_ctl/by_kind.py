# SPDX-License-Identifier: GPL-2.0
"""The file of udev's rules by which all drives keep what is recommended for their kind, also those
that appear later. It sorts after the rules for a model, a place or a drive, and leaves a drive that
has one to it: so the scheduler is selected once in an event."""
import dataclasses
import json
import pathlib
from collections.abc import Mapping

from ssd_common.drive import Drive
from ssd_ctl import CtlError, hwdb, kinds, udev
from ssd_ctl.choice import Choice, parse
from ssd_ctl.rule_lines import (
    ABOUT, FIRST, KEPT, PREFIX, PROGRAM, assignments, meant, retried)

NAME = f"{PREFIX}each-kind.rules"
END = 'LABEL="ssd_iosched_end"'
TO_END = 'GOTO="ssd_iosched_end"'
# The parts of an eMMC for a boot loader or a device maker are no drives.
HEAD = (f'SUBSYSTEM!="block", {TO_END}', f'ACTION!="add|change", {TO_END}',
        f'ENV{{DEVTYPE}}!="disk", {TO_END}', f'ENV{{{KEPT}}}=="1", {TO_END}',
        f'KERNEL=="mmcblk*boot*|mmcblk*gp*|mmcblk*rpmb*", {TO_END}',
        # Without a medium of its own, or without a scheduler.
        f'KERNEL=="sr*|fd*", {TO_END}', f'TEST!="mq", {TO_END}')
DATABASE = tuple(
    f"{condition}IMPORT{{builtin}}=\"hwdb 'block::name:$env{{{name}}}:fwrev:$env{{ID_REVISION}}:'\""
    for condition, name in (('ENV{ID_MODEL}=="?*", ', "ID_MODEL"),
                            ('ENV{ID_MODEL}=="", ENV{ID_NAME}=="?*", ', "ID_NAME")))


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kind in the file: its sets of terms, and what its drives get, as words; "": nothing."""
    name: str
    matches: tuple[str, ...]
    words: str


@dataclasses.dataclass(frozen=True)
class File:
    """The file. It has a table of its own, so that another version of ssdctl understands it.
    @program: the path of ssdctl, "" if a rule must not call it; @left: terms of drives that are
    left alone."""
    entries: tuple[Entry, ...]
    program: str
    left: tuple[str, ...] = ()

    @classmethod
    def recommended(cls, program: str):
        """Return the file of what is recommended."""
        return cls(tuple(Entry(kind.name, kind.matches, str(kinds.choice_of(kind) or ""))
                         for kind in kinds.KINDS), program if PROGRAM.fullmatch(program) else "")

    def text(self) -> str:
        """Return the contents. A drive goes to the lines of its choice, or to the end."""
        lines = [*HEAD, *(f"{terms}, {TO_END}" for terms in self.left), *DATABASE]
        if self.program:
            # What was measured on a drive of the model wins over the kind.
            known = f'ENV{{{hwdb.SCHEDULER}}}=="?*"'
            lines += [f'{known}, ACTION=="add", TEST=="{self.program}", '
                      f'RUN+="{self.program} udev-apply %k"', f"{known}, {TO_END}"]
        labels: dict[str, str] = {}
        for entry in self.entries:
            label = labels.setdefault(entry.words, f"ssd_iosched_{len(labels)}") \
                if entry.words else "ssd_iosched_end"
            lines += [f"# {entry.name}",
                      *(f'{match}, GOTO="{label}"' for match in entry.matches)]
        lines.append(TO_END)
        for words, label in labels.items():
            choice = parse(words.split())
            lines += [f'LABEL="{label}"', *assignments("", choice),
                      *retried("", choice, self.program), TO_END]
        about = {"kinds": [dataclasses.asdict(entry) for entry in self.entries],
                 "program": self.program, **({"left": self.left} if self.left else {})}
        return FIRST + ABOUT + json.dumps(about) + "\n" + "\n".join([*lines, END]) + "\n"

    def leaves(self, drive: Drive, known: dict[str, str]) -> bool:
        """Return true if an event of a drive without a rule of its own ends at the head of the
        file. @known: its properties of udev."""
        return kinds.has(drive, (*HEAD, *self.left), {**known, "DEVTYPE": "disk", KEPT: ""})

    def entry_of(self, drive: Drive, known: dict[str, str]) -> Entry | None:
        """Return the entry that is for a drive, None if there is none. @known: its properties of
        udev."""
        return next((entry for entry in self.entries
                     if kinds.has(drive, entry.matches, known)), None)


@dataclasses.dataclass(frozen=True)
class KindRule:
    """What the file at @path keeps for a drive of a kind, @model, or of a model of which the
    @database has an entry. Stands for a rules.Rule; @changed: the file was edited."""
    choice: Choice
    path: pathlib.Path
    model: str
    database: bool
    changed: bool
    by_model: bool = False
    by_kind: bool = True

    def edited(self) -> bool:
        """Return true if the file was changed by hand."""
        return self.changed


def read(path: pathlib.Path) -> File | None:
    """Return the file that ssdctl has written, None if there is none."""
    try:
        head, about, *_ = path.read_text(encoding="utf-8").splitlines()
        made = json.loads(about.removeprefix(ABOUT))
        found = File(tuple(Entry(each["name"], tuple(each["matches"]), each["words"])
                           for each in made["kinds"]), made["program"],
                     tuple(map(str, made.get("left", ()))))
        return found if head + "\n" == FIRST and found.text() else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, CtlError):
        return None


def chosen(file: File, drive: Drive, known: dict[str, str]) -> tuple[Choice | None, str, bool]:
    """Return what a file keeps for a drive, None: nothing; for which kind or model; and true if
    the hardware database says so. @known: its properties of udev."""
    if file.leaves(drive, known):
        return None, "", False
    if file.program and known.get(hwdb.SCHEDULER):
        try:
            return hwdb.choice_in(known), udev.model(known), True
        except CtlError:
            return None, "", True
    entry = file.entry_of(drive, known)
    return (parse(entry.words.split()), entry.name, False) if entry and entry.words else (
        None, "", False)


def of(drive: Drive, path: pathlib.Path, found: Mapping[str, str] | None) -> list[KindRule]:
    """Return what the file keeps for a drive, [] if nothing. @found: its properties of udev, if
    they are known."""
    file = read(path)
    if not file:
        return []
    known = kinds.properties(drive, None if found is None else dict(found))
    choice, model, database = chosen(file, drive, known)
    changed = meant(path.read_text(encoding="utf-8")) != meant(file.text())
    return [KindRule(choice, path, model, database, changed)] if choice else []
