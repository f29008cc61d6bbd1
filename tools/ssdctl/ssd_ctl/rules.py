# SPDX-License-Identifier: GPL-2.0
"""The udev rules by which drives keep a choice: a file for each drive, or for each model."""
import contextlib
import dataclasses
import fnmatch
import json
import pathlib
import re
import typing
from collections.abc import Mapping

from ssd_common.drive import Drive, read
from ssd_common.files import write_ours
from ssd_ctl import CtlError, by_kind, drives, udev
from ssd_ctl.choice import Choice
from ssd_ctl.rule_lines import (
    ABOUT, FIRST, PREFIX, assignments, keeping, meant, retried)

FOLDER = pathlib.Path("/etc/udev/rules.d")
# By which of udev's properties a drive is recognized; of several, the first that it has.
SERIAL, ANY_SERIAL = "ID_SERIAL_SHORT", "ID_SERIAL"
# Where it is attached.
PATH = "ID_PATH"
# On these buses udev makes an ID_SERIAL of the model if a drive has no serial number.
MADE_UP = ("usb", "ata")
# Tell apart the drives that a controller, or a reader of cards, has under one serial number.
PARTS = ("ID_NSID", "ID_INSTANCE")
# The part of most drives, which the name of a rule's file does not have.
ONLY = "0:0"


@dataclasses.dataclass
class Rule:
    """A file of rules for a drive, a place or a model. @kernel: pattern of a drive's names, @match:
    the properties of udev that it has; @model: of the drive that it was made for; @program: the
    path of ssdctl."""
    choice: Choice
    kernel: str
    match: dict[str, str]
    model: str
    by_model: bool
    program: str
    by_kind: typing.ClassVar[bool] = False

    @property
    def path(self) -> pathlib.Path:
        """The file."""
        how = "by-model" if self.by_model else "by-path" if PATH in self.match else "by-serial"
        # In the order of the names a drive's own rule follows the others, and wins.
        words = [value for value in self.match.values() if value != ONLY]
        return FOLDER / f"{PREFIX}{how}-{drives.slug(*words)}.rules"

    def named(self, drive: Drive) -> bool:
        """Return true if the rule is for drives with such names."""
        return any(fnmatch.fnmatchcase(drive.name, name) for name in self.kernel.split("|"))

    def fits(self, drive: Drive, found: Mapping[str, str]) -> bool:
        """Return true if the rule is for a drive. @found: its properties of udev."""
        return self.named(drive) and all(found.get(name) == value
                                         for name, value in self.match.items())

    def condition(self) -> str:
        """Return the terms that match events of the drive."""
        terms = [f'KERNEL=="{self.kernel}"', 'ENV{DEVTYPE}=="disk"',
                 *(f'ENV{{{name}}}=="{pattern(value)}"' for name, value in self.match.items())]
        return ", ".join(terms)

    def text(self) -> str:
        """Return the contents of the file."""
        condition = f"{self.condition()}, "
        lines = ['SUBSYSTEM!="block", GOTO="ssd_iosched_end"',
                 'ACTION!="add|change", GOTO="ssd_iosched_end"',
                 keeping(condition), *assignments(condition, self.choice),
                 *retried(condition, self.choice, self.program), 'LABEL="ssd_iosched_end"']
        return FIRST + ABOUT + json.dumps(dataclasses.asdict(self)) + "\n" + "\n".join(lines) + "\n"

    def edited(self) -> bool:
        """Return true if the file differs from text() by more than ABOUT."""
        return meant(read(self.path)) != meant(self.text())

    def as_kept(self) -> str:
        """Return the contents that the file has, with the line that former versions of ssdctl did
        not write: without it, the rules by kind, which come later, would win."""
        text, line = text_in(self.path) or "", keeping(f"{self.condition()}, ")
        if line in text.splitlines():
            return text
        return text + ("" if text.endswith("\n") else "\n") + line + "\n"


