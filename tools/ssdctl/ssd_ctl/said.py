# SPDX-License-Identifier: GPL-2.0
"""What a command that changes something says: lines for eyes, or an object for programs."""
import argparse
import json


def add_option(parser: argparse.ArgumentParser):
    """Add the option --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


class Said:
    """Prints lines at once, or with @as_json, at the end of the with block, an object of the facts
    and of the lines. If the block ends with an exception, only if there are lines."""

    def __init__(self, as_json: bool, **facts):
        self.as_json, self.facts = as_json, facts
        self.lines: list[str] = []

    def __call__(self, line: str, **facts):
        """Say a line, and what it means as facts."""
        self.facts |= facts
        if self.as_json:
            self.lines.append(line)
        else:
            print(line)

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if self.as_json and (self.lines or not error):
            print(json.dumps({**self.facts, "messages": self.lines}, indent=1))
