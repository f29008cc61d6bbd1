# SPDX-License-Identifier: GPL-2.0
"""Read a job file by fio's rules, as far as its options are allowed.

What is read is written anew for fio, from names in the table and values that fit it. So it does not
matter where fio reads a line otherwise: fio never gets the line."""
import collections.abc
import dataclasses
import re

from ssd_ctl import CtlError
from ssd_ctl.advice import options
from ssd_ctl.advice.job_text import Folder
from ssd_ctl.advice.values import filled, not_filled

PARTS = ("size", "offset", "offset_increment")
PERCENT = re.compile(rf"({options.DECIMAL})%", re.ASCII)
WEIGHT = re.compile(rf"[#;]\s*weight\s*=\s*({options.DECIMAL})\s*", re.ASCII)
INCLUDE = re.compile(r"include(?:[ \t=]+(.*))?")
# How deep files may include others.
DEEPEST = 16


@dataclasses.dataclass
class Section:
    """A job: its name, its options without the global ones, in order, and what it is worth."""
    name: str
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    weight: float = 1.0

    def shared(self) -> bool:
        """Return true if fio takes its options as those of all later jobs."""
        return self.name.startswith("global")


@dataclasses.dataclass
class Line:
    """A line of a job file, or of one that it includes, with where it is."""
    raw: str
    where: str
    included: bool

    @property
    def text(self) -> str:
        """It without comment and blanks around it."""
        return re.split("[;#]", self.raw)[0].strip()


def shown(text: str) -> str:
    """Return the beginning of a text for a message."""
    return "".join(each if each.isprintable() else "?" for each in text[:80])


def take(section: Section, text: str):
    """Add an option, as in name=value, to a section. Of two values of an option the last one
    counts. Sizes and offsets that are not in percent fit only the user's own file, and are
    ignored."""
    name, equals, value = (part.strip() for part in filled(text).partition("="))
    name, value = options.meant(name, value)
    if options.off(name, value):
        return
    kind, wrong = options.kind_of(name), options.refusal(name, value)
    if wrong:
        wrong += ": leave it out"
    elif kind and not kind.fits(value):
        wrong = f"write {kind.what}"
    if wrong:
        unfilled = not_filled(text)
        said = text.strip() if unfilled else name + equals + value
        raise CtlError(f"{shown(said)} in [{section.name}]: {unfilled or wrong}")
    if kind:
        section.options.pop(name, None)
        if name not in PARTS or PERCENT.fullmatch(value):
            section.options[name] = value


# A line that runs fio.
COMMAND = re.compile(r"(?:^|[\s/])fio\s.*-\w")


def section_of(name: str, text: str) -> Section:
    """Return a section with a name that fio can have. @text: what begins it, for a message."""
    if not name or not name.isprintable():
        raise CtlError(f"{shown(text)} is no section: write [name]")
    return Section(name)


def lines_of(text: str, where: str, folder: Folder | None, path: str = "", depth: int = 0
             ) -> collections.abc.Iterator[Line]:
    """Give the lines of a job file, with those of an included file instead of the line that
    includes it. @where: its name, @path: of an included file, in the @folder."""
    if "\0" in text:
        raise CtlError(f"{where} is no text: is this a job file?")
    for number, raw in enumerate(text.split("\n"), 1):
        line = Line(raw, f"{where}:{number}", depth > 0)
        found = INCLUDE.fullmatch(line.text)
        if not found:
            yield line
            continue
        try:
            if depth == DEEPEST or not folder:
                raise CtlError("files include each other too deep" if folder else
                               "there is no folder to include from: insert the file")
            name = folder.name_of(found[1] or "", path)
            inner = folder.text_of(name)
        except CtlError as error:
            raise CtlError(f"{line.where}: {shown(line.text)}: {error}") from None
        yield from lines_of(inner, shown(name), folder, name, depth + 1)


def sections_of(text: str, where: str, folder: Folder | None = None) -> list[Section]:
    """Return the sections of a job file. @where: its name, @folder: what it may include from."""
    found: list[Section] = []
    for line in lines_of(text, where, folder):
        weight = WEIGHT.fullmatch(line.raw.strip())
        try:
            if weight and found:
                found[-1].weight = float(weight[1])
            elif line.text.startswith("["):
                if line.included:
                    raise CtlError(f"{shown(line.text)}: an included file has no sections")
                found.append(section_of(line.text[1:-1] if line.text.endswith("]") else "",
                                        line.text))
            elif line.text and not found:
                raise CtlError(f"{shown(line.text)} is in no section: " + (
                    "a command line of fio is given with --fio" if COMMAND.search(line.text)
                    else "is this a job file?"))
            elif line.text:
                take(found[-1], line.text)
        except CtlError as error:
            raise CtlError(f"{line.where}: {error}") from None
    return found
