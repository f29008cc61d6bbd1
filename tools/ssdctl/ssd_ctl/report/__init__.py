# SPDX-License-Identifier: GPL-2.0
"""What ssdctl report writes: facts about the machine and its drives, without names unless asked.

A report is a list of sections. A section has a title, and facts: {name: text}. What cannot be read
is a fact too, in parentheses. All of it is read by children of the program (bounded.py), and what
names a drive, the machine or its users is replaced at the end (redact.py).
"""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Section:
    """A part of a report. @lacking: what is missing in it, and why, one text each."""
    title: str
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    lacking: list[str] = dataclasses.field(default_factory=list)
