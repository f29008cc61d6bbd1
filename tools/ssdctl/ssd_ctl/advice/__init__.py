# SPDX-License-Identifier: GPL-2.0
"""What ssdctl advise does: which schedulers are measured, where, with which load, for how long, and
what follows."""
