# SPDX-License-Identifier: GPL-2.0
"""What lines of shell write to files of a drive's queue, and which drive the path of such a file
means."""
import dataclasses
import fnmatch
import functools
import itertools
import re
from collections.abc import Iterator

from ssd_ctl.choice import QUEUE
from ssd_ctl.setters import Setter

# In queue/ of a drive; the kernel shows read_ahead_kb in bdi/, too.
FILE = re.compile(r"(?:(?P<where>.*)/)?(?:queue/(?P<file>(?:iosched/)?\w+)|bdi/(?P<bdi>\w+))")
# The name alone, after cd or with a folder in a variable.
NAME = re.compile(r"(?:(?P<where>.*)/)?(?P<file>scheduler|" + "|".join(QUEUE) + ")")
WRITE = re.compile(r"(?:(?:\becho|\bprintf)\s+(?:-\w+\s+)*(?P<value>[^\s;|&<>()]+)\s*"
                   r"(?:>|\|\s*(?:sudo\s+)?tee\b)|>|\btee\b)\s*(?:-a\s+)?(?P<path>[^\s;|&<>()]+)")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# A function may not be called.
CONDITION = re.compile(r"\b(?:if|case|while|until|function)\b|\[ |&&|\|\||\w\s*\(\)")
EXIT = re.compile(r"\bexit\b")
UNKNOWN = re.compile(r"[$%`{}\\]")
QUOTES = str.maketrans("", "", "\"'")
# Values that a variable, or a word with several of them, may have.
MOST = 32


@dataclasses.dataclass
class Names:
    """Names under which a drive and its partitions are in sysfs."""
    drive: str
    number: str
    partitions: list[str]

    @classmethod
    def of(cls, drive):
        """Return the names of a drive."""
        return cls(drive.name, drive.number,
                   sorted(path.parent.name for path in drive.sysfs.glob("*/partition")))

    def meant(self, where: str) -> bool | None:
        """Return true if the folder of queue/ is this drive's, None if that is not known."""
        parent = where.endswith("/..")
        name = where.removesuffix("/..").rpartition("/")[2]
        if not name or UNKNOWN.search(name):
            return None
        names = self.partitions if parent else [self.drive, self.number]
        return any(fnmatch.fnmatchcase(each, name) for each in names)


def target(path: str, names: Names, bare: bool = False) -> tuple[str, bool | None] | None:
    """Return (file below queue/, whether it is this drive's, None: not known) of a path, None if it
    is no such file. @bare: it may be the file's name alone."""
    found = FILE.fullmatch(path) or bare and NAME.fullmatch(path)
    if not found:
        return None
    meant = names.meant(found["where"] or "")
    file = found["file"] or found["bdi"]
    return (file, None if not FILE.fullmatch(path) else meant) if meant is not False else None


def path_setter(path: str, names: Names, place: str, value: str, when: str) -> Iterator[Setter]:
    """Yield what a setting of a path of sysfs sets for a drive. @place, @when: of the setter."""
    found = target(path, names)
    if found:
        clear = bool(value) and not UNKNOWN.search(value)
        yield Setter(place, found[0], value if clear else "", bool(found[1]) and clear, when)


@functools.lru_cache(maxsize=256)
def assigned(name: str, text: str) -> list[str]:
    """Return what a variable may be by assignments and by for loops of the text."""
    found = re.findall(rf"(?:^|[\s;]){name}=([^\s;]+)", text)
    for words in re.findall(rf"\bfor\s+{name}\s+in\s+([^;\n]+)", text):
        found += words.split()
    return found[:MOST]


def expansions(word: str, text: str, known: dict[str, str], depth: int = 3) -> Iterator[str]:
    """Yield what a word of shell may be with the values of its variables: those that are @known,
    and those of the text."""
    found = VARIABLE.search(word) if depth else None
    name = found and (found[1] or found[2])
    made = [known[name]] if name in known else assigned(name, text) if name else []
    if not made:
        yield word
    for value in made:
        yield from expansions(word[:found.start()] + value + word[found.end():], text, known,
                              depth - 1)


def expanded(word: str, text: str, known: dict[str, str]) -> list[str]:
    """Return what a word of shell may be. If there are too many, the word itself stands for the
    rest: what it means is not known."""
    made = list(itertools.islice(expansions(word, text, known), MOST + 1))
    return [*made[:MOST], word] if len(made) > MOST else made


def writes(text: str, names: Names, known: dict[str, str] | None = None) -> Iterator[Setter]:
    """Yield what lines of shell set for a drive; the place is the number of the line. @known:
    variables."""
    text = text.translate(QUOTES)
    if "queue" not in text and "read_ahead_kb" not in text:
        return
    plain = not CONDITION.search(text)
    left = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for found in WRITE.finditer(line):
            left = left or bool(EXIT.search(line, 0, found.start()))
            value = (found["value"] or "").removesuffix("\\n")
            made = [target(path, names, True) for path in
                    expanded(found["path"], text, known or {})]
            for file, meant in sorted(set(filter(None, made)), key=str):
                clear = not UNKNOWN.search(value)
                yield Setter(str(number), file, value if clear else "",
                             bool(meant) and plain and not left and clear and bool(value))
        left = left or bool(EXIT.search(line))