def pattern(value: str) -> str:
    """Return what matches exactly this value in a rule; a character that a rule cannot have
    matches any."""
    special = {**{char: f"[{char}]" for char in "*?["}, **dict.fromkeys('|"\\', "?")}
    return "".join(special.get(char, char) if " " <= char <= "~" else "?" * len(char.encode())
                   for char in value)


def kernel_names(name: str) -> str:
    """Return the pattern of the kernel's names of drives of this kind."""
    if name.startswith("mmcblk"):
        # Not its boot partitions, which are drives of their own.
        return "mmcblk[0-9]|mmcblk[0-9][0-9]"
    if name.startswith("nvme"):
        return "nvme*n*"
    kind = re.match("sd|vd|xvd|[a-z]+", name)
    return kind[0] + "*" if kind else pattern(name)


def serial_of(found: Mapping[str, str]) -> dict[str, str]:
    """Return the property that has a drive's serial number, of its properties of udev."""
    names = (SERIAL,) if found.get("ID_BUS") in MADE_UP else (SERIAL, ANY_SERIAL)
    return udev.first({name: drives.known_serial(found.get(name, "")) for name in names}, names)


def recognized_by(drive: Drive, by_model: bool, by_path: bool = False) -> dict[str, str]:
    """Return the properties that a rule recognizes a drive by. @by_model: by its model alone,
    @by_path: by its place, whichever drive is there."""
    found = udev.properties(drive)
    if "USEC_INITIALIZED" not in found:
        raise CtlError(f"udev does not know {drive.path}: start udev, then udevadm trigger")
    model = udev.first(found, udev.MODELS)
    if by_model:
        if not model:
            raise CtlError(f"udev knows no model of {drive.path}: a rule cannot recognize it")
        return model
    if by_path:
        if not found.get(PATH):
            raise CtlError(f"udev knows no path to {drive.path}: a rule cannot recognize it")
        return {PATH: found[PATH]}
    serial = serial_of(found)
    if not serial:
        ways = [text for text, known in (
            ("--by-model makes a rule for all drives of its model", model),
            ("--by-path makes one for what is attached there", found.get(PATH))) if known]
        raise CtlError(f"udev knows no serial number of {drive.path}: "
                       f"{', '.join(ways) or 'a rule cannot recognize it'}")
    return model | serial | {name: found[name] for name in PARTS if found.get(name)}


def read_rule(path: pathlib.Path) -> Rule | None:
    """Return the rule in a file, None if ssdctl did not write it."""
    try:
        head, about, *_ = path.read_text(encoding="utf-8").splitlines()
        made = json.loads(about.removeprefix(ABOUT))
        rule = Rule(**{field.name: made[field.name] for field in dataclasses.fields(Rule)} |
                    {"choice": Choice.from_json(made["choice"])})
        return rule if head + "\n" == FIRST and rule.path == path else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, CtlError):
        return None


def kinds_path() -> pathlib.Path:
    """Return the file of the rules by kind."""
    return FOLDER / by_kind.NAME


def is_ours(path: pathlib.Path) -> bool:
    """Return true if ssdctl has written a file of rules."""
    return bool(by_kind.read(path) if path.name == by_kind.NAME else read_rule(path))


def files() -> list[pathlib.Path]:
    """Return the files with names of ours, in udev's order."""
    return sorted(FOLDER.glob(f"{PREFIX}*.rules"))


def every() -> list[Rule]:
    """Return the rules that ssdctl has written."""
    return list(filter(None, map(read_rule, files())))


def fitting(drive: Drive, rules: list[Rule], found: Mapping[str, str] | None = None) -> list[Rule]:
    """Return those of some rules that are for a drive. @found: its properties of udev, if they are
    known; without udev no rule is for it."""
    if rules and found is None:
        try:
            found = udev.properties(drive)
        except CtlError:
            return []
    return [rule for rule in rules if rule.fits(drive, found)]


def of(drive: Drive, found: Mapping[str, str] | None = None) -> list[Rule | by_kind.KindRule]:
    """Return the rules of a drive; the last one decides. @found: its properties of udev, if they
    are known."""
    return [*by_kind.of(drive, kinds_path(), found), *fitting(drive, every(), found)]


