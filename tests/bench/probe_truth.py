# SPDX-License-Identifier: GPL-2.0
"""What the probe ought to find on an emulated SSD: a pure function of its keys.

truths() returns a Truth for each finding that is scored. An answer is right if it fits, and "cannot
tell" is right where the finding has no meaning or cannot be seen from outside: the Truth is then
not visible. What "seen" means is said beside each. The reasons for the tolerances:

    times       10 %: the papers' procedures repeat less well, and no scheduler's setting depends
                on less
    sizes       exact, or the step that the emulator itself rounds to; buffers also 5 %, since a
                large one is found by reading or writing it, in steps
    counts, names, yes or no: exact
    depths      a range, since saturation is no point: see saturation()

Not scored: request_size, stride_peaks_kb, stride_level_kb and interference at other sizes, which
are curves.
"""
import collections
import collections.abc
import dataclasses
import functools
import heapq
import itertools
import math
import random
import types

MIB = 1 << 20
# The emulator's defaults of the keys that decide something here.
DEFAULTS = types.MappingProxyType({
    "channels": 4, "chips": 4, "dies": 1, "planes": 1, "blocks": 1024, "pages": 64,
    "page_size": 4096, "capacity_mb": 0, "spare": 10, "unit": "chip", "read_ns": 50_000,
    "program_ns": 500_000, "erase_ns": 3_000_000, "command_ns": 300, "channel_mbps": 400,
    "host_mbps": 0, "host_duplex": 0, "firmware_ns": 0, "mapping": "page", "allocation": "cwdp",
    "open_blocks": 1, "clustered_page_kb": 0, "slc_mb": 0, "slc_bits": 3,
    "slc_program_ns": 200_000, "fill": 0, "read_buffer_kb": 0, "prefetch": 0,
    "write_buffer_kb": 0, "write_cache": 0, "protected": 0, "device_sched": "ooo",
    "region_mb": 4096, "crowd_depth": 4, "crowd_ns": 0, "rw_switch_ns": 0, "lookup_ns": 0,
    "random_ns": 0, "queue_depth": 64, "block_size": 512, "max_request_kb": 512})
# Reads of a simulated measurement.
READS = 2000
# KB of a small write.
SMALL_KB = 4
# A share of a time or a rate that can be measured beside noise.
SEEN = 0.1


