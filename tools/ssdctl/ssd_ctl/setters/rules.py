# SPDX-License-Identifier: GPL-2.0
"""Rules of udev that set files of a drive's queue, found by reading the files of rules: what their
conditions say of the drive and its partitions, as far as files tell. What cannot be told so (what a
program prints, say) is neither true nor false: None."""
import dataclasses
import fnmatch
import functools
import glob
import os
import pathlib
import re
from collections.abc import Iterator

from ssd_common.drive import Drive, read
from ssd_ctl import udev
from ssd_ctl.choice import Choice, canonical
from ssd_ctl.setters import Setter, files, shell

TERM = re.compile(r'(\w+)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"((?:[^"\\]|\\.)*)"')
# What may be part of a line that sets something; lines of other files are not looked at.
TOUCHES = re.compile(r"queue/|bdi/|\bRUN\b|PROGRAM|SYSTEMD_WANTS")
FOLDERS = ("usr/lib/udev", "lib/udev")
ACTIONS = ("add", "change")
BEFORE = "before the drive's rule, which leaves it"
# Names the action in rules, commands and scripts.
ACTION = "ACTION"
MATCH = ("==", "!=")
PARENTS = {"KERNELS", "SUBSYSTEMS", "DRIVERS", "ATTRS"}
# Files that a scheduler has, or that a rule sets: what they are when a rule is read is not known.
OF_SCHEDULER = re.compile(r"(?:\.\./)?queue/(?:scheduler|iosched.*|nr_requests)")
SUBSTITUTE = re.compile(r"\$\$|%%|\$(\w+)(?:\{(\w+)\})?|%(?:(E)\{(\w+)\}|([knpMSN]))")


@dataclasses.dataclass
class Line:
    """A line of a file of rules. @terms: (key, attribute, operator, value), @text: all of it."""
    path: pathlib.Path
    number: int
    terms: list[tuple[str, str, str, str]]
    text: str = ""

    @property
    def place(self) -> str:
        """FILE:LINE."""
        return f"{files.shown(self.path)}:{self.number}"

    def value(self, key: str) -> str:
        """Return the value of the first term with this key, "" without."""
        return next((term[3] for term in self.terms if term[0] == key), "")


def lines_of(path: pathlib.Path, text: str) -> list[Line]:
    """Return the lines of a file of rules."""
    return [Line(path, number, TERM.findall(line), line) for number, line in files.joined(text)
            if not line.lstrip().startswith("#")]


class Device:
    """A drive or a partition, as rules see it in an event."""

    def __init__(self, sysfs: pathlib.Path, drive: Drive):
        self.sysfs, self.drive = sysfs.resolve(), drive
        self.name = self.sysfs.name
        self.devpath = str(self.sysfs).removeprefix("/sys")
        self.partition = (self.sysfs / "partition").exists()

    @functools.cached_property
    def properties(self) -> dict[str, str]:
        """What udev knows of it."""
        return udev.properties(self)

    @functools.cached_property
    def chain(self) -> list[pathlib.Path]:
        """The folders of it and of its parents."""
        return [place for place in (self.sysfs, *self.sysfs.parents) if (place / "uevent").exists()]

    def file(self, attribute: str) -> str | None:
        """Return the file below queue/ of the drive that ATTR{attribute} means, None if none."""
        named = re.fullmatch(r"\[block/(.+?)\](.+)", attribute)
        if named and named[1] == self.drive.name:
            attribute = named[2]
        elif self.partition:
            attribute = attribute.removeprefix("../") if attribute.startswith("../") else ""
        found = shell.FILE.fullmatch(attribute)
        return found and not found["where"] and (found["file"] or found["bdi"]) or None

    def command(self, text: str) -> str:
        """Return a command with what udev substitutes for; the rest is not known."""
        simple = {"kernel": self.name, "name": self.name, "k": self.name, "devnode":
                  f"/dev/{self.name}", "N": f"/dev/{self.name}", "sys": "/sys", "S": "/sys",
                  "devpath": self.devpath, "p": self.devpath,
                  "parent": self.sysfs.parent.name if self.partition else ""}

        def put(found: re.Match) -> str:
            if found[0] in ("$$", "%%"):
                return found[0][0]
            if found[1] == "env" or found[3]:
                return self.properties.get(found[2] or found[4], "")
            return simple.get(found[1] or found[5], found[0])
        return SUBSTITUTE.sub(put, text)


