# SPDX-License-Identifier: GPL-2.0
"""Read a job file by fio's rules, as far as its options are allowed.

What is read is written anew for fio, from names in the table and values that fit it. So it does not
matter where fio reads a line otherwise: fio never gets the line."""
import dataclasses
import os
import re

from ssd_ctl import CtlError
from ssd_ctl.advice import options

PARTS = ("size", "offset", "offset_increment")
PERCENT = re.compile(rf"({options.DECIMAL})%", re.ASCII)
WEIGHT = re.compile(rf"[#;]\s*weight\s*=\s*({options.DECIMAL})\s*", re.ASCII)
VARIABLE = re.compile(r"\$\{([^}]+)\}")
# Larger files are no job files.
LARGEST = 1 << 20


@dataclasses.dataclass
class Section:
    """A job: its name, its options without the global ones, in order, and what it is worth."""
    name: str
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    weight: float = 1.0

    def shared(self) -> bool:
        """Return true if fio takes its options as those of all later jobs."""
        return self.name.startswith("global")


def keywords() -> dict[str, int]:
    """Return the words that fio replaces by what the machine has."""
    page = os.sysconf("SC_PAGE_SIZE")
    return {"$mb_memory": os.sysconf("SC_PHYS_PAGES") * page >> 20,
            "$ncpus": os.sysconf("SC_NPROCESSORS_ONLN"), "$pagesize": page}


def replaced(line: str) -> str:
    """Return a line with the variables of the environment and fio's keywords replaced."""
    line = VARIABLE.sub(lambda found: os.environ.get(found[1], ""), line)
    for word, number in keywords().items():
        line = line.replace(word, str(number))
    return line


def uncommented(line: str) -> str:
    """Return a line without comment and blanks around it."""
    return re.split("[;#]", line)[0].strip()


def shown(text: str) -> str:
    """Return the beginning of a text for a message."""
    return "".join(each if each.isprintable() else "?" for each in text[:80])


def take(section: Section, line: str):
    """Add the option of a line to a section. Of two values of an option the last one counts. Sizes
    and offsets that are not in percent fit only the user's own file, and are ignored."""
    name, equals, value = (part.strip() for part in replaced(line).partition("="))
    name = options.ALIASES.get(name, name)
    said = f"{shown(name + equals + value)} in [{section.name}]"
    if options.off(name, value):
        return
    reason = options.refusal(name, value)
    if reason:
        raise CtlError(f"{said}: {reason}: leave it out")
    kind = options.ALLOWED.get(name)
    if not kind:
        return
    if not kind.fits(value):
        raise CtlError(f"{said}: write {kind.what}")
    section.options.pop(name, None)
    if name not in PARTS or PERCENT.fullmatch(value):
        section.options[name] = value


def section_of(line: str) -> Section:
    """Return the section that a line begins."""
    name = line[1:-1]
    if not line.endswith("]") or not name or not name.isprintable():
        raise CtlError(f"{shown(line)} is no section: write [name]")
    return Section(name)


def sections_of(text: str, where: str) -> list[Section]:
    """Return the sections of a job file. @where: its name."""
    if "\0" in text:
        raise CtlError(f"{where} is no text: is this a job file?")
    found: list[Section] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line, weight = uncommented(raw), WEIGHT.fullmatch(raw.strip())
        try:
            if weight and found:
                found[-1].weight = float(weight[1])
            elif line.startswith("["):
                found.append(section_of(line))
            elif line.startswith("include"):
                raise CtlError("include is not supported: insert the file")
            elif line and not found:
                raise CtlError(f"{shown(line)} is in no section: is this a job file?")
            elif line:
                take(found[-1], line)
        except CtlError as error:
            raise CtlError(f"{where}:{number}: {error}") from None
    return found


def text_of(path: str | os.PathLike) -> str:
    """Return the text of a job file. In comments, bytes may mean anything."""
    with open(path, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise CtlError(f"{path} is no job file: it is larger than 1 MiB")
    return content.decode(errors="replace")
