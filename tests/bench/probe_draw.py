# SPDX-License-Identifier: GPL-2.0
"""Random emulated SSDs that the probe is judged on. draw() returns the drive of a seed,
from the distribution that this file states.

{value: weight} is a choice; a range is spread evenly by its logarithm. The values are independent
of each other but for what the emulator refuses, for the size of the drive, which bounds the time
that a probing takes, and for the times of programs, which are longer than those of reads.
"""
import dataclasses
import math
import random

MIB = 1 << 20
# Planes of a drive, at most, and blocks of a plane, at least.
PLANES, BLOCKS = 128, 24
# What runs beside the probe: fio's options. A write on block mapping may cost a merge, which is
# no low load.
READER = ("--rw=randread", "--rate_iops=20")
MIXED = ("--rw=randrw", "--rwmixread=75", "--rate_iops=15,5")


@dataclasses.dataclass(frozen=True)
class Drive:
    """A drive to be probed. @keys: of the emulator, in place of those of the @preset, @beside:
    options of fio for the load beside the probe; none: ()."""
    name: str
    preset: str
    keys: dict[str, int | str]
    beside: tuple[str, ...] = ()


class Dice:
    """Random values of a seed."""

    def __init__(self, seed: int):
        self.random = random.Random(f"ssd-probe {seed}")

    def one_of(self, weights: dict):
        """Return a key of {value: weight}."""
        return self.random.choices(list(weights), list(weights.values()))[0]

    def happens(self, probability: float) -> bool:
        """Return True with a probability."""
        return self.random.random() < probability

    def spread(self, low: float, high: float) -> float:
        """Return a number whose logarithm is evenly spread."""
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def whole(self, low: int, high: int, step: int = 1) -> int:
        """Return such a number, rounded to a multiple of @step."""
        return max(step, round(self.spread(low, high) / step) * step)

    def kib(self, low: int, high: int) -> int:
        """Return a size in KiB: a power of two, a multiple of 4, or one less than that."""
        kind = self.one_of({"power": 40, "multiple": 40, "less": 20})
        if kind == "power":
            return 1 << self.random.randint(math.ceil(math.log2(low)), int(math.log2(high)))
        return self.whole(low, high, 4) - (kind == "less")


def geometry(dice: Dice) -> dict:
    """Return the shape of the flash."""
    while True:
        keys = {"channels": dice.one_of({1: 5, 2: 15, 3: 5, 4: 25, 5: 5, 6: 5, 8: 25, 10: 5,
                                         16: 10}),
                "chips": dice.one_of({1: 30, 2: 30, 3: 10, 4: 25, 8: 5}),
                "dies": dice.one_of({1: 60, 2: 40}), "planes": dice.one_of({1: 50, 2: 40, 4: 10})}
        if math.prod(keys.values()) <= PLANES:
            break
    keys["unit"] = dice.one_of({"chip": 40, "die": 30, "plane": 30})
    keys["page_size"] = dice.one_of({2048: 10, 4096: 45, 8192: 20, 16384: 25})
    keys["pages"] = dice.one_of({32: 10, 64: 25, 96: 10, 128: 25, 192: 10, 256: 20})
    keys["block_size"] = dice.one_of({512: 70, 4096: 30})
    return keys


def times(dice: Dice) -> dict:
    """Return the times of the flash, of its channels, of the firmware, of the interface."""
    read_ns = dice.whole(15_000, 100_000, 100)
    return {"read_ns": read_ns,
            "program_ns": dice.whole(max(150_000, 3 * read_ns), 3_000_000, 1000),
            "erase_ns": dice.whole(1_000_000, 10_000_000, 1000),
            "command_ns": dice.whole(100, 400),
            "channel_mbps": dice.one_of({40: 10, 100: 15, 166: 15, 200: 15, 333: 15, 400: 15,
                                         800: 15}),
            "host_mbps": dice.one_of({0: 10, 150: 10, 300: 20, 550: 30, 1000: 10, 2000: 10,
                                      3500: 10}),
            "host_duplex": int(dice.happens(0.3)),
            "firmware_ns": dice.one_of({0: 15, dice.whole(1000, 30_000, 100): 85}),
            "rw_switch_ns": dice.one_of({0: 75, dice.whole(20_000, 400_000, 1000): 25}),
            # Of a request that continues no other.
            "random_ns": dice.one_of({0: 93, dice.whole(5000, 100_000, 100): 7})}