def choices(drive: Drive) -> list[Choice]:
    """Return what rules select when a drive appears."""
    return [rule.choice for rule in of(drive)]


def remove(path: pathlib.Path):
    """Remove a file of rules."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CtlError(f"{path} cannot be removed: {error.strerror}") from None


def text_in(path: pathlib.Path) -> str | None:
    """Return what a file of rules has, None if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CtlError(f"{path} cannot be read: {error.strerror}") from None


def lost(path: pathlib.Path, ours: str | None) -> list[str]:
    """Return what to say of the lines that are lost of a file of rules when it is written anew.
    @ours: what ssdctl had written there, None if it did not write the file."""
    text = text_in(path)
    if text is None:
        return []
    if ours is None:
        return [f"{path}, which ssdctl did not write, is replaced; it had: {line}"
                for line in text.splitlines() or ["nothing"]]
    kept = meant(ours)
    found = [f"{path} was edited by hand; this line is lost: {line}"
             for line in meant(text) if line not in kept]
    if meant(text) != kept and not found:
        found = [f"{path} was edited by hand: what was removed from it is there again"]
    return found


@contextlib.contextmanager
def installed(rule: Rule, drive: Drive, instead: list[Rule]):
    """Write a rule and verify it, and remove those that it stands for, @instead; an error, of the
    body too, leaves what was there before."""
    with written(rule.path, rule.text(), [each.path for each in instead]):
        verify(drive, rule)
        yield


def verify(drive: Drive, rule: Rule | by_kind.KindRule):
    """Raise CtlError unless udev says that a rule that is written selects its choice."""
    wrong = udev.problem(str(rule.path)) or untrue(rule, udev.test(drive))
    if wrong:
        raise CtlError(f"{drive.path} does not keep {rule.choice}: {wrong}")


@contextlib.contextmanager
def written(path: pathlib.Path, text: str, gone: list[pathlib.Path]):
    """Write a file of rules and remove those that are @gone; an error in the body leaves what was
    there before."""
    former = {each: text_in(each) for each in (path, *gone)}
    try:
        write_ours(path, text)
        for each in gone:
            remove(each)
        yield
    except BaseException:
        for each, before in former.items():
            if before is None:
                remove(each)
            else:
                write_ours(each, before)
        udev.reload()
        raise


def untrue(rule: Rule | by_kind.KindRule, said: list[str]) -> str:
    """Return what is wrong with a rule by the lines of udevadm test, "" if nothing."""
    for line in said:
        _, found, told = line.partition(rule.path.name)
        # That the hardware database has no entry for a model is no fault.
        if (found and "builtin 'hwdb" not in told and
                re.search("invalid|ignoring|unknown|failed", told, re.IGNORECASE)):
            return f"udevadm test says: {line.strip()}"
    wanted = {"scheduler": rule.choice.scheduler, **rule.choice.settings()}
    return next(filter(None, (unmade(rule, file, value, said)
                              for file, value in wanted.items())), "")


def unmade(rule: Rule | by_kind.KindRule, file: str, value: str, said: list[str]) -> str:
    """Return why a rule does not set a file below queue/ to a value, by the lines of udevadm test,
    "" if it does."""
    setting = re.compile(rf"(\S+\.rules:\d+).*queue/{re.escape(file)}\b")
    quoted = re.compile(rf"['\"]{re.escape(value)}['\"]")
    made = [(found[1], line) for line in said
            if (found := setting.search(line)) and "==" not in line]
    right = [number for number, (place, line) in enumerate(made)
             if rule.path.name in place and quoted.search(line)]
    if not right:
        return f"udevadm test does not set {file} to {value}"
    # A drive's own rule of ours wins over one for its model.
    others = [place for place, line in made[right[-1] + 1:]
              if PREFIX not in place and not quoted.search(line)]
    return f"{others[0]} sets {file} to another value afterwards: remove it there" if others else ""
