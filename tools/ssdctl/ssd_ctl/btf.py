# SPDX-License-Identifier: GPL-2.0
"""Where members of the running kernel's structures are, by its BTF."""
import pathlib
import struct

VMLINUX = pathlib.Path("/sys/kernel/btf/vmlinux")
MAGIC, STRUCT = 0xeb9f, 4
HEADER = struct.Struct("<HBBIIIII")
TYPE, MEMBER = struct.Struct("<III"), struct.Struct("<III")


class BtfError(Exception):
    """The kernel has no BTF, or lacks a structure or a member."""


class Btf:
    """The types of a kernel.

    To read all of the 100,000 types takes seconds on a slow machine, so a structure is found by
    the number of its name. A type of this name begins with this number and a word with the kind,
    which is set in no member, parameter or array of this name."""

    def __init__(self, data: bytes | None = None):
        try:
            data = VMLINUX.read_bytes() if data is None else data
        except OSError:
            raise BtfError(f"the kernel has no {VMLINUX} (CONFIG_DEBUG_INFO_BTF)") from None
        if len(data) < HEADER.size:
            raise BtfError(f"{VMLINUX} is too short")
        magic, _, _, length, types, type_bytes, strings, string_bytes = HEADER.unpack_from(data)
        if magic != MAGIC:
            raise BtfError(f"{VMLINUX} is not in this machine's byte order")
        self.types = data[length + types:length + types + type_bytes]
        self.strings = data[length + strings:length + strings + string_bytes]

    def name(self, offset: int) -> bytes:
        """Return the string at an offset."""
        return self.strings[offset:self.strings.index(b"\0", offset)]

    def places(self, wanted: bytes):
        """Yield where a number is among the types, of those places that are aligned."""
        place = self.types.find(wanted)
        while place >= 0:
            if place % 4 == 0:
                yield place
            place = self.types.find(wanted, place + 1)

    def members(self, structure: str) -> dict[str, int]:
        """Return {member: offset in bytes} of a structure, without bit fields."""
        offset = self.strings.find(b"\0" + structure.encode() + b"\0") + 1
        for place in self.places(struct.pack("<I", offset)) if offset else ():
            _, info, size = TYPE.unpack_from(self.types, place)
            if info >> 24 & 0x1f == STRUCT and info & 0xffff:
                return self.members_at(place + TYPE.size, info & 0xffff, size)
        raise BtfError(f"the kernel's BTF has no struct {structure}")

    def members_at(self, place: int, count: int, size: int) -> dict[str, int]:
        """Return {member: offset} of @count members."""
        found = {}
        for i in range(count):
            name, _, bits = MEMBER.unpack_from(self.types, place + i * MEMBER.size)
            if bits >> 24 == 0 and bits // 8 < size:
                found[self.name(name).decode()] = bits // 8
        return found

    def offset(self, structure: str, member: str) -> int:
        """Return the offset of a member in bytes."""
        try:
            return self.members(structure)[member]
        except KeyError:
            raise BtfError(f"the kernel's struct {structure} has no {member}") from None
