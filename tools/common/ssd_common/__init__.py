# SPDX-License-Identifier: GPL-2.0
"""What ssdctl, ssd-probe and trace-to-fio share."""


class ToolError(Exception):
    """An error that is reported to the user in one line."""


class DriveFailed(ToolError):
    """The drive failed an I/O, disappeared, or does not answer."""
