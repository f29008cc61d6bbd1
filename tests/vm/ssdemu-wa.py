#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
# Write amplification of uniform random writes under greedy cleaning, against the
# published analytic estimate, within 5 %, at two spare factors.
# virtual-time: yes
# kernels: 6.12
# timeout: 900
"""Estimate: the mean-field model of Van Houdt, A Mean Field Model for a Class of
Garbage Collection Algorithms in Flash-based Solid State Drives (SIGMETRICS 2013),
for the greedy choice. T full blocks of b pages hold U blocks' worth of data. Each
valid page is overwritten at the same rate, so the blocks that have i valid pages
are c / i for every i above a level m, and those at the level m are the victims,
with those that fall below it. That all blocks are T and all valid pages U * b
gives c, m and what remains at m; a victim's valid pages j give b / (b - j). For
large b this is the closed form of Desnoyers (Analytic Modeling of SSD Write
Performance, SYSTOR 2012). Blocks that are kept free hold nothing: not in T.
"""

from checks import check, near
from ssd import Device

BLOCKS = 256
PAGES = 64
FREE = 2


def greedy(total, user, pages):
    """Write amplification for so many blocks, blocks' worth of data, pages a block."""
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
