# SPDX-License-Identifier: GPL-2.0
"""What tests of programs share on this machine: the Python modules that they need, and man
pages."""
import shutil
import subprocess
import sys

from checks import check

SKIP = 4


def need(*modules):
    """Skip the test unless Python has these modules. They are not imported here."""
    for name in modules:
        if subprocess.run([sys.executable, "-c", f"import {name}"], check=False,
                          capture_output=True).returncode:
            print(f"python3-{name} is missing: scripts/setup tools")
            sys.exit(SKIP)


def man_page_is_clean(page):
    """Check that man, if it is there, has nothing to say about a page."""
    if shutil.which("man"):
        said = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                              capture_output=True, text=True, check=False).stderr
        check(not said, f"man does not complain {said}")
