#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Pages for developers name functions, files and pages that exist
# timeout: 60
# quick: host
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
PROJECT = TESTS.parent
sys.path.insert(0, str(TESTS / "lib"))

from checks import check  # noqa: E402  (in a folder added above)

# Functions of ours that the pages name; those of the kernel are checked by no source here.
OURS = ("papers.md", "architecture.md", "contributing.md")
FUNCTION = re.compile(r"`(\w+)\(\)`")
PATH = re.compile(r"`((?:include|tests|scripts|tools|Documentation)/[\w./-]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)


def words(*patterns):
    """Return all words of the project's files of these patterns."""
    return {word for pattern in patterns for path in PROJECT.glob(pattern)
            for word in re.findall(r"\w+", path.read_text(errors="replace"))}


def anchor(heading):
    """Return the anchor that a heading of Markdown has."""
    text = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
    return text.replace(" ", "-")


def broken(page):
    """Return the links of a page to files and headings that do not exist."""
    made = []
    for link in LINK.findall(page.read_text()):
        name, _, part = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or part and part not in map(
                anchor, HEADING.findall(target.read_text())):
            made.append(link)
    return made


def main():
    known = words("*.c", "include/**/*.h", "tests/**/*.[ch]", "tests/**/*.py")
    for name in OURS:
        page = PROJECT / "Documentation" / name
        text = page.read_text()
        unknown = {found for found in FUNCTION.findall(text) if found not in known}
        check(not unknown, f"{name}: {len(FUNCTION.findall(text))} functions: "
              f"{' '.join(sorted(unknown))}")
        missing = {found for found in PATH.findall(text)
                   if "NAME" not in found and not (PROJECT / found).exists()}
        check(not missing, f"{name}: {len(PATH.findall(text))} files: "
              f"{' '.join(sorted(missing))}")
    for page in (PROJECT / "README.md", *sorted(PROJECT.glob("Documentation/*.md"))):
        wrong = broken(page)
        check(not wrong, f"{page.name}: links: {' '.join(wrong)}")


if __name__ == "__main__":
    main()
