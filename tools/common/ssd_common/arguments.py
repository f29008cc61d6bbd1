# SPDX-License-Identifier: GPL-2.0
"""How the programs parse their arguments."""
import argparse
import pathlib
import re
import sys

from ssd_common import output

USAGE = 2
JSON = "--json"


def parse_size(text: str) -> int:
    """Return the bytes of a size as in 512M, 1.5G or 4096."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)([KMGT]?)", text, re.ASCII)
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text} is not a size as in 512M or 1.5G")
    return int(float(match[1]) * (1 << 10 * " KMGT".index(match[2] or " ")))


def is_drive(text: str) -> bool:
    """Return true if the user may mean a drive, by its path or by its name."""
    return any(pathlib.Path(path).is_block_device() for path in (text, f"/dev/{text}"))


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage, and knows no abbreviations: --d must not
    come to mean --destroy."""

    def __init__(self, **how):
        super().__init__(allow_abbrev=False, **how)
        # Whether --json takes a file, and what follows it, which may be meant as the file.
        self.files, self.after = False, ""
        # Options whose value may begin with a dash.
        self.verbatim: set[str] = set()

    def add_json_file(self):
        """Add --json, on stdout, and --json=FILE. A word after it would be taken for the file, or
        for the drive, so it has to be one word."""
        self.files = True
        self.add_argument(JSON, nargs="?", metavar="FILE",
                          help="print the report as JSON instead of as text; --json=FILE: write it "
                               "to a file, and print it as text")

    def add_verbatim(self, option: str, **how):
        """Add an option whose value is the next word, whatever that begins with."""
        self.verbatim.add(option)
        self.add_argument(option, **how)

    def joined(self, words: list[str]) -> list[str]:
        """Return words with the value of each verbatim option in the word of the option."""
        made, rest = [], iter(words)
        for word in rest:
            if word == "--":
                return [*made, word, *rest]
            value = next(rest, None) if word in self.verbatim else None
            made.append(word if value is None else f"{word}={value}")
        return made

    def parse(self, words: list[str]) -> argparse.Namespace:
        """Parse the words of the command line."""
        words = self.joined(words)
        if self.files:
            end = words.index("--") if "--" in words else len(words)
            late = [words[number + 1] for number, word in enumerate(words[:end - 1])
                    if word == JSON]
            self.after = next((word for word in late if not word.startswith("-")), "")
            words = [*(f"{JSON}=-" if word == JSON else word for word in words[:end]), *words[end:]]
        args = self.parse_intermixed_args(words)
        if self.after and args.device == self.after and not is_drive(self.after):
            self.error(f"{self.after} is no drive")
        return args

    def format_help(self):
        return super().format_help().replace(f"{JSON} [FILE]", f"{JSON}[=FILE]")

    def error(self, message):
        program = self.prog.partition(" ")[0]
        meant = f"; to write a file: {JSON}={self.after}" if self.after else ""
        output.say(f"{program}: {message}{meant} ({self.prog} --help)")
        sys.exit(USAGE)
