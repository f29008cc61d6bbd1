#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: mariadb-server-core sysbench
"""Inside the guest: make the runs of a plan (pass.py) on a new ext4 each, print a
line of JSON for each: what the benchmark says, what the kernel and the device count.

Large files are as large as the paper's: mke2fs gives them their blocks, and nothing is
written; the device keeps only what the benchmark writes. The database is made once,
in memory, and copied to each run's device.
"""
import contextlib
import json
import os
import pathlib

import database
from guest import (command, counters, fio_command, kernel_since, kernel_stat, make_runs,
                   prepare, set_dirty, sync, wait_for_second)
from harness import figures
from ssd import Device

MOUNT = pathlib.Path("/mnt/pass")
MKE2FS = """[defaults]
	base_features = sparse_super,large_file,filetype,dir_index,ext_attr
	blocksize = 4096
	inode_size = 256
	inode_ratio = 4194304
[fs_types]
	ext4 = {{
		features = has_journal,extent,huge_file,flex_bg,64bit,dir_nlink,extra_isize
	}}
	files = {{
		make_hugefiles = true
		num_hugefiles = {files}
		hugefiles_size = {file_mb}M
		hugefiles_name = test_file.
		hugefiles_digits = 1
		zero_hugefiles = false
	}}
"""

def ext4(device, files, file_mb):
    """A new file system with @files of @file_mb, of which nothing was ever written."""
    conf = pathlib.Path("/run/mke2fs.conf")
    conf.write_text(MKE2FS.format(files=files, file_mb=file_mb))
    command("mkfs.ext4", "-q", "-F", "-T", "files", "-J", "size=32",
            "-E", "lazy_itable_init=0,lazy_journal_init=1,nodiscard", device.path,
            env={**os.environ, "MKE2FS_CONFIG": str(conf)})


@contextlib.contextmanager
def mounted(device):
    """A file system that is used, with nothing of it in memory yet."""
    MOUNT.mkdir(parents=True, exist_ok=True)
    command("mount", device.path, MOUNT)
    try:
        yield
    finally:
        command("umount", MOUNT)


def threads(variables):
    """The multithreaded file benchmark."""
    said = command(*fio_command("pass-files"),
                   env={**os.environ, **variables, "DIR": str(MOUNT)})
    return figures(json.loads(said[said.index("{"):]), {})


def fileio(variables):
    """sysbench's file I/O test: MB/s by its number of bytes and its time."""
    total = int(variables["FILES"]) * int(variables["FILE_MB"])
    said = command("sysbench", "fileio", f"--threads={variables['THREADS']}",
                   f"--file-num={variables['FILES']}", f"--file-total-size={total}M",
                   "--file-test-mode=rndrw", f"--events={variables['EVENTS']}", "--time=0",
                   "--rand-seed=712", "run", cwd=MOUNT)
    found = {f"{way}_mbps": database.number(f"{word}, MiB/s:", said) * 1.048576
             for way, word in (("read", "read"), ("write", "written"))}
    return {**found, "mbps": sum(found.values())}


def copy_database():
    """Put the database on the device, each table at the start of one of the large files
    and without the rest of it: all over the drive, as tables of the paper's size are."""
    data = MOUNT / "data"
    database.copy(data)
    for number in range(1, database.TABLES + 1):
        table = data / f"sbtest/sbtest{number}.ibd"
        place = MOUNT / f"test_file.{number - 1}"
        with open(place, "r+b") as file:
            file.write(table.read_bytes())
            file.truncate()
        table.unlink()
        table.symlink_to(place)


BENCHMARKS = {"pass-files": threads, "sysbench": fileio, "oltp": database.oltp}


def measure(run):
    """One run on a device and a file system made for it."""
    variables = run["variables"]
    with Device(run["preset"], memory_backed=1, **run["keys"]) as device:
        ext4(device, variables["FILES"], variables["FILE_MB"])
        if run["job"] == "oltp":
            with mounted(device):
                copy_database()
        with (mounted(device), database.server(MOUNT / "data") if run["job"] == "oltp"
              else contextlib.nullcontext()):
            prepare(device, run)
            wait_for_second()
            device.reset()
            before = kernel_stat(device)
            made = BENCHMARKS[run["job"]](variables)
            sync(MOUNT)
            kernel = kernel_since(device, before)
            ssdemu = counters(device)
    if "mbps" not in made:
        moved = ssdemu["host_read_bytes"] + ssdemu["host_write_bytes"]
        made["mbps"] = moved / made["seconds"] / 1e6
    return {"figures": made, "kernel": kernel, "ssdemu": ssdemu}


if __name__ == "__main__":
    set_dirty(1, 8)
    make_runs(measure)
