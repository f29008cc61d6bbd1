# SPDX-License-Identifier: GPL-2.0
"""ssd-probe: find out what is inside an SSD by the times that its I/O takes."""
