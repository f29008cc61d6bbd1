#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The man page and the completions of ssdctl know every command and option, and bash completes them

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = PROJECT / "tools/ssdctl"
sys.path[:0] = [str(PROJECT / "tests/lib"), str(TOOL), str(PROJECT / "tools/ssd-probe")]

from checks import check, run  # noqa: E402  (in a folder added above)
from ssd_ctl import command  # noqa: E402

PAGE, BASH, ZSH = (TOOL / name for name in
                   ("ssdctl.8", "completion/ssdctl.bash", "completion/_ssdctl"))
# Call the completion of the words that are given; the last one is being typed.
COMPLETE = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ssdctl; '
            'printf "%s\\n" "${COMPREPLY[@]}"')


def options_of(name):
    """The long options of a command."""
    parser = argparse.ArgumentParser(add_help=False)
    command.module_of(name).add_options(parser)
    return {word for action in parser._actions for word in action.option_strings
            if word.startswith("--")}


def part(text, name, start, end):
    """The part of a text that is about a command."""
    found = re.search(rf"{start.format(re.escape(name))}.*?(?={end})", text, re.S | re.M)
    check(found, f"{name} is there")
    return found[0]


def all_named():
    """Each file names all options of each command."""
    page = PAGE.read_text().replace("\\-", "-")
    bash, zsh = BASH.read_text(), ZSH.read_text()
    for name in command.COMMANDS:
        for option in sorted(options_of(name)):
            places = {PAGE: part(page, name, r"^\.SS {}$", r"^\.S[SH]"),
                      BASH: part(bash, name, r"^\t{}\) options", ";;"),
                      ZSH: part(zsh, name, r"^\t{}\)$", ";;")}
            lacks = [path.name for path, text in places.items() if option not in text]
            check(not lacks, f"{name} {option} {lacks or ''}")


def completed(*words):
    """What bash completes."""
    return run("bash", "-c", COMPLETE, "-", str(BASH), "ssdctl", *words).split()


def completes():
    """Words in their places are completed."""
    for words, meant in ((("re",), ["revert"]), (("apply", "x", "p"), ["pass", "piq", "pai"]),
                         (("persist", "--b"), ["--by-model"]), (("hwdb", "o"), ["on", "off"]),
                         (("persist", "--by-model", "x", "bp", "nr_"), ["nr_requests="]),
                         (("apply", "x", "bp", "depth", "=", "1"), [])):
        check(completed(*words) == meant, f"{' '.join(words)}: {completed(*words)}")


def main():
    all_named()
    completes()
    if not shutil.which("man"):
        return
    said = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", PAGE],
                          capture_output=True, text=True, check=False).stderr
    check(not said, f"man does not complain {said}")


if __name__ == "__main__":
    main()
