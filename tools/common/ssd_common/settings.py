# SPDX-License-Identifier: GPL-2.0
"""What to set for each scheduler, by what was found about a drive.

Uses nothing but the values, {name of a finding: value}; None means that it could not be told.
"""
# Ranges of the tunables, in the units of their names.
PASS_REGION_MB, PIQ_PAGE_KB, PIQ_UNITS, BLOCK_KB, BP_OPEN, PAI_PAGE_KB, PAI_KB, DEPTH = (
    1 << 20, 1024, 1024, 1 << 20, 64, 1 << 16, 1 << 20, 65535)
# A page of the kernel and of most file systems, KB: no request is smaller.
SMALL_KB = 4
# Most requests of a region that is one unit: the unit serves one, others are on their way to it. On
# the drive of PASS's paper 3 and 4 are best; with 8 one writer's stream keeps reads out.
UNIT_DEPTH = 4
Values = dict[str, float | int | str | bool | None]


def whole(values: Values, name: str, most: int, least: int = 1) -> int | None:
    """Return a finding as a whole number, None if it is not known or not from @least to @most."""
    value = values.get(name)
    if value is None or isinstance(value, str):
        return None
    number = round(value)
    return number if least <= number <= most else None


def known(**tunables) -> dict[str, int | str]:
    """Return those tunables whose value is not None."""
    return {name: value for name, value in tunables.items() if value is not None}


def request_us(values: Values) -> float | None:
    """Return the us that the drive needs for a small read if it is busy."""
    unit, depth = values.get("read_us"), values.get("read_depth")
    return unit / depth if unit and depth else None


def turns_dearly(values: Values) -> bool:
    """Return true if a change between reads and writes costs the drive more than a request, and a
    write about as much as a read. If writes take longer, reads that are dispatched as they arrive
    gain more than the change costs."""
    cost, request = values.get("interference"), request_us(values)
    read, write = values.get("read_us"), values.get("write_us")
    return bool(cost and request and write and cost > request and write <= 2 * read)


def region_depth(values: Values) -> int | None:
    """Return the most requests of a region, None if it could not be told."""
    if values.get("allocation") == "concat":
        return UNIT_DEPTH
    return whole(values, "region_depth", DEPTH)


def power_of_two(number: int | None) -> int | None:
    """Return the least power of two that is not below @number."""
    return number and 1 << (number - 1).bit_length()


