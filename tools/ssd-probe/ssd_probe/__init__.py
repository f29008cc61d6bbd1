# SPDX-License-Identifier: GPL-2.0
"""ssd-probe: find out what is inside an SSD by the times that its I/O takes."""


class ProbeError(Exception):
    """An error that is reported to the user in one line."""


class DriveFailed(ProbeError):
    """The drive failed an I/O, disappeared, or does not answer."""
