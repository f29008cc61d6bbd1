# SPDX-License-Identifier: GPL-2.0
"""Imported by runs.py: programs that write files on ext4 while the run's job uses another part
of the device."""
import contextlib
import pathlib
import subprocess
import sys
import tarfile

from common import command
from file_system import MOUNT, make_ext4, make_tree, mounted, set_dirty

# ext4 has the first so many MB of the device.
AREA_MB = 384
TREE_BYTES = 16 << 20
PLACE = pathlib.Path("/run/beside")
# Each round ends when its files are on the drive, and removes them.
PROGRAMS = {
    "untar": "mkdir {mount}/new && tar -x -f {place}/tree.tar -C {mount}/new",
    "copy": "echo 3 >/proc/sys/vm/drop_caches && cp -r {mount}/tree {mount}/new",
}
ROUNDS = """until [ -e {place}/stop ]; do
    {program} && sync -f {mount} && rm -r {mount}/new || exit 1
done"""


def make_archive(seed):
    """Make files of 1 to 128 KB in folders, and a tar file of them, in memory."""
    make_tree(PLACE / "tree", seed, TREE_BYTES, (10, 17))
    with tarfile.open(PLACE / "tree.tar", "w") as tar:
        tar.add(PLACE / "tree", "tree")


@contextlib.contextmanager
def file_system(device, run):
    """Make ext4 on the device with the files of the run's program. The drive writes during the
    run, not after it."""
    command("rm", "-rf", PLACE)
    make_archive(run["variables"]["SEED"])
    set_dirty(2, 16)
    make_ext4(device, AREA_MB)
    with mounted(device, "-o", "noinit_itable"):
        command("cp", "-r", PLACE / "tree", MOUNT)
        command("sync", "-f", MOUNT)
        yield


@contextlib.contextmanager
def repeated(run):
    """Run the program that BESIDE names, again and again. The last round is finished."""
    program = PROGRAMS[run["variables"]["BESIDE"]].format(mount=MOUNT, place=PLACE)
    loop = ROUNDS.format(program=program, mount=MOUNT, place=PLACE)
    with subprocess.Popen(["sh", "-c", loop]) as process:
        try:
            yield
        finally:
            (PLACE / "stop").touch()
            if process.wait():
                sys.exit(f"{run['variables']['BESIDE']} fails")
