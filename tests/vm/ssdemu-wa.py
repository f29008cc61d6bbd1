#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Write amplification of uniform random writes with greedy garbage collection is within 5 % of
# the published analytic estimate, at two spare factors
# virtual-time: yes
# kernels: 6.12
# check: none
# timeout: 900
"""Estimate: the mean-field model of Van Houdt, A Mean Field Model for a Class of
Garbage Collection Algorithms in Flash-based Solid State Drives (SIGMETRICS 2013),
for the greedy choice. T full blocks of b pages hold the data of U blocks. All valid
pages are overwritten at the same rate. So c / i blocks have i valid pages, for
every i above a level m; blocks at or below level m are the victims. The sums over
all blocks, T, and over all valid pages, U * b, determine c, m and the number of
blocks at m. Victims with j valid pages have a write amplification of b / (b - j).
For large b this is the closed form of Desnoyers (Analytic Modeling of SSD Write
Performance, SYSTOR 2012). T does not include blocks that are kept free.
"""

from checks import check, near
from ssd import Device

BLOCKS = 256
PAGES = 64
FREE = 2


def greedy(total, user, pages):
    """Write amplification; @total, @user: T and U in blocks; @pages: pages per block."""
    for level in range(pages - 1, 0, -1):
        above = sum(1 / i for i in range(level + 1, pages + 1))
        c = (user * pages - level * total) / (pages - level - level * above)
        rest = total - c * above
        if c > 0 and 0 <= rest <= c / level:
            return pages / (pages - level + level * rest / c)
    raise ValueError("no such drive")


for spare in (10, 28):
    with Device("small", channels=1, chips=1, pages=PAGES, page_size=4096, blocks=BLOCKS,
                capacity_mb=0, spare=spare, gc_free_blocks=FREE, fill=100, read_ns=1000,
                program_ns=2000, erase_ns=1000, channel_mbps=100000) as dev:
        pages = dev.stats()["planes"][0]["valid_pages"]
        check(pages == BLOCKS * PAGES * (100 - spare) // 100, f"all {pages} pages are mapped")
        counted, _ = dev.steady(6 * pages, 3 * pages, rw="randwrite", iodepth=16)
        measured = 1 + counted["flash_copies"] / counted["flash_programs"]
        near(1000 * measured, 1000 * greedy(BLOCKS - FREE, pages / PAGES, PAGES), 5,
             f"write amplification x 1000 with {spare} % spare")