def translation(dice: Dice, page_size: int) -> dict:
    """Return how pages are mapped."""
    keys = {"mapping": dice.one_of({"page": 70, "block": 30})}
    order = "".join(dice.random.sample("cwdp", 4))
    if keys["mapping"] == "block":
        keys |= {"allocation": order, "open_blocks": dice.one_of({1: 40, 2: 15, 4: 20, 8: 15,
                                                                  16: 10})}
    else:
        keys |= {"allocation": dice.one_of({order: 60, "dynamic": 25, "concat": 15}),
                 "gc_yield": int(dice.happens(0.5))}
        # A concatenation collects in the foreground.
        if keys["allocation"] != "concat":
            keys["gc_start_blocks"] = dice.one_of({0: 55, 6: 45})
    keys["gc_copyback"] = int(dice.happens(0.3))
    pages = dice.one_of({1: 50, 2: 8, 3: 8, 4: 12, 6: 6, 8: 8, 16: 8})
    if pages > 1:
        keys["clustered_page_kb"] = pages * page_size // 1024
    keys["spare"] = dice.random.randint(7, 28)
    keys["fill"] = dice.one_of({0: 40, dice.random.randint(20, 100): 60})
    return keys


def blocks(dice: Dice, keys: dict) -> int:
    """Return the blocks of a plane, for a drive of 512 MB to 4 GB."""
    planes = math.prod(keys[part] for part in ("channels", "chips", "dies", "planes"))
    block = planes * keys["pages"] * keys["page_size"]
    wanted = dice.whole(512 * MIB, 4096 * MIB) / block * 100 / (100 - keys["spare"])
    # What the emulator needs beside the host's data.
    spare = keys.get("open_blocks", keys.get("gc_start_blocks", 0) + 2) + 4
    return max(round(wanted), BLOCKS, math.ceil(spare * 100 / keys["spare"]) + 1)


def slc_cache(dice: Dice, keys: dict) -> dict:
    """Return the keys of an SLC cache, or none. Drives with one collect in the background."""
    if not keys.get("gc_start_blocks") or not dice.happens(0.6):
        return {}
    return {"slc_mb": dice.whole(32, 384), "slc_bits": dice.one_of({2: 20, 3: 50, 4: 30}),
            "slc_read_ns": dice.whole(10_000, keys["read_ns"], 100),
            "slc_program_ns": dice.whole(keys["program_ns"] / 6, keys["program_ns"] / 2, 1000),
            "slc_fold_percent": dice.one_of({0: 70, 50: 30})}


def buffers(dice: Dice, keys: dict) -> dict:
    """Return the buffers; each has room for some pages."""
    page_kb = keys["page_size"] // 1024
    cluster_kb = keys.get("clustered_page_kb", page_kb)
    made = {}
    if dice.happens(0.6):
        made["read_buffer_kb"] = dice.kib(max(64, 4 * page_kb), 8192)
        made["prefetch"] = int(dice.happens(0.5))
    if dice.happens(0.7):
        made["write_buffer_kb"] = dice.kib(max(32, 2 * cluster_kb), 8192)
        made["write_cache"] = int(dice.happens(0.5))
        made["protected"] = int(dice.happens(0.15))
    return made


def scheduling(dice: Dice) -> dict:
    """Return the queue of the drive, and in which order it serves it."""
    keys = {"device_sched": dice.one_of({"fifo": 25, "ooo": 35, "ooo-read": 25, "aos": 15}),
            "queue_depth": dice.one_of({1: 8, 8: 4, 16: 8, 32: 45, 64: 20, 128: 10, 256: 5}),
            "max_request_kb": dice.one_of({128: 15, 256: 15, 512: 50, 1024: 20})}
    if keys["device_sched"] in ("ooo-read", "aos") and dice.happens(0.5):
        keys |= {"suspend_ns": dice.whole(5000, 60_000, 100),
                 "resume_ns": dice.whole(5000, 60_000, 100)}
    return keys


def crowding(dice: Dice, size_mib: float) -> dict:
    """Return regions in which requests hinder each other, or none."""
    if not dice.happens(0.2):
        return {}
    return {"region_mb": dice.whole(size_mib / 16, size_mib / 3),
            "crowd_depth": dice.one_of({2: 30, 4: 40, 8: 30}),
            "crowd_ns": dice.whole(3000, 30_000, 100)}


def draw(seed: int) -> Drive:
    """Return the drive of a seed."""
    dice = Dice(seed)
    keys = geometry(dice) | times(dice)
    keys |= translation(dice, keys["page_size"])
    keys["blocks"] = blocks(dice, keys)
    keys |= slc_cache(dice, keys) | buffers(dice, keys) | scheduling(dice)
    planes = math.prod(keys[part] for part in ("channels", "chips", "dies", "planes"))
    keys |= crowding(dice, planes * keys["blocks"] * keys["pages"] * keys["page_size"] / MIB
                     * (100 - keys["spare"]) / 100)
    beside = dice.one_of({(): 60, READER: 20, MIXED: 20})
    if beside is MIXED and keys["mapping"] == "block":
        beside = READER
    return Drive(f"seed {seed}", "small", keys | {"capacity_mb": 0}, beside)
