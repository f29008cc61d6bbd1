# SPDX-License-Identifier: GPL-2.0
"""Read a command line of fio, as reports and articles have it: with the word fio and what is before
it, or without; over several lines; with what a word processor makes of its dashes and quotes."""
import re
import shlex

from ssd_ctl import CtlError
from ssd_ctl.advice import options
from ssd_ctl.advice.job_file import Section, section_of, shown, take

OPTION = "--fio"
# The name that fio gives a job without one.
UNNAMED = "fio"
# A backslash at the end of a line continues it, also where the lines were joined, as do the signs
# of Windows' shells.
CONTINUED = re.compile(r"[\\^`][ \t\r]*\n|(?<=\s)\\(?=\s)")
# What is before options where a shell waits for more of a command, or an answer quotes it.
QUOTED = re.compile(r"^[ \t]*(?:>[ \t]*)+(?=--?[A-Za-z]|[\u2013\u2014]|(?:\S*/)?(?:fio|sudo)\s)",
                    re.MULTILINE)
# Marks of code around a command, or around a part of it.
CODE = re.compile(r"^[ \t]*```\w*[ \t\r]*$|`", re.MULTILINE)
AROUND = re.compile(r"\s*(?:\(([^()]*)\)|\"([^\"]*)\"|'([^']*)')\s*")
# The first line that fio prints of a job; what follows is its output, too.
PRINTED = re.compile(r"\n[^\n]*: \(g=\d+\): rw=.*", re.DOTALL)
# Where a shell ends a command, also without spaces.
GLUED = re.compile(r"[;|]|&&")
PROGRAM = re.compile(r"(?:.*/)?fio(?:-\d[\w.]*)?(?:\.exe)?", re.DOTALL)
TYPESET = str.maketrans({"\xa0": " ", "\u201c": '"', "\u201d": '"', "\u201e": '"',
                         "\u2018": "'", "\u2019": "'"})
DASHES = re.compile("^(--|-|\u2013-?|\u2014)(?=[A-Za-z])")
# Where a shell ends a command, or writes its output elsewhere, or a comment begins.
SHELL = re.compile(r"\||\|\||&|&&|;|\d?>.*|\|&|#.*")
# fio's own options, which are not those of a job: those that are dropped, with and without a value.
VALUED = set("output latency-log output-format eta eta-interval eta-newline debug inflate-log "
             "alloc-size max-jobs terse-version status-interval idle-prof aux-path".split())
PLAIN = {"bandwidth-log", "minimal", "readonly", "warnings-fatal", "parse-only", "append-terse"}
# Options that would make a job something else than what is measured.
REFUSED = dict.fromkeys("server client remote-config daemonize".split(), "it runs elsewhere") | {
    "profile": options.REFUSED["profile"], "merge-blktrace-only": "it replays a trace",
    "section": "use a job file with the sections that are meant", **dict.fromkeys(
        "trigger trigger-file trigger-timeout trigger-remote".split(), "it runs a program")}


def words_of(text: str) -> list[str]:
    """Return the words after the word fio, if there is one, up to where a shell ends the
    command."""
    try:
        words = shlex.split(GLUED.sub(r" \g<0> ", bare(text)))
    except ValueError as error:
        raise CtlError(f"{OPTION}: {error}") from None
    starts = [number for number, word in enumerate(words)
              if PROGRAM.fullmatch(word) and not word.startswith("-")]
    # A value may be the word, as in --name fio.
    starts = [number for number in starts
              if not number or not DASHES.match(words[number - 1]) or
              DASHES.sub("", words[number - 1], 1) not in VALUED | options.DROPPED]
    # In the image of a container that has its name.
    starts = [number for number in starts if number + 1 not in starts]
    if len(starts) > 1:
        raise CtlError(f"{OPTION}: there are several commands: give one")
    words = words[starts[0] + 1 if starts else 0:]
    ends = [number for number, word in enumerate(words) if SHELL.fullmatch(word)]
    return words[:ends[0]] if ends and ends[0] else words


def bare(text: str) -> str:
    """Return a command line without what is around it in a report."""
    text = PRINTED.sub("", CONTINUED.sub(" ", QUOTED.sub("", text.translate(TYPESET))))
    text = CODE.sub("", text)
    around = AROUND.fullmatch(text)
    return next(filter(None, around.groups()), "") if around else text


def pairs_of(words: list[str]) -> list[tuple[str, str | None]]:
    """Return the options of a command line with their values; None of those that have none."""
    found, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            continue
        if not DASHES.match(word):
            raise CtlError(f"{OPTION}: {shown(word)} is no option of fio (a job file is given with "
                           "--workload)")
        name, equals, value = DASHES.sub("", word, 1).partition("=")
        if name in REFUSED:
            raise CtlError(f"{OPTION}: {shown(word)}: {REFUSED[name]}")
        if equals:
            found.append((name, value))
        elif name in PLAIN or options.ALIASES.get(name, name) in options.FLAGS:
            found.append((name, None))
        else:
            found.append((name, rest.pop(0) if rest and not DASHES.match(rest[0]) else ""))
    return found


def sections_of(text: str) -> list[Section]:
    """Return the sections of a command line: what is before the first name is of all jobs."""
    found = [Section("global")]
    for name, value in pairs_of(words_of(text)):
        try:
            if name == "name":
                found.append(section_of(value or "", f"--name={value}"))
            elif name not in VALUED | PLAIN:
                take(found[-1], name if value is None else f"{name}={value}")
        except CtlError as error:
            raise CtlError(f"{OPTION}: {error}") from None
    if all(section.shared() for section in found):
        found.append(Section(UNNAMED))
    return found