def pass_tunables(values: Values) -> dict[str, int | str]:
    """Return PASS's tunables: PASS, section 2, figures 2 and 3. Without the size of a region there
    are none: a depth alone costs throughput."""
    region = whole(values, "region_mb", PASS_REGION_MB)
    if not region:
        return {}
    found = known(region_size_mb=region, region_depth=region_depth(values),
                  depth=power_of_two(whole(values, "read_depth", DEPTH // 2)))
    if turns_dearly(values):
        found |= {"write_share": 100, "write_batch": 4}
    return found


def full_order(told: str | None) -> str | None:
    """Return an order of allocation with all four letters. @told: those letters whose order is
    known; the others stand for one part each."""
    letters = told if isinstance(told, str) else ""
    order = letters + "".join(letter for letter in "cwdp" if letter not in letters)
    return order if letters and sorted(order) == list("cdpw") else None


def piq_tunables(values: Values) -> dict[str, int | str]:
    """Return PIQ's tunables, which describe a drive with a static allocation."""
    units = whole(values, "units", PIQ_UNITS)
    page = whole(values, "stride_kb", PIQ_PAGE_KB)
    if not values.get("static_allocation") or not units or not page or page & (page - 1):
        return {}
    channels = whole(values, "channels", units)
    if not channels or units % channels:
        # Units of one channel each: PIQ holds requests for units only.
        channels = units
    buffered = whole(values, "write_buffer_kb", PAI_KB, 0)
    return known(page_size_kb=page, channels=channels, chips=units // channels, dies=1, planes=1,
                 allocation=full_order(values.get("allocation")),
                 level="chip", buffered_writes=None if buffered is None else int(buffered > 0))


def block_kb(values: Values) -> int | None:
    """Return the KB of an erase block as the drive's mapping has it."""
    found = whole(values, "erase_block_kb", BLOCK_KB, 4)
    return found or whole(values, "clustered_block_kb", BLOCK_KB, 4)


def bp_tunables(values: Values) -> dict[str, int | str]:
    """Return BP's tunables."""
    block = block_kb(values)
    if not block:
        return {}
    return known(block_size_kb=block, open_blocks=whole(values, "open_blocks", BP_OPEN))


def pai_tunables(values: Values) -> dict[str, int | str]:
    """Return PAI's tunables."""
    page = whole(values, "clustered_page_kb", PAI_PAGE_KB)
    if not page:
        return {}
    # As in the paper: align, and split at the size of a buffer.
    return known(clustered_page_kb=page, clustered_block_kb=block_kb(values),
                 read_buffer_kb=whole(values, "read_buffer_kb", PAI_KB, 0),
                 write_buffer_kb=whole(values, "write_buffer_kb", PAI_KB, 0), split="pasa")


MAKERS = {"pass": pass_tunables, "piq": piq_tunables, "bp": bp_tunables, "pai": pai_tunables}


def tunables(values: Values) -> dict[str, dict[str, int | str]]:
    """Return {scheduler: {tunable: value}} for each scheduler that something was found for,
    whether it fits the drive or not."""
    made = {name: maker(values) for name, maker in MAKERS.items()}
    return {name: found for name, found in made.items() if found}


def lacks(values: Values, name: str, yes: str, no: str) -> str:
    """Return "" if a finding is true, otherwise why that is not so. @yes, @no: what it says."""
    value = values.get(name)
    if value is None:
        return f"cannot tell whether {yes}"
    return "" if value else no


def pass_fit(values: Values) -> tuple[bool, str]:
    """Return whether PASS fits, and why."""
    if not values.get("region_mb"):
        return False, "no regions were found that serve only so many requests at once"
    return True, ("a region of the drive serves only so many requests at once: PASS serves "
                  "regions in turn")


def piq_fit(values: Values) -> tuple[bool, str]:
    """Return whether PIQ fits, and why."""
    units = whole(values, "units", PIQ_UNITS)
    if units == 1:
        return False, "one unit does all the work"
    reason = (lacks(values, "static_allocation", "an address decides the unit",
                    "an address does not decide the unit") or
              lacks(values, "in_order", "the drive serves its queue in order",
                    "the drive reorders its queue by itself"))
    if reason:
        return False, reason
    if not piq_tunables(values):
        return False, "the units or the stride could not be told, or the stride is no power of two"
    return True, ("the drive serves its queue in order and an address decides the unit: PIQ "
                  "dispatches requests together that do not conflict")


def bp_fit(values: Values) -> tuple[bool, str]:
    """Return whether BP fits, and why."""
    mapping = values.get("mapping")
    if mapping is None:
        return False, "cannot tell whether the drive maps whole erase blocks"
    if mapping != "block":
        return False, "the drive maps pages, so writes may be in any order"
    if not block_kb(values):
        return False, "the size of an erase block could not be told"
    return True, ("the drive maps whole erase blocks, and leaving one costs a merge: BP writes "
                  "to the block of the last write first")


def pai_fit(values: Values) -> tuple[bool, str]:
    """Return whether PAI fits, and why."""
    page = whole(values, "clustered_page_kb", PAI_PAGE_KB)
    if page is None:
        return False, "cannot tell the size of a clustered page"
    small = max(SMALL_KB, whole(values, "flash_page_kb", PAI_PAGE_KB) or 0)
    if page <= small:
        return False, "small writes cost no more than their share: there is no clustered page"
    if values.get("mapping") == "page" and values.get("early_ack"):
        return False, "the drive gathers small writes in its buffer by itself"
    return True, (f"a write smaller than {page} KB costs as much as one of {page} KB: PAI makes "
                  "requests whole and aligned")


# In order of preference, if several fit: on a drive that maps blocks, BP saves more than PAI.
FITS = {"piq": piq_fit, "bp": bp_fit, "pass": pass_fit, "pai": pai_fit}


def advice(values: Values) -> dict[str, tuple[bool, str]]:
    """Return {scheduler: (whether it fits, why)}, the best first."""
    made = {name: fit(values) for name, fit in FITS.items()}
    return dict(sorted(made.items(), key=lambda item: not item[1][0]))


def echo_lines(name: str, scheduler: str, chosen: dict[str, int | str]) -> list[str]:
    """Return the shell's commands that select a @scheduler with tunables for the drive @name."""
    queue = f"/sys/block/{name}/queue"
    lines = [f"echo {scheduler} > {queue}/scheduler"]
    lines += [f"echo {value} > {queue}/iosched/{key}" for key, value in chosen.items()]
    if scheduler == "bp":
        # It orders a backlog: writeback throttling, and few requests, leave it none.
        lines += [f"echo 128 > {queue}/nr_requests", f"echo 0 > {queue}/wbt_lat_usec"]
    return lines
