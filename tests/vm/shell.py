# SPDX-License-Identifier: GPL-2.0
"""Imported by the tests that use lib.sh's functions from Python."""

import subprocess
import sys


def guest(script):
    """Run a piece of shell with the tests' functions."""
    subprocess.run(["bash", "-c", f". tests/vm/lib.sh\n{script}"], check=True)


def fail(message):
    """End the test."""
    sys.exit(f"fail: {message}")
