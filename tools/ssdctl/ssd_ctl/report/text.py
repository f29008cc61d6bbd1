# SPDX-License-Identifier: GPL-2.0
"""A report as text for eyes: sections of lines NAME: TEXT; a text of several lines is indented."""
from ssd_common.output import plain

HEAD = ("Report of ssdctl {version}, {date}. {names}",
        "Look through it before you send it: a log or a rule may have names that are not known.")
WITHOUT = ("What identifies the machine, its drives and its users is replaced, as by <serial-1>; "
           "the same mark means the same name.")
SOME = ("Some names could NOT be found, so they are NOT replaced: see below what is missing. "
        "Others are, as by <serial-1>.")
WITH = "It has names and serial numbers (--with-names)."


def fact(name: str, text: str) -> list[str]:
    """Return the lines of a fact."""
    lines = [plain(line.replace("\t", "    ")) for line in text.splitlines()] or [""]
    return [f"{plain(name)}: {lines[0]}"] if len(lines) == 1 else [
        f"{plain(name)}:", *(f"    {line}".rstrip() for line in lines)]


def text(report: dict) -> str:
    """Return a report."""
    names = WITH if report["names"] else SOME if report["names_unknown"] else WITHOUT
    lines = [line.format(**{**report, "names": names}) for line in HEAD]
    if report["lacking"]:
        lines += ["", "== missing in it", *(plain(line) for line in report["lacking"])]
    for section in report["sections"]:
        lines += ["", f"== {plain(section['title'])}"]
        for name, value in section["facts"].items():
            lines += fact(name, value)
    return "\n".join(lines) + "\n"
