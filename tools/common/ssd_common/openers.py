# SPDX-License-Identifier: GPL-2.0
"""Processes that have a device open or mapped, by whatever name.

A file that a process has open is looked at only where that waits for no other machine and no other
process: stat() of a file of a dead NFS server, or of a user's FUSE that does not answer, would
block root. The mount that the file is on has to be in a table of mounts, with a local type. This
misses a device whose node is on a file system that was detached while it was open.
"""
import collections.abc
import dataclasses
import os
import pathlib
import re
import stat

from ssd_common.drive import device_number, read
from ssd_common.files import names_in
from ssd_common.output import plain

PROCESSES = pathlib.Path("/proc")
REMOTE = re.compile(r"nfs|cifs|smb|fuse|virtiofs|9p|ceph|afs|lustre|gfs2|ocfs2|coda|orangefs")
MOUNT_ID = re.compile(r"^mnt_id:\s*(\d+)", re.MULTILINE)
# A line of /proc/PID/maps of a file: both ends, the file system and the inode.
MAPPED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ (\S+) (\d+) +/", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Nodes:
    """The numbers, major:minor, of what means a device: @blocks of block devices, and @characters
    of character devices, such as /dev/sg0 of a SCSI drive."""
    blocks: frozenset[str]
    characters: frozenset[str] = frozenset()

    def mean(self, path: str | int | pathlib.Path) -> bool:
        """Return true if a path, or what is open, is one of them."""
        try:
            made = os.stat(path)
        except (OSError, ValueError):
            return False
        number = device_number(made.st_rdev)
        return (stat.S_ISBLK(made.st_mode) and number in self.blocks or
                stat.S_ISCHR(made.st_mode) and number in self.characters)


def mount_tables() -> collections.abc.Iterator[tuple[str, str]]:
    """Give each namespace of mounts: "", or " for process N" of another than ours, and the text of
    its table."""
    seen = set()
    for process in (PROCESSES / "self", *PROCESSES.glob("[0-9]*")):
        try:
            space = os.readlink(process / "ns/mnt")
        except OSError:
            continue
        if space in seen:
            continue
        table = read(process / "mountinfo")
        # The process may have ended since: another one has the same table.
        if table:
            yield f" for process {process.name}" if seen else "", table
            seen.add(space)


class Look:
    """A look at all processes for those that use @nodes."""

    def __init__(self, nodes: Nodes):
        self.nodes = nodes
        # The ids of mounts that are local, and the numbers of their file systems.
        self.mounts, self.systems = set(), set()
        # {file system and inode that is mapped: it is one of the nodes}
        self.mapped: dict[tuple[str, str], bool] = {}
        for _, table in mount_tables():
            for fields in map(str.split, table.splitlines()):
                if not REMOTE.match(fields[fields.index("-") + 1]):
                    self.mounts.add(fields[0])
                    major, minor = map(int, fields[2].split(":"))
                    self.systems.add(f"{major:02x}:{minor:02x}")

    def users(self) -> list[pathlib.Path]:
        """Return the folders in /proc of other processes that use the nodes."""
        return [process for process in PROCESSES.glob("[0-9]*")
                if process.name != str(os.getpid()) and
                (self.has_open(process) or self.has_mapped(process))]

    def has_open(self, process: pathlib.Path) -> bool:
        """Return true if a thread of a process has one of the nodes open. Threads usually share a
        table of descriptors; those that do have the same descriptors."""
        seen = set()
        for thread in names_in(f"{process}/task"):
            table = f"{process}/task/{thread}"
            found = {(name, target) for name in names_in(f"{table}/fd")
                     if (target := target_of(f"{table}/fd/{name}")).startswith("/")}
            if any(self.is_node(table, name) for name, _ in found - seen):
                return True
            seen |= found
        return False

    def is_node(self, table: str, name: str) -> bool:
        """Return true if a descriptor of a thread, whose folder has the @table, is one of the
        nodes."""
        mount = MOUNT_ID.search(read(pathlib.Path(table, "fdinfo", name)))
        return bool(mount) and mount[1] in self.mounts and self.nodes.mean(f"{table}/fd/{name}")

    def has_mapped(self, process: pathlib.Path) -> bool:
        """Return true if a process has one of the nodes mapped, which needs no descriptor."""
        return any(self.is_mapped(process, *found)
                   for found in MAPPED.findall(read(process / "maps")))

    def is_mapped(self, process: pathlib.Path, low: str, high: str, system: str,
                  inode: str) -> bool:
        """Return true if what a process has mapped between two places is one of the nodes."""
        key = (system, inode)
        if key not in self.mapped:
            # The names of the links have no leading zeros.
            link = f"{int(low, 16):x}-{int(high, 16):x}"
            self.mapped[key] = (system in self.systems and
                                self.nodes.mean(f"{process}/map_files/{link}"))
        return self.mapped[key]


def target_of(link: str) -> str:
    """Return what a link of a process means, "" if the process has ended."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def is_child(process: pathlib.Path) -> bool:
    """Return true if this process has started another one, or one that has started it."""
    while process.name not in ("", "0", "1"):
        parent = re.search(r"^PPid:\s*(\d+)", read(process / "status"), re.MULTILINE)
        if not parent:
            return False
        if parent[1] == str(os.getpid()):
            return True
        process = PROCESSES / parent[1]
    return False


def openers(nodes: Nodes, children: bool = True) -> list[str]:
    """Return which other processes use the nodes now. @children: also those that this one has
    started."""
    return sorted(f"process {process.name} ({plain(read(process / 'comm'))}) has it open"
                  for process in Look(nodes).users() if children or not is_child(process))
