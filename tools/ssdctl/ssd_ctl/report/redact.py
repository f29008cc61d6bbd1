# SPDX-License-Identifier: GPL-2.0
"""Replace what identifies a machine, its drives and its users in texts: values that are known, in
whatever way they are written, and what by its form may be one of a drive that has gone."""
import re
from collections.abc import Iterable, Iterator

from ssd_ctl.report.names import LABEL, SERIAL, Names, forms, usual

Span = tuple[int, int, str]
# Letters and digits of a serial number: so many are found whatever is between them, and so many
# are found as a word. Shorter ones, and numbers of few digits, would be found everywhere.
ANYWHERE, WORD, DIGITS = 6, 4, 5
SHORTEST = 2
GAP = re.compile(r"\\x[0-9a-fA-F]{2}|\\[0-7]{3}|[^A-Za-z0-9\n]")
TOKEN = re.compile(r"[A-Za-z0-9]+")
LOWER = {ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
# Labels that installers give.
USUAL_LABELS = {"boot", "root", "rootfs", "home", "data", "swap", "efi", "esp", "primary", "system",
                "efi system partition", "linux filesystem", "linux swap", "bios boot partition",
                "basic data partition", "microsoft basic data", "microsoft reserved partition",
                "efi system", "bios", "var", "tmp", "usr", "logical", "extended", "empty"}
# What is repeated in a form is limited, or can begin at one place only: the time that a long line
# takes must not grow with the square of its length.
KEYS = (r"\b(?:ID_\w{0,32}?)?(?:serial(?:[ _-]?(?:number|num|no|nr|short))?|s/n|wwn|wwid|"
        r"eui|nguid|uuid|partuuid|guid|cid|(?:part)?label|host ?name|username|nqn|password|"
        r"passphrase|passwd|secret|token|psk|api_?key)[A-Z_]{0,32}[\]}\"']{0,8}\s{0,32}")
# pass is also a scheduler, and user a word.
SHORT_KEYS = r"\b(?:user|pass)="
QUOTED = r"\"[^\"\n]{0,512}\"|'[^'\n]{0,512}'|<[^>\n]{0,512}>"
HEX4, BYTE = "[0-9a-fA-F]{1,4}", r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
NAME = r"[^\s\"',;:)\]]+"
# {kind: what it looks like}; a group of it is the name, if there is one.
FORMS = {
    "value": rf"{KEYS}(?:(?:[=!+:]?=|\#)+\s*({QUOTED}|[^\s,;]+)|"
              rf"(?::|is|set to)\s+({QUOTED}|[^\n,;]+))|{SHORT_KEYS}({QUOTED}|[^\s,;]+)|"
              rf"\b(?:nfs|cifs)root=({QUOTED}|[^\s,;]+)",
    "label": r"\bBTRFS:? device label (.+?)(?= devid \d|\n|$)",
    # The kernel escapes a backslash in its log.
    "host": rf"\b(?:nfs\d?|lockd): server ({NAME})|(?<![\w\\])(?:(?:\\x5c|\\){{2}}){{1,2}}"
            rf"(?!x[0-9a-f]{{2}})(\w{NAME})|(?<![\w:/\\])//(\w{NAME})",
    "name": rf"/dev/(?:disk/by-[a-z-]+|mapper|md|zvol)/({NAME})|"
            r"dev-(?:disk|mapper)(\S+?)(?=\.(?:device|swap|mount)|\s|$)",
    "folder": rf"(?<![\w.-])/(?:home|root|media|mnt|srv|run/media|run/user|Users|Volumes)/({NAME})",
    "uuid": r"(?<![0-9a-f])[0-9a-f]{8}(?:(?:-|\\x2d)[0-9a-f]{4}){3}(?:-|\\x2d)[0-9a-f]{12}"
            r"(?![0-9a-f])",
    "nqn": rf"\b(?:nqn|iqn|eui|naa|t10)\.({NAME}(?::{NAME})*)",
    "wwn": r"\b(?:wwn-)?0x[0-9a-f]{16}(?:[0-9a-f]{16})?\b",
    "address": r"(?<![0-9a-f:])(?:[0-9a-f]{2}[:-]){5,7}[0-9a-f]{2}(?![0-9a-f:])|"
               rf"(?<![\d.])(?:{BYTE}\.){{3}}{BYTE}(?![\d.])|"
               rf"(?<![\w:])(?:{HEX4}:){{7}}{HEX4}(?![\w:])|"
               rf"(?<![\w:])(?:{HEX4}:){{1,6}}:(?:{HEX4}(?::{HEX4})*)?(?![\w:])|"
               r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*",
    "number": r"(?-i:(?<![A-Za-z0-9])(?=[A-Z0-9]*[A-Z])(?=(?:[A-Z]*\d){4})[A-Z0-9]{12,}"
              r"(?![A-Za-z0-9]))|(?<![a-z0-9])(?=[0-9a-f]*\d)(?=[0-9]*[a-f])[0-9a-f]{20,}(?![a-z0-9])"}
PATTERNS = {kind: re.compile(form, re.I) for kind, form in FORMS.items()}


def tokens(texts: Iterable[str]) -> set[str]:
    """Return the texts and their words, in lower case."""
    return {word.lower() for text in texts for word in (text, *text.split(), *TOKEN.findall(text))}


def squeezed(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text in lower case, and the place of each. Lines stay
    apart."""
    kept, places, at = [], [], 0
    for found in [*GAP.finditer(text), None]:
        end = found.start() if found else len(text)
        kept.append(text[at:end])
        places += range(at, end)
        at = found.end() if found else end
    return "".join(kept).translate(LOWER), places


def places_of(value: str, text: str) -> Iterator[int]:
    """Yield where a value is in a text."""
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)


def is_part(text: str, at: int) -> bool:
    """Return true if there is a letter or a digit at a place."""
    return 0 <= at < len(text) and text[at].isalnum()


class Redactor:
    """Returns a text without names when it is called. @names: what is known; @common: names, in
    lower case, that identify nothing here, as that of the distribution; @shown: words that look
    like a name and are none, as models."""

    def __init__(self, names: Names, common: set[str] = frozenset(), shown: set[str] = frozenset()):
        self.shown = shown
        # {what is looked for: its mark}, as words, and among letters and digits.
        self.words: dict[str, str] = {}
        self.anywhere: dict[str, str] = {}
        counts: dict[str, int] = {}
        for kind, value in names:
            lower = value.strip().translate(LOWER)
            if kind != SERIAL and lower in common or kind == LABEL and lower in USUAL_LABELS:
                continue
            found = [place for form in forms(kind, value) if (place := self.place(kind, form))]
            mark = next((known[key] for known, key in found if key in known), "")
            if found and not mark:
                counts[kind] = counts.get(kind, 0) + 1
                mark = f"<{kind}-{counts[kind]}>"
            for known, key in found:
                known.setdefault(key, mark)

    def place(self, kind: str, form: str) -> tuple[dict[str, str], str] | None:
        """Return where a form of a name is noted, and as what; None if it is too short."""
        lower = form.translate(LOWER)
        if usual(lower) or len(form) < SHORTEST:
            return None
        if kind != SERIAL or not form.isascii():
            return self.words, lower
        letters = GAP.sub("", lower).replace("\n", "")
        if letters.isdigit():
            return (self.words, lower) if len(letters) >= DIGITS else None
        if len(letters) >= ANYWHERE:
            return self.anywhere, letters
        return (self.words, lower) if len(letters) >= WORD else None

    def __call__(self, text: str) -> str:
        made, at = [], 0
        for start, end, mark in merged(list(self.known(text)), list(self.by_form(text))):
            made += [text[at:start], mark]
            at = end
        return "".join([*made, text[at:]])

    def known(self, text: str) -> Iterator[Span]:
        """Yield where values that are known are."""
        lower = text.translate(LOWER)
        for value, mark in self.words.items():
            for at in places_of(value, lower):
                end = at + len(value)
                if not (is_part(value, 0) and is_part(lower, at - 1) or
                        is_part(value, len(value) - 1) and is_part(lower, end)):
                    yield at, end, mark
        letters, places = squeezed(text)
        for value, mark in self.anywhere.items():
            for at in places_of(value, letters):
                yield places[at], places[at + len(value) - 1] + 1, mark

    def by_form(self, text: str) -> Iterator[Span]:
        """Yield what looks like a name."""
        for kind, pattern in PATTERNS.items():
            for found in pattern.finditer(text):
                start, end = found.span(found.lastindex or 0)
                if text[start:end].strip("\"'<> ").lower() not in self.shown:
                    yield start, end, f"<{kind}>"


def merged(known: list[Span], by_form: list[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one: with the mark of the longest that is
    known, or of the longest."""
    found: list[tuple[int, int, tuple[bool, int, str]]] = []
    ranked = [(start, end, (sure, end - start, mark)) for sure, spans in (
        (True, known), (False, by_form)) for start, end, mark in spans]
    for start, end, rank in sorted(ranked):
        if found and start < found[-1][1]:
            first, last, former = found[-1]
            found[-1] = (first, max(last, end), max(former, rank))
        else:
            found.append((start, end, rank))
    return [(start, end, rank[2]) for start, end, rank in found]


def walked(value, redact: Redactor):
    """Return a value of JSON's types without names, in keys too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [walked(each, redact) for each in value]
    if isinstance(value, dict):
        return {redact(key): walked(each, redact) for key, each in value.items()}
    return value
