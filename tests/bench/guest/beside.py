# SPDX-License-Identifier: GPL-2.0
"""Imported by runs.py: programs that write files on ext4 while the run's job uses another part
of the device."""
import contextlib
import pathlib
import random
import subprocess
import sys
import tarfile

from common import command
from file_system import MOUNT, mounted, set_dirty

# ext4 has the first so many MB of the device.
AREA_MB = 384
# Of the file system: random ones would place the files elsewhere in each run.
UUID = "00000000-0000-4000-8000-000000000001"
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


def make_tree(seed):
    """Make files of 1 to 128 KB in folders, and a tar file of them, in memory."""
    chance, total = random.Random(seed), 0
    while total < TREE_BYTES:
        path = PLACE / f"tree/{chance.randrange(8)}/{chance.randrange(8)}/{total}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(int(2 ** chance.uniform(10, 17))))
        total += path.stat().st_size
    with tarfile.open(PLACE / "tree.tar", "w") as tar:
        tar.add(PLACE / "tree", "tree")


@contextlib.contextmanager
def file_system(device, run):
    """Make ext4 on the device with the files of the run's program. The drive writes during the
    run, not after it."""
    command("rm", "-rf", PLACE)
    make_tree(run["variables"]["SEED"])
    set_dirty(2, 16)
    command("mkfs.ext4", "-q", "-F", "-U", UUID, "-E",
            f"lazy_itable_init=1,lazy_journal_init=1,nodiscard,hash_seed={UUID}",
            device.path, f"{AREA_MB}m")
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
