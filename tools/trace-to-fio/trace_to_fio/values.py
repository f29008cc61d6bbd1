# SPDX-License-Identifier: GPL-2.0
"""Numbers, times and directions, as they stand in the fields of a trace."""
import decimal
import re

from trace_to_fio import LeftOut, Malformed

SECTOR = 512
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "100ns": 100, "ns": 1}
# Digits of a number; more are no number of a trace.
DIGITS = 24
HEX = re.compile(r"0[xX][\da-fA-F]{1,16}", re.ASCII)
# Letters of the kernel's "rwbs" and blkparse's: a flush before, the operation, what else it is.
RWBS = re.compile(r"F?(?:(?P<write>W)|R|(?P<other>D|F|N|Z))[A-Z]*", re.ASCII)
READ_OR_WRITE = {"r": False, "read": False, "w": True, "write": True}
# Words for what is neither.
OTHERS = {"d": "discards", "discard": "discards", "trim": "discards", "t": "discards",
          "unmap": "discards", "f": "flushes", "flush": "flushes", "sync": "flushes",
          "": "records without a direction"}
# Opcodes of SCSI: READ and WRITE with commands of 6, 10, 12 and 16 bytes.
SCSI = {0x08: False, 0x28: False, 0xa8: False, 0x88: False,
        0x0a: True, 0x2a: True, 0xaa: True, 0x8a: True}


def is_natural(text: str) -> bool:
    """Return true if a text is a whole number that is not negative."""
    return text.isdigit() and text.isascii() and len(text) <= DIGITS


def natural(text: str, what: str) -> int:
    """Return a whole number that is not negative, decimal or hexadecimal with 0x."""
    text = text.strip()
    if is_natural(text):
        return int(text)
    if HEX.fullmatch(text):
        return int(text, 16)
    raise Malformed(f"{what} is no whole number: '{text}'")


def nanoseconds(text: str, unit: int, what: str) -> int:
    """Return a time that is not negative in ns, exactly. @unit: ns of the text's unit"""
    text = text.strip()
    if is_natural(text):
        return int(text) * unit
    whole, _, rest = text.partition(".")
    if is_natural(whole) and is_natural(rest):
        return int(whole) * unit + int(rest) * unit // 10 ** len(rest)
    try:
        value = decimal.Decimal(text) if len(text) <= 2 * DIGITS else None
    except decimal.InvalidOperation:
        value = None
    if value is None or not value.is_finite() or not 0 <= value < 10**DIGITS:
        raise Malformed(f"{what} is no time: '{text}'")
    return int(value * unit)


def writes(text: str) -> bool:
    """Return whether a word means a write, otherwise a read; LeftOut: it means neither."""
    text = text.strip()
    found = READ_OR_WRITE.get(text.lower())
    if found is not None:
        return found
    if text.lower() in OTHERS:
        raise LeftOut(OTHERS[text.lower()])
    return rwbs(text)


def rwbs(flags: str) -> bool:
    """Return whether flags such as WS or FWFS mean a write, otherwise a read; LeftOut: neither."""
    found = RWBS.fullmatch(flags)
    if not found:
        raise Malformed(f"neither read nor write: '{flags}'")
    if found["other"]:
        raise LeftOut({"D": "discards", "F": "flushes"}.get(found["other"], "other commands"))
    return bool(found["write"])


def scsi(text: str) -> bool:
    """Return whether a hexadecimal opcode of SCSI writes, otherwise reads; LeftOut: neither."""
    try:
        code = int(text, 16)
    except ValueError:
        raise Malformed(f"no opcode of SCSI: '{text.strip()}'") from None
    return opcode(code)


def opcode(code: int) -> bool:
    """Return whether an opcode of SCSI writes, otherwise reads; LeftOut: neither."""
    if code not in SCSI:
        raise LeftOut("other commands")
    return SCSI[code]


def flag(meaning: bool):
    """Return a function that tells whether a field writes: 1 means a write if @meaning, otherwise
    a read."""
    def of(text: str) -> bool:
        text = text.strip()
        if text not in ("0", "1"):
            raise Malformed(f"neither 0 nor 1: '{text}'")
        return (text == "1") == meaning
    return of
