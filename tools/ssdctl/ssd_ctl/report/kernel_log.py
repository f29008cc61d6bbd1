# SPDX-License-Identifier: GPL-2.0
"""The end of the kernel's log: lines about drives, about this project's modules, and complaints."""
import os
import re

from ssd_common.drive import BLOCK
from ssd_ctl import schedulers
from ssd_ctl.report import Section
from ssd_ctl.report.bounded import Budget, answer
from ssd_ctl.report.facts import note, shown

KMSG = "/dev/kmsg"
# Bytes of a record, and lines that are kept: at the end, and after the first line of a complaint.
RECORD, LINES, AFTER = 8192, 300, 60
SECONDS = 10
ABOUT = re.compile(
    rf"iosched|\b(?:{'|'.join(schedulers.OURS)})[-_ ]?(?:elevator|scheduler)|elevator|"
    r"io scheduler|I/O error|blk_|blk-mq|Buffer I/O|critical \w+ error|"
    r"(?:EXT4|XFS|BTRFS|F2FS)\b.*(?:error|abort)|hung_task|BTF|module verification|"
    r"Lockdown|key was rejected", re.I)
# At the beginning of a message.
COMPLAINT = re.compile(r"\] (?:INFO: (?:task|rcu)|BUG: |WARNING: |Oops|general protection|"
                       r"Call Trace|watchdog: BUG|Kernel panic|UBSAN: |[Rr]cu: INFO|KASAN)")
END = re.compile(r"---\[ end trace|</TASK>")
# Parts of a drive's path in sysfs by which its drivers name it in the log.
PARTS = re.compile(r"\d+:\d+:\d+:\d+|ata\d+|host\d+|nvme\d+|mmc\d+(?::[0-9a-f]+)?|\d+-[\d.]+|"
                   r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d|virtio\d+")


def names_of(drive: str) -> list[str]:
    """Return the words by which the kernel's log may name a drive."""
    parts = os.path.realpath(BLOCK / drive).split("/")
    return [drive, *(part for part in parts if PARTS.fullmatch(part))]


def pattern(drives: list[str]) -> re.Pattern:
    """Return what finds a line about drives."""
    words = sorted({word for drive in drives for word in names_of(drive)})
    # A partition has its drive's name and digits; ata1 is not in ata10.
    return re.compile(rf"(?<![\w:.-])(?:{'|'.join(map(re.escape, words))})(?:p?\d+)?(?![\w-])"
                      if words else r"(?!)")


def records() -> list[str]:
    """Return the lines of the kernel's log that there are, each with its time."""
    file = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    lines = []
    try:
        while True:
            try:
                record = os.read(file, RECORD)
            except BrokenPipeError:
                # It was overwritten meanwhile: the next read gives what is left.
                continue
            except BlockingIOError:
                return lines
            if not record:
                return lines
            lines.append(line_of(record.decode(errors="replace")))
    finally:
        os.close(file)


def line_of(record: str) -> str:
    """Return a record as dmesg shows it."""
    head, _, text = record.partition(";")
    fields = head.split(",")
    time = int(fields[2]) if len(fields) > 2 and fields[2].isdigit() else 0
    return f"[{time / 1e6:12.6f}] {text.splitlines()[0] if text else ''}"


def about(lines: list[str], drives: list[str]) -> list[str]:
    """Return the last lines about some drives, about the modules, and of complaints."""
    named, kept, left = pattern(drives), [], 0
    for line in lines:
        left = AFTER if COMPLAINT.search(line) else left
        if left or ABOUT.search(line) or named.search(line):
            kept.append(line)
        left = 0 if END.search(line) else max(0, left - 1)
    return kept[-LINES:]


def section(drives: list[str], budget: Budget) -> Section:
    """Return the end of the log."""
    made = Section("kernel's log")
    found = answer(lambda: about(records(), drives), budget, SECONDS)
    note(made, "kernel's log", found)
    made.facts["lines about drives, the modules, and complaints"] = (
        shown(found) if found.why else "\n".join(found.value) or "none")
    return made