def compared(value: str | None, operator: str, pattern: str) -> bool | None:
    """Return whether a value matches as a term wants it, None if the value is not known."""
    if value is None or re.search(r"[$%]", pattern):
        return None
    matches = any(fnmatch.fnmatchcase(value, each) for each in pattern.split("|"))
    return matches == (operator == "==")


def attribute(place: pathlib.Path, name: str, operator: str, pattern: str) -> bool | None:
    """Return whether a file of sysfs matches; one that is missing never does."""
    if OF_SCHEDULER.fullmatch(name):
        return None
    if name.startswith("[") or re.search(r"[$%]", name):
        return None
    return os.path.isfile(place / name) and compared(read(place / name), operator, pattern)


def tested(device: Device, path: str, operator: str) -> bool | None:
    """Return whether a file exists as TEST wants it."""
    if re.search(r"[$%]", path) or OF_SCHEDULER.fullmatch(path):
        return None
    return bool(glob.glob(os.path.join(device.sysfs, path))) == (operator == "==")


def of_parents(device: Device, terms: list[tuple[str, str, str, str]]) -> bool | None:
    """Return whether all terms about parents match one of them, or the device."""
    def one(place: pathlib.Path, key: str, name: str, operator: str, value: str) -> bool | None:
        if key == "ATTRS":
            return attribute(place, name, operator, value)
        found = {"KERNELS": place.name, "SUBSYSTEMS": link(place, "subsystem"),
                 "DRIVERS": link(place, "driver")}[key]
        return compared(found, operator, value)

    results = [every(one(place, *term) for term in terms) for place in device.chain]
    return True if True in results else None if None in results else False


def link(place: pathlib.Path, name: str) -> str:
    """Return the name that a link of a device means, "" without."""
    return os.path.basename(os.readlink(place / name)) if (place / name).is_symlink() else ""


def every(results) -> bool | None:
    """Return false if a result is false, None if one is not known, otherwise true."""
    found = set(results)
    return False if False in found else None if None in found else True


def term_matches(device: Device, action: str, term: tuple[str, str, str, str]) -> bool | None:
    """Return whether a term matches a device in an event."""
    key, name, operator, value = term
    if key == "ATTR":
        return attribute(device.sysfs, name, operator, value)
    if key == "TEST":
        return tested(device, value, operator)
    if key == "ENV" and not name.startswith("."):
        return compared({"ACTION": action}.get(name, device.properties.get(name, "")), operator,
                        value)
    found = {"ACTION": action, "KERNEL": device.name.replace("!", "/"), "SUBSYSTEM": "block",
             "DEVPATH": device.devpath}
    return compared(found.get(key), operator, value)


def matches(device: Device, action: str, line: Line) -> bool | None:
    """Return whether a line's conditions are true for a device in an event. What names cheaply
    excludes comes first."""
    terms = [term for term in line.terms if term[2] in MATCH]
    above = [term for term in terms if term[0] in PARENTS]
    rest = sorted((term for term in terms if term[0] not in PARENTS),
                  key=lambda term: term[0] in ("ENV", "TEST", "ATTR"))
    result: bool | None = True
    for term in rest:
        found = term_matches(device, action, term)
        if found is False:
            return False
        result = None if found is None else result
    if any(term[0] in ("IMPORT", "PROGRAM") for term in line.terms):
        # Whether a program succeeds is a condition, too.
        result = None
    return every((result, of_parents(device, above))) if above else result


def reached(device: Device, action: str, lines: list[Line]) -> Iterator[tuple[Line, bool | None]]:
    """Yield the lines of a file that an event reaches and that match it, with true or None."""
    skip_to, doubt_to = "", ""
    for line in lines:
        label = line.value("LABEL")
        if skip_to:
            skip_to = "" if label == skip_to else skip_to
            continue
        if label == doubt_to:
            doubt_to = ""
        if not (line.value("GOTO") or sets(line)):
            continue
        result = matches(device, action, line)
        if result is False:
            continue
        if line.value("GOTO"):
            if result and not doubt_to:
                skip_to = line.value("GOTO")
            else:
                doubt_to = doubt_to or line.value("GOTO")
        yield line, None if doubt_to else result


def sets(line: Line) -> bool:
    """Return true if a line assigns a file of sysfs, runs a program or starts a unit."""
    return any(key in ("RUN", "PROGRAM", "IMPORT") or operator not in MATCH and
               (key == "ATTR" or (key, name) == ("ENV", "SYSTEMD_WANTS"))
               for key, name, operator, _ in line.terms)


