#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# packages: mariadb-server-core sysbench
"""Inside the guest: make the runs of a plan of paper_pass.py, each on a new ext4. Print a line
of JSON for each: the benchmark's result, and the counters of the kernel and of the device.

Large files are as large as the paper's: mke2fs allocates their blocks and writes nothing; the
device stores only what the benchmark writes. The database is made once, in memory, and copied
to each run's device.
"""
import contextlib
import os
import pathlib

import database
from common import (command, counters, fio_command, fio_result, kernel_since, kernel_stat,
                    make_runs, prepare, wait_for_second)
from file_system import MOUNT, mounted, set_dirty, sync
from ssd import Device

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
    """Make a file system with @files files of @file_mb MB each, none of them written."""
    conf = pathlib.Path("/run/mke2fs.conf")
    conf.write_text(MKE2FS.format(files=files, file_mb=file_mb))
    command("mkfs.ext4", "-q", "-F", "-T", "files", "-J", "size=32",
            "-E", "lazy_itable_init=0,lazy_journal_init=1,nodiscard", device.path,
            env={**os.environ, "MKE2FS_CONFIG": str(conf)})


def pass_files(run):
    """Run the multithreaded file benchmark; return fio's result, of which the host makes
    figures."""
    return {"file_fio": fio_result(command(
        *fio_command(run), env={**os.environ, **run["variables"], "DIR": str(MOUNT)}))}


def fileio(run):
    """Run sysbench's file I/O test; return MB/s of its bytes in its time."""
    variables = run["variables"]
    total = int(variables["FILES"]) * int(variables["FILE_MB"])
    printed = command("sysbench", "fileio", f"--threads={variables['THREADS']}",
                      f"--file-num={variables['FILES']}", f"--file-total-size={total}M",
                      "--file-test-mode=rndrw", f"--events={variables['EVENTS']}", "--time=0",
                      "--rand-seed=712", "run", cwd=MOUNT)
    found = {f"{way}_mbps": database.number(f"{word}, MiB/s:", printed) * 1.048576
             for way, word in (("read", "read"), ("write", "written"))}
    return {"figures": {**found, "mbps": sum(found.values())}}


def oltp(run):
    """Run sysbench's OLTP test; return its transactions/s, seconds, and ms of each
    transaction."""
    return {"figures": database.oltp(run["variables"])}


def copy_database():
    """Copy the database to the device, each table to the start of one of the large files,
    whose rest is cut off. The tables are then spread over the drive, as tables of the paper's
    size are."""
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


BENCHMARKS = {"pass-files": pass_files, "sysbench": fileio, "oltp": oltp}


def measure(run):
    """Make one run on a device and a file system made for it."""
    variables, on_database = run["variables"], run["job"] == "oltp"
    with Device(run["preset"], memory_backed=1, **run["keys"]) as device:
        ext4(device, variables["FILES"], variables["FILE_MB"])
        if on_database:
            with mounted(device):
                copy_database()
        with (mounted(device), database.server(MOUNT / "data") if on_database
              else contextlib.nullcontext()):
            prepare(device, run)
            wait_for_second()
            device.reset()
            before = kernel_stat(device)
            made = BENCHMARKS[run["job"]](run)
            sync()
            kernel = kernel_since(device, before)
            ssdemu = counters(device)
    if on_database:
        moved = ssdemu["host_read_bytes"] + ssdemu["host_write_bytes"]
        made["figures"]["mbps"] = moved / made["figures"]["seconds"] / 1e6
    return {**made, "kernel": kernel, "ssdemu": ssdemu}


if __name__ == "__main__":
    set_dirty(1, 8)
    make_runs(measure)
