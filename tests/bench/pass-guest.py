#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Inside the guest: make the runs of a plan (pass.py) on a new ext4 with large files
each, print a line of JSON for each: what the benchmark says and the device counts.

The files are as large as the paper's: mke2fs gives them their blocks, and nothing
is written; the device keeps only what the benchmark writes."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from guest import warm_up
from harness import BENCH, PERCENTILES, figures
from ssd import Device

MOUNT = pathlib.Path("/mnt/pass")
# Memory for dirty pages as in a machine of the paper's time, so that the drive
# is at work while the benchmark is.
DIRTY = {"dirty_background_bytes": 8 << 20, "dirty_bytes": 32 << 20}
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


def command(*words, **more):
    """Output of a command; ends it all when it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stderr.strip() or done.stdout[-500:]}")
    return done.stdout


def make_files(device, variables):
    """An ext4 with files that fill no memory."""
    conf = pathlib.Path("/run/mke2fs.conf")
    conf.write_text(MKE2FS.format(files=variables["FILES"], file_mb=variables["FILE_MB"]))
    command("mkfs.ext4", "-q", "-F", "-T", "files", "-J", "size=32", "-E",
            "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device.path,
            env={**os.environ, "MKE2FS_CONFIG": str(conf)})
    MOUNT.mkdir(parents=True, exist_ok=True)
    command("mount", device.path, MOUNT)
    command("sync", "-f", MOUNT)


def threads(variables):
    """The multithreaded file benchmark: figures as of all fio runs."""
    percentiles = ":".join(map(str, PERCENTILES))
    said = command("fio", "--output-format=json", "--lat_percentiles=1",
                   "--clat_percentiles=0", f"--percentile_list={percentiles}",
                   BENCH / "pass-files.fio",
                   env={**os.environ, **variables, "DIR": str(MOUNT)})
    return figures(json.loads(said[said.index("{"):]), {})


def sysbench(variables):
    """sysbench's file I/O test: MB/s by its number of bytes and its time."""
    total = int(variables["FILES"]) * int(variables["FILE_MB"])
    said = command("sysbench", "fileio", f"--threads={variables['THREADS']}",
                   f"--file-num={variables['FILES']}", f"--file-total-size={total}M",
                   "--file-test-mode=rndrw", f"--events={variables['EVENTS']}", "--time=0",
                   "--rand-seed=712", "run", cwd=MOUNT)
    found = {name: float(re.search(rf"{text}:? +([0-9.]+)", said)[1])
             for name, text in (("read_mbps", "read, MiB/s"), ("write_mbps", "written, MiB/s"))}
    return {name: value * 1.048576 for name, value in found.items()} | {
        "mbps": sum(found.values()) * 1.048576}


BENCHMARKS = {"pass-files": threads, "sysbench": sysbench}


def measure(run):
    """One run on a device and a file system made for it."""
    with Device(run["preset"], memory_backed=1, **run["keys"]) as device:
        make_files(device, run["variables"])
        try:
            device.scheduler(run["scheduler"])
            for name, value in run["tunables"].items():
                device.queue(name, value)
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            device.reset()
            begun = time.monotonic()
            made = BENCHMARKS[run["job"]](run["variables"])
            command("sync", "-f", MOUNT)
            made["seconds"] = time.monotonic() - begun
            stats = device.stats()
        finally:
            command("umount", MOUNT)
    made["ssdemu"] = {key: value for key, value in stats.items()
                      if not isinstance(value, list) or not isinstance(value[0], dict)}
    return made


def main():
    runs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    warm_up(runs)
    for program in ("sysbench", "mkfs.ext4", "mount", "umount", "sync"):
        pathlib.Path(shutil.which(program)).read_bytes()
    # What else the programs read from the host, once.
    for job, variables in (("pass-files", {"FILES": "4", "FILE_MB": "10", "NUMBER": "10"}),
                           ("sysbench", {"FILES": "4", "FILE_MB": "10", "THREADS": "2",
                                         "EVENTS": "100"})):
        measure({"preset": "pass-ssd1", "keys": {}, "scheduler": "none", "tunables": {},
                 "job": job, "variables": variables})
    for name, value in DIRTY.items():
        pathlib.Path(f"/proc/sys/vm/{name}").write_text(str(value))
    for run in runs:
        print(json.dumps(measure(run)), flush=True)


if __name__ == "__main__":
    main()
