# SPDX-License-Identifier: GPL-2.0
"""Texts that people take for traces, or that a program can make into one."""
import re

from trace_to_fio.formats.blkparse import EVENT
from trace_to_fio.formats.ftrace import lacks_block

# Characters of a text that show what it is.
SHOWN = 1 << 12
RECORD = "record with blktrace"
# A line of blkparse -f: a time, a letter of an event and numbers, separated by whatever.
LAYOUT = re.compile(r"[^\d]*\d+\.\d{6,9}\b.*(?:^|[\s,;|])[QGIDCMF](?=[\s,;|]|$).*\d", re.ASCII)
# (how one of the first lines begins, or the text, what it is).
KINDS = [(re.compile(f"^(?:{pattern})", re.MULTILINE | re.ASCII), text) for pattern, text in (
    (r'\{"type": "(?:printf|attached_probes|map|time)"',
     "this is JSON of bpftrace: jq -j 'select(.type == \"printf\").data' FILE >trace.txt"),
    (r'\s*"fio version"',
     f"this is a result of fio as JSON, without its requests: {RECORD}, or by fio's write_iolog"),
    (r"(?:\d;)?fio-\d+\.\d+|.*\(g=\d+\): rw=|fio: ",
     f"this is a result of fio, without its requests: {RECORD}, or by fio's write_iolog"),
    (r"\d+, \d+, [012], \d+, (?:0x)?[\da-f]+(?:, |$)",
     "this is like a log of fio (write_lat_log, write_bw_log); with log_offset=1 it has places: "
     "--columns time_ms,-,is_write,size,offset,-"),
    (r"\s*Event Name, +Type,", "this is CSV of tracerpt: xperf -i FILE.etl -o trace.txt -a dumper"),
    (r'"?Time of Day"?,"?Process Name"?,',
     "this is of Process Monitor: operations on files, no requests of a drive"),
    (r"(?:\[pid +\d+\] |\d+ +)?(?:[\d:.]+ +)?(?:openat|read|write|pread64|pwrite64|mmap|execve|"
     r"close|io_\w+)\(.*\) += ",
     f"this is of strace: system calls, no requests of a drive: {RECORD}"),
    (r"Device:? .*(?:r/s|tps)", f"this is of iostat: sums, no requests: {RECORD}"),
    (r" +\d+ +\d+ (?:sd|nvme|mmcblk|vd|loop)\w+ \d+ \d+ \d+ ",
     f"this is /proc/diskstats: sums, no requests: {RECORD}"),
    (r"\Aversion https://git-lfs\.", "this is a pointer of Git LFS, not the file: git lfs pull"),
    (r"\A<\?xml|<!DOCTYPE|<html", "this is XML or HTML: unpack or convert it first"),
    (r"\A\s*[\[{]\s*(?:[\[{\"]|$)",
     "this is JSON: convert it to CSV with a header first, as by jq"),
)]


def kind_of(lines: list[str]) -> str | None:
    """Return what a text is that no format can read, and what to do; None if it is unknown."""
    texts = [line for line in lines if line.strip()]
    if any(map(EVENT.match, texts)):
        return ("only some lines are of blkparse: for blkparse -F say the format strings, as in "
                "--blkparse-event-format 'D,%5T.%9t %D %3d %S %n', otherwise --format blkparse")
    if sum(bool(LAYOUT.match(line)) for line in texts) * 2 > len(texts):
        return ("this seems to be blkparse -f: say its format string, as in "
                "--blkparse-format '%5T.%9t %D %a %3d %S %n'")
    text = "\n".join(texts)
    found = next((what for pattern, what in KINDS if pattern.search(text[:SHOWN])), None)
    if found:
        return found
    if lacks_block(texts):
        return ("these are events of the kernel without those of the block layer: record "
                "block:block_rq_issue")
    return None