def script_places(word: str, first: bool) -> list[str]:
    """Return the files that a word of a command may name: @first, that of the program, may be in
    udev's folder."""
    if word.startswith("/"):
        return [word]
    return [f"/{folder}/{word}" for folder in FOLDERS
            if first and files.text_of(files.at(f"{folder}/{word}"))][:1]


def command_setters(device: Device, line: Line, command: str) -> Iterator[Setter]:
    """Yield what a command of a rule sets: the command itself, or a script that it runs."""
    names = shell.Names.of(device.drive)
    found_in = {"DEVPATH": device.devpath, "DEVNAME": f"/dev/{device.name}"}
    told = ACTION in command
    command = device.command(command)
    for found in shell.writes(command, names):
        yield dataclasses.replace(found, place=line.place, by_action=told and not found.sure)
    words = command.split()
    for at, word in enumerate(words):
        known = found_in | {str(number): text for number, text in enumerate(words[at + 1:], 1)}
        for place in script_places(word, at == 0):
            text = files.text_of(files.at(place))
            for found in shell.writes(text, names, known):
                yield dataclasses.replace(
                    found, place=f"{place}:{found.place} (run by {line.place})",
                    by_action=(told or ACTION in text) and not found.sure)


def line_setters(device: Device, line: Line, later: bool) -> Iterator[Setter]:
    """Yield what a line sets. @later: it comes after the drive's rule: a program of RUN runs after
    all rules, and what an event of a partition does comes after those of the drive."""
    for key, name, operator, value in line.terms:
        if key == "ATTR" and operator not in MATCH and later and (file := device.file(name)):
            clear = not re.search(r"[$%]", value)
            yield Setter(line.place, file, value if clear else "", clear)
        elif (key, name) in (("RUN", ""), ("RUN", "program")) or later and (
                key == "PROGRAM" or (key, name) == ("IMPORT", "program")):
            yield from command_setters(device, line, value)


def lasting(device: Device, line: Line, had: dict[str, str], action: str, choice: Choice
            ) -> Iterator[Setter]:
    """Yield what a line before the drive's rule sets of the scheduler's tunables and the rule
    leaves: if the drive has the rule's scheduler by then, that is not selected anew. @had: {action:
    the scheduler by then}."""
    for key, name, operator, value in line.terms:
        file = device.file(name) if key == "ATTR" and operator not in MATCH else None
        if file == "scheduler":
            had[action] = canonical(value)
        elif (file and file.startswith("iosched/") and had[action] == choice.scheduler and
              file not in choice.settings()):
            clear = not re.search(r"[$%]", value)
            yield Setter(line.place, file, value if clear else "", clear, BEFORE)


def every_file() -> list[tuple[pathlib.Path, list[Line]]]:
    """Return the files of rules that may set something, with their lines."""
    found = []
    for path in files.layered("udev/rules.d", "*.rules"):
        text = files.text_of(path)
        if TOUCHES.search(text):
            found.append((path, lines_of(path, text)))
    return found


def of(drive: Drive, ours: str, own: str, choice: Choice) -> tuple[list[Setter], set[str]]:
    """Return what rules set of a drive after the file @ours, which selects a choice, or before it
    if it stays, and the units that they start. @own: what names of files of rules of ssdctl begin
    with."""
    devices = [Device(drive.sysfs, drive),
               *(Device(path.parent, drive) for path in sorted(drive.sysfs.glob("*/partition")))]
    found: dict[tuple[str, str], Setter] = {}
    units: set[str] = set()
    # A drive that is added may have any scheduler; later it has that of the rule.
    had = {"add": "", "change": choice.scheduler}
    for path, lines in every_file():
        if path.name.startswith(own):
            continue
        for device in devices:
            later = device.partition or path.name > ours
            for action in ACTIONS:
                for line, sure in reached(device, action, lines):
                    units |= {each for term in line.terms if term[1] == "SYSTEMD_WANTS"
                              for each in device.command(term[3]).split()}
                    before = () if later else lasting(device, line, had, action, choice)
                    for each in (*line_setters(device, line, later), *before):
                        note(found, each, bool(sure), action)
    return list(found.values()), units


def note(found: dict[tuple[str, str], Setter], each: Setter, sure: bool, action: str):
    """Note a setter, which several events may reach."""
    key = each.place, each.file
    former = found.get(key)
    found[key] = dataclasses.replace(
        each, sure=each.sure and sure or bool(former and former.sure),
        on_change=action == "change" or bool(former and former.on_change))
