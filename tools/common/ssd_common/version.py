# SPDX-License-Identifier: GPL-2.0
"""The project's version, which debian/changelog states. `make install-tools` replaces this file by
one with the version in it."""
import pathlib
import re

CHANGELOG = pathlib.Path(__file__).resolve().parents[3] / "debian/changelog"


def of_checkout() -> str:
    """Return the version in the first line of the changelog."""
    try:
        with CHANGELOG.open(encoding="utf-8") as file:
            found = re.match(r"ssd-iosched \(([^)]+)\)", file.readline())
    except OSError:
        found = None
    return found[1] if found else "unknown"


VERSION = of_checkout()