class Flash:
    """A drive as its keys describe it. Times are in ns, sizes in bytes."""

    def __init__(self, keys: dict):
        self.keys = {**DEFAULTS, **keys}
        keys = self.keys
        self.counts = {"c": keys["channels"], "w": keys["chips"], "d": keys["dies"],
                       "p": keys["planes"]}
        self.chips = keys["channels"] * keys["chips"]
        self.dies = self.chips * keys["dies"]
        self.planes = self.dies * keys["planes"]
        self.units = {"chip": self.chips, "die": self.dies, "plane": self.planes}[keys["unit"]]
        self.page = keys["page_size"]
        self.cluster = 1024 * keys["clustered_page_kb"] or self.page
        self.static = keys["allocation"] not in ("dynamic", "concat")
        self.concat = keys["allocation"] == "concat"
        self.transfer_ns = self.page * 1000 / keys["channel_mbps"]
        # A unit is occupied so long by a page.
        self.read_ns = (keys["command_ns"] + keys["read_ns"] + keys["random_ns"] +
                        self.transfer_ns)
        self.program_ns = keys["command_ns"] + self.transfer_ns + keys["program_ns"]
        self.plane_pages = self.pages_of_plane()
        self.size = self.plane_pages * self.planes * self.page
        if keys["capacity_mb"]:
            self.size = min(self.size, keys["capacity_mb"] * MIB)

    def pages_of_plane(self) -> int:
        """Return the logical pages of a plane."""
        keys = self.keys
        if keys["capacity_mb"]:
            return -(-keys["capacity_mb"] * MIB // (self.planes * keys["pages"] * self.page)
                     ) * keys["pages"]
        pages = keys["blocks"] * keys["pages"] * (100 - keys["spare"]) // 100
        return pages // keys["pages"] * keys["pages"] if keys["mapping"] == "block" else pages

    def host_ns(self, size: int) -> float:
        """Return the time of a transfer to the host."""
        return size * 1000 / self.keys["host_mbps"] if self.keys["host_mbps"] else 0.0

    @functools.cached_property
    def row(self) -> list[int]:
        """The planes of the first pages, one for each plane."""
        weights = dict(zip("cwdp", (1, self.keys["channels"], self.chips, self.dies), strict=True))
        planes = []
        for at in range(self.planes):
            plane, rest = 0, at
            for letter in self.keys["allocation"] if self.static else "cwdp":
                rest, digit = divmod(rest, self.counts[letter])
                plane += digit * weights[letter]
            planes.append(plane)
        return planes

    def unit_of(self, page: int) -> int:
        """Return the unit that has a page, as if the drive came formatted."""
        if not self.concat:
            return self.row[page % self.planes] % self.units
        per_chip = self.planes // self.chips
        region = page // self.plane_pages
        return (region // per_chip + region % per_chip * self.chips) % self.units

    def outer(self) -> set[str]:
        """Return the letters of an order that tell units from each other."""
        letters = {"chip": "cw", "die": "cwd", "plane": "cwdp"}[self.keys["unit"]]
        return {letter for letter in letters if self.counts[letter] > 1}

    def stripe(self) -> int:
        """Return the bytes after which the units repeat, 0 if there is one."""
        order = self.keys["allocation"]
        last = max((order.index(letter) for letter in self.outer()), default=-1)
        return self.page * math.prod(self.counts[letter] for letter in order[:last + 1])

    def stride(self) -> int:
        """Return the bytes of consecutive addresses on one unit before the next one's."""
        if self.concat:
            pages = self.plane_pages
            same = sum(1 for _ in itertools.takewhile(
                lambda at: self.unit_of(at * pages) == self.unit_of(0), range(self.planes)))
            return same * pages * self.page
        first = self.row[0] % self.units
        return self.page * sum(1 for _ in itertools.takewhile(
            lambda plane: plane % self.units == first, self.row))


class Reads:
    """Random reads of 4 KB on a drive, in simulated time: what a user can see of its depth, order
    and regions. @fifo: the drive serves its queue in order."""

    def __init__(self, flash: Flash, depth: int, span: int, fifo: bool):
        self.flash, self.depth, self.span, self.fifo = flash, depth, span, fifo
        self.random = random.Random(depth)
        self.events, self.order = [], itertools.count()
        self.firmware = self.host = 0.0
        self.channels = [0.0] * flash.keys["channels"]
        self.busy = [False] * flash.units
        self.queues = [collections.deque() for _ in range(1 if fifo else flash.units)]
        self.regions = collections.Counter()
        self.firsts = collections.Counter()

    def at(self, when: float, what: collections.abc.Callable, *about):
        """Call a function at a time."""
        heapq.heappush(self.events, (when, next(self.order), what, about))

    def rate(self) -> float:
        """Return reads a second."""
        self.ended, begun = 0, 0.0
        for _ in range(self.depth):
            self.issue(0.0)
        while self.ended < READS:
            now, _, what, about = heapq.heappop(self.events)
            what(now, *about)
            if self.ended <= READS // 10:
                begun = now
        return (READS - READS // 10) * 1e9 / (now - begun)

    def issue(self, now: float):
        """Begin a read."""
        keys, page = self.flash.keys, self.flash.page
        offset = self.random.randrange(self.span // 4096) * 4096
        pages = range(offset // page, (offset + 4095) // page + 1)
        self.firmware = max(self.firmware, now) + keys["firmware_ns"] + (
            keys["lookup_ns"] * len(pages))
        region = (offset // MIB // keys["region_mb"], self.flash.unit_of(pages[0]))
        self.regions[region[0]] += 1
        self.firsts[region] += 1
        self.at(self.firmware, self.decoded, [region, len(pages), False], pages)

    def decoded(self, now: float, read: list, pages: range):
        """Queue the pages of a read."""
        for page in pages:
            unit = self.flash.unit_of(page)
            self.queues[0 if self.fifo else unit].append((read, unit))
            self.start(now, unit)

    def start(self, now: float, unit: int):
        """Start what a unit, or the whole drive in order, can serve."""
        queue = self.queues[0 if self.fifo else unit]
        while queue and not self.busy[queue[0][1]]:
            read, unit = queue.popleft()
            self.busy[unit] = True
            keys = self.flash.keys
            self.at(now + keys["command_ns"] + keys["read_ns"] + keys["random_ns"] +
                    self.crowd(read), self.sensed, read, unit)

    def crowd(self, read: list) -> float:
        """Return what a read loses to those of its region."""
        region, _, charged = read
        read[2] = True
        excess = self.regions[region[0]] - self.firsts[region] - self.flash.keys["crowd_depth"]
        return 0 if charged else max(0, excess) * self.flash.keys["crowd_ns"]

    def sensed(self, now: float, read: list, unit: int):
        """Transfer a page to the controller."""
        channel = unit % len(self.channels)
        self.channels[channel] = max(self.channels[channel], now) + self.flash.transfer_ns
        self.at(self.channels[channel], self.moved, read, unit)

    def moved(self, now: float, read: list, unit: int):
        """The unit is free; transfer the data to the host."""
        self.busy[unit] = False
        self.host = max(self.host, now) + self.flash.host_ns(min(4096, self.flash.page))
        read[1] -= 1
        if not read[1]:
            self.at(self.host, self.end, read[0])
        self.start(now, unit)

    def end(self, now: float, region: tuple):
        """A read has ended; begin the next one."""
        self.regions[region[0]] -= 1
        self.firsts[region] -= 1
        self.ended += 1
        self.issue(now)


def depths(flash: Flash) -> list[int]:
    """Return the depths to look at: powers of two up to the drive's tags."""
    tags = flash.keys["queue_depth"]
    return sorted({*(1 << bit for bit in range(tags.bit_length())), tags})


def curve(flash: Flash, span: int | None = None, fifo: bool | None = None) -> dict[int, float]:
    """Return reads a second by depth, of the first @span bytes."""
    if fifo is None:
        fifo = flash.keys["device_sched"] == "fifo"
    return {depth: Reads(flash, depth, span or flash.size, fifo).rate()
            for depth in depths(flash)}


def saturation(flash: Flash) -> tuple[float, float]:
    """Return the depths between which random reads saturate: from 80 % of the best rate, to the
    first of the powers of two that reaches 98 %, or the next one."""
    rates = curve(flash)
    best = max(rates.values())
    low, high = (min(depth for depth, rate in rates.items() if rate >= share * best)
                 for share in (0.8, 0.98))
    below = max((depth for depth in rates if depth < low), default=0)
    # The rate lies between those of two depths.
    if below:
        low = below + (low - below) * (0.8 * best - rates[below]) / (rates[low] - rates[below])
    return low, min(2 * high, flash.keys["queue_depth"])


# Truths

@dataclasses.dataclass(frozen=True)
class Truth:
    """What the answer ought to be. @says: in words, @fits: whether a value is right, @visible:
    False if "cannot tell" is right, too."""
    says: str
    fits: collections.abc.Callable[[object], bool]
    visible: bool = True


def exactly(value, visible: bool = True, says: str = "") -> Truth:
    """Return the truth that is a value."""
    return Truth(says or str(value), lambda found: found == value and
                 isinstance(found, bool) == isinstance(value, bool), visible)


def about(low: float, high: float, visible: bool = True, says: str = "") -> Truth:
    """Return the truth that is a number within bounds."""
    return Truth(says or f"{low:g} to {high:g}", lambda found: isinstance(found, (int, float)) and
                 not isinstance(found, bool) and low <= found <= high, visible)


def near(value: float, share: float, least: float = 0.0, visible: bool = True) -> Truth:
    """Return the truth that is a number, off by @share or @least at most."""
    allowed = max(value * share, least) + 1e-9
    return about(value - allowed, value + allowed, visible, f"{value:g} +- {allowed:.3g}")


def size_near(value: float, step: float, visible: bool = True) -> Truth:
    """Return the truth that is the size of a buffer, found in a @step; none: exactly 0."""
    return near(value, 0.05, step, visible) if value else exactly(0)


def smallest(size: int, block: int, visible: bool) -> Truth:
    """Return the truth that is a size in KB; what is smaller than a logical block may be taken for
    one."""
    return about(size / 1024, max(size, block) / 1024, visible and size >= block)


def either(*truths: Truth) -> Truth:
    """Return the truth that any of these is. Where one is visible, an answer is asked for."""
    return Truth(" or ".join(each.says for each in truths),
                 lambda found: any(each.fits(found) for each in truths),
                 any(each.visible for each in truths))


NOTHING = Truth("cannot tell", lambda found: False, False)


def overlap(flash: Flash) -> bool:
    """Return True if a user can see that two reads are on one unit: there are several, the drive
    takes several requests, and the second one is decoded long before the first one ends."""
    return (flash.units > 1 and flash.keys["queue_depth"] > 1 and
            flash.read_ns - flash.keys["firmware_ns"] > SEEN * flash.read_ns)


def channels_seen(flash: Flash) -> bool:
    """Return True if a user can see that two reads share a channel: their transfers take longer
    there than behind each other to the host, and than the firmware takes for the second one. Some
    pairs must share one and some not: without both nothing tells a channel from what is common
    to all reads, or a fast one from one that is not shared."""
    keys = flash.keys
    slower = max(flash.host_ns(keys["block_size"]), keys["firmware_ns"])
    return (overlap(flash) and 1 < keys["channels"] < flash.units and
            flash.transfer_ns - slower > SEEN * flash.read_ns)


def page_seen(flash: Flash) -> bool:
    """Return True if a user can see where a flash page begins: by a buffer of pages, by a request
    for two pages of one unit, or by two requests for one unit or two."""
    return bool(flash.keys["read_buffer_kb"] or flash.concat or flash.stride() > flash.page or
                overlap(flash))


def of_reads(flash: Flash) -> dict[str, Truth]:
    """Return what reads find about the flash and the read buffer."""
    keys = flash.keys
    buffer_kb = keys["read_buffer_kb"] * 1024 // flash.page * flash.page / 1024
    low, high = saturation(flash)
    return {
        "read_depth": about(0.95 * low, high),
        "read_us": single_read(flash),
        "flash_page_kb": smallest(flash.page, keys["block_size"], page_seen(flash)),
        "read_buffer_kb": size_near(buffer_kb, flash.page / 1024),
        "prefetch": exactly(bool(keys["prefetch"]))}


def single_read(flash: Flash) -> Truth:
    """Return the time of a read of one block: the paper's procedure 4 times whole requests. A block
    of several pages takes longer if they share a channel or a unit."""
    keys = flash.keys
    pages = max(1, keys["block_size"] // flash.page)
    most = pages if flash.concat or flash.stride() > flash.page else 1
    low = (keys["firmware_ns"] + pages * keys["lookup_ns"] + flash.read_ns +
           flash.host_ns(keys["block_size"]))
    high = low + (most - 1) * flash.read_ns + (pages - 1) * flash.transfer_ns
    return about((1 - SEEN) * low / 1e3, (1 + SEEN) * high / 1e3)


def of_units(flash: Flash) -> dict[str, Truth]:
    """Return what reads find about units. Dynamic allocation has no strides and no order."""
    keys, seen = flash.keys, overlap(flash)
    made = {"units": exactly(flash.units, seen),
            "static_allocation": exactly(flash.static or flash.concat, seen),
            # The end of a region is looked for.
            "stride_kb": exactly(flash.stride() / 1024, seen) if flash.static else
            near(flash.stride() / 1024, 0.01, visible=seen) if flash.concat else NOTHING,
            "stripe_kb": exactly(flash.stripe() / 1024, seen) if flash.static else NOTHING,
            "channels": exactly(keys["channels"], channels_seen(flash)),
            "allocation": order(flash),
            "level": Truth(keys["unit"], lambda found: found == keys["unit"], False)}
    if flash.units == 1:
        made |= {"stride_kb": NOTHING, "stripe_kb": NOTHING}
    rates = [max(curve(flash, fifo=fifo).values()) for fifo in (False, True)]
    made["in_order"] = exactly(keys["device_sched"] == "fifo",
                               seen and rates[1] < (1 - SEEN) * rates[0])
    return made


def order(flash: Flash) -> Truth:
    """Return the order of allocation, as far as it can be told apart."""
    keys = flash.keys
    if not flash.static:
        return Truth(keys["allocation"], lambda found: found == keys["allocation"], False)
    wanted = plain_order(keys["allocation"], flash.outer())
    return Truth(wanted, lambda found: isinstance(found, str) and (
        plain_order(found, set("cwdp")) == wanted), channels_seen(flash))


def plain_order(text: str, letters: set[str]) -> str:
    """Return an order with these letters only, and all but channels as ways: they differ in
    nothing that a user sees. Equal letters in a row are one."""
    kept = ("c" if letter == "c" else "w" for letter in text if letter in letters)
    return "".join(letter for letter, _ in itertools.groupby(kept))


def of_regions(flash: Flash) -> dict[str, Truth]:
    """Return what reads find about regions. They are seen if reads of a region are slower, at some
    depth, than those of the whole drive."""
    keys = flash.keys
    region = keys["region_mb"] * MIB
    if keys["crowd_ns"] and region < flash.size and keys["queue_depth"] > 1:
        whole, part = curve(flash), curve(flash, span=region)
        seen = any(part[depth] < (1 - SEEN) * whole[depth] for depth in whole)
        # Where crowding begins, which is fitted, or the depth that serves a region best.
        begin = about(0.75 * keys["crowd_depth"], keys["crowd_depth"] + 2, seen)
        size = near(keys["region_mb"], 0.1, visible=seen)
        if flash.concat:
            size = either(size, near(flash.stride() / MIB, 0.1, visible=False))
        return {"region_mb": size, "region_depth": either(begin, best_depth(part, seen))}
    if flash.concat:
        # A region is a unit.
        return {"region_mb": near(flash.stride() / MIB, 0.1, visible=False),
                "region_depth": best_depth(curve(flash, span=flash.stride()), False)}
    return {"region_mb": NOTHING, "region_depth": NOTHING}


def best_depth(rates: dict[int, float], visible: bool) -> Truth:
    """Return the truth that is a depth with 95 % of the best of the @rates, which lie at powers of
    two, or half a step beside."""
    good = [depth for depth, rate in rates.items() if rate >= 0.95 * max(rates.values())]
    return about(math.floor(0.7 * min(good)), math.ceil(1.5 * max(good)), visible)


def of_writes(flash: Flash) -> dict[str, Truth]:
    """Return what writes find about the write buffer and the flash."""
    keys = flash.keys
    kind = "none"
    if keys["write_buffer_kb"]:
        kind = "cache" if keys["write_cache"] else "fifo"
    made = {"clustered_page_kb": smallest(flash.cluster, keys["block_size"],
                                          flash.cluster > keys["block_size"]),
            "write_buffer_kind": exactly(kind),
            "early_ack": exactly(kind != "none"),
            "write_buffer_kb": size_near(keys["write_buffer_kb"], SMALL_KB),
            "write_us": program(flash, keys["program_ns"]),
            "interference": near(keys["rw_switch_ns"] / 1e3, 0.1, 2.0)}
    if keys["slc_mb"]:
        made["write_us"] = either(made["write_us"], program(flash, keys["slc_program_ns"]))
    return made | of_slc(flash) | {"flush_us": of_flush(flash)}


def programs(flash: Flash, first: int, cells_ns: int) -> float:
    """Return the ns until a clustered page is programmed that begins with page @first and finds the
    drive idle: a page waits for its unit and for its channel."""
    keys, pages = flash.keys, flash.cluster // flash.page
    units, channels = collections.Counter(), collections.Counter()
    bus_ns = keys["command_ns"] + flash.transfer_ns
    # With dynamic allocation the next units that are free take the pages.
    left = [at % flash.units if keys["allocation"] == "dynamic" else flash.unit_of(first + at)
            for at in range(pages)]
    while left:
        unit = min(left, key=lambda unit: max(units[unit], channels[unit % keys["channels"]]))
        left.remove(unit)
        channel = unit % keys["channels"]
        channels[channel] = max(units[unit], channels[channel]) + bus_ns
        units[unit] = channels[channel] + cells_ns
    return max(units.values())


def clusters(flash: Flash, cells_ns: int) -> tuple[float, float]:
    """Return the least and the most ns that the programs of a clustered page take, by its place."""
    pages = flash.cluster // flash.page
    times = [programs(flash, at * pages, cells_ns) for at in range(min(flash.planes, 24))]
    return min(times), max(times)


def of_flush(flash: Flash) -> Truth:
    """Return the cost of a flush after a write of a clustered page, or of a part of one, of which
    the rest is read first."""
    keys = flash.keys
    if not keys["write_buffer_kb"] or keys["protected"]:
        return exactly(0)
    found = []
    slc = {keys["slc_program_ns"]} if keys["slc_mb"] else set()
    for cells_ns in {keys["program_ns"]} | slc:
        low, high = (keys["firmware_ns"] + each for each in clusters(flash, cells_ns))
        found.append(about((1 - SEEN) * low / 1e3, (1 + SEEN) * (high + flash.read_ns) / 1e3))
    return either(*found)


def program(flash: Flash, cells_ns: int) -> Truth:
    """Return the time of a program, of a page or of a clustered page, which the drive writes as a
    whole: from that in the cells to that of the whole request, which the paper's procedure 6
    times."""
    keys = flash.keys
    around = keys["firmware_ns"] + keys["lookup_ns"] + keys["random_ns"]
    page = (around + flash.host_ns(flash.page) + cells_ns + flash.program_ns -
            keys["program_ns"])
    low, high = clusters(flash, cells_ns)
    whole = around + flash.host_ns(flash.cluster) + high
    return either(about((1 - SEEN) * cells_ns / 1e3, (1 + SEEN) * page / 1e3),
                  about((1 - SEEN) * low / 1e3, (1 + SEEN) * whole / 1e3))


def of_slc(flash: Flash) -> dict[str, Truth]:
    """Return the size of the SLC cache, which has whole blocks of each plane. A stream of writes
    sees only that of one plane if the planes are concatenated. It is seen if the flash behind it
    is slower, and slower than the interface."""
    keys = flash.keys
    if not keys["slc_mb"]:
        return {"slc_cache_mb": exactly(0)}
    plane = keys["pages"] // keys["slc_bits"] * flash.page
    plane *= -(-keys["slc_mb"] * MIB // (flash.planes * plane))
    slow, fast = (stream_mbps(flash, ns) for ns in (keys["program_ns"], keys["slc_program_ns"]))
    truth = near(flash.planes * plane / MIB, 0.1, visible=slow < (1 - SEEN) * fast)
    if flash.concat:
        truth = either(truth, near(plane / MIB, 0.1))
    return {"slc_cache_mb": truth}


def stream_mbps(flash: Flash, program_ns: float) -> float:
    """Return the MB/s of large writes to all units."""
    keys = flash.keys
    each = flash.program_ns - keys["program_ns"] + program_ns
    request = keys["max_request_kb"] * 1024
    return min(flash.units * flash.page * 1000 / each,
               keys["channels"] * keys["channel_mbps"],
               request * 1000 / max(flash.host_ns(request), keys["firmware_ns"], 1))


def of_blocks(flash: Flash) -> dict[str, Truth]:
    """Return what writes find about the mapping."""
    keys = flash.keys
    block_kb = flash.planes * keys["pages"] * flash.page / 1024
    if keys["mapping"] == "block":
        amount = exactly("amount", False) if keys["write_buffer_kb"] else NOTHING
        return {"mapping": exactly("block"), "erase_block_kb": exactly(block_kb),
                "clustered_block_kb": exactly(block_kb),
                "open_blocks": exactly(keys["open_blocks"]),
                "stride_boundary": either(exactly("offset"), amount)}
    amount = exactly("amount", False) if keys["write_buffer_kb"] else NOTHING
    return {"mapping": exactly("page"), "erase_block_kb": exactly(block_kb, False),
            "clustered_block_kb": exactly(block_kb, False), "open_blocks": NOTHING,
            "stride_boundary": amount}


@functools.cache
def truths_of(keys: tuple) -> dict[str, Truth]:
    """Return truths(), computed once."""
    flash = Flash(dict(keys))
    return {**of_reads(flash), **of_units(flash), **of_regions(flash), **of_writes(flash),
            **of_blocks(flash)}


def truths(keys: dict) -> dict[str, Truth]:
    """Return what the probe ought to find on a drive with these keys."""
    return truths_of(tuple(sorted(keys.items())))


def judge(truth: Truth, value) -> str:
    """Return "right", "wrong" or "cannot tell" for an answer; None: it cannot tell."""
    if value is None:
        return "cannot tell" if truth.visible else "right"
    return "right" if truth.fits(value) else "wrong"
