# SPDX-License-Identifier: GPL-2.0
"""ssdctl: show, measure, select and keep the I/O schedulers of drives."""
import pathlib

# Advice and saved settings.
STATE = pathlib.Path("/var/lib/ssd-iosched")


class CtlError(Exception):
    """An error that is reported to the user in one line."""


class UsageError(CtlError):
    """What the user typed in cannot be meant."""
