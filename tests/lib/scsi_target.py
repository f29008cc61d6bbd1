# SPDX-License-Identifier: GPL-2.0
"""Disks of the kernel's SCSI target on the loopback fabric. A logical unit whose ALUA state
changes answers all commands with NOT READY, 04/0a until the change is complete; sd prepares
them again."""

import contextlib
import pathlib
import threading

from checks import modprobe, wait_for

MB, SIZE_MB = 1 << 20, 16
TARGET = pathlib.Path("/sys/kernel/config/target")
CORE = TARGET / "core/fileio_0"
LOOPBACK = TARGET / "loopback"
MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
IMPLICIT_ALUA, OPTIMIZED, NON_OPTIMIZED, IN_TRANSITION = 1, 0, 1, 15
# Milliseconds that a change of state takes; sd retries every second.
TRANSITION = 4000


class Unit:
    """A logical unit of the target of @size_mb, and its disk. @wwn: what the disk says of itself,
    {file in the unit's folder wwn: text}; {} in a text is the unit's number."""

    def __init__(self, number, size_mb, **wwn):
        self.core = CORE / f"unit{number}"
        self.port = LOOPBACK / f"naa.600140500000000{number}"
        self.file = pathlib.Path(f"/dev/shm/unit{number}")
        with open(self.file, "wb") as file:
            file.truncate(size_mb * MB)
        self.core.mkdir(parents=True)
        (self.core / "control").write_text(f"fd_dev_name={self.file},fd_dev_size={size_mb * MB}")
        (self.core / "enable").write_text("1")
        for name in ("emulate_tpu", "emulate_tpws"):
            (self.core / "attrib" / name).write_text("1")
        for name, text in wwn.items():
            (self.core / "wwn" / name).write_text(text.format(number))
        self.group = self.core / "alua/default_tg_pt_gp"
        (self.group / "alua_access_type").write_text(str(IMPLICIT_ALUA))
        (self.group / "trans_delay_msecs").write_text(str(TRANSITION))
        group = self.port / "tpgt_1"
        (group / "lun/lun_0").mkdir(parents=True)
        (group / "nexus").write_text(f"naa.600140600000000{number}")
        self.plug()

    def disks(self):
        """Names of the unit's disks: none, then one."""
        address = (self.port / "tpgt_1/address").read_text().strip()
        return [path.name for path in
                pathlib.Path("/sys/bus/scsi/devices").glob(f"{address}:*/block/*")
                if (path / "queue/scheduler").exists()]

    @contextlib.contextmanager
    def in_transition(self, state):
        """Start a change to this state before the body, and wait for its end after it."""
        change = threading.Thread(target=lambda: (self.group / "alua_access_state")
                                  .write_text(str(state)))
        change.start()
        wait_for(lambda: int((self.group / "alua_access_state").read_text()) == IN_TRANSITION,
                 "the transition")
        yield
        change.join()

    def unplug(self):
        """Remove the unit's disk."""
        (self.port / "tpgt_1/lun/lun_0/unit").unlink()

    def plug(self):
        """Have the unit's disk appear."""
        (self.port / "tpgt_1/lun/lun_0/unit").symlink_to(self.core)
        wait_for(self.disks, f"the disk of {self.core.name}")
        self.name = self.disks()[0]

    def remove(self):
        """Remove the unit."""
        self.unplug()
        for path in ("tpgt_1/lun/lun_0", "tpgt_1", ""):
            (self.port / path).rmdir()
        self.core.rmdir()
        self.file.unlink()


@contextlib.contextmanager
def units(count, size_mb=SIZE_MB, **wwn):
    """Load the target; yield this many units of @size_mb, and remove all of it. @wwn: what the
    disks say of themselves, all the same."""
    for name in ("target_core_mod", "target_core_file", "tcm_loop", "sd_mod"):
        modprobe(name)
    LOOPBACK.mkdir(exist_ok=True)
    # Keep the ALUA device handler out: it would retry by itself.
    before = MODPROBE.read_text()
    MODPROBE.write_text("\n")
    try:
        all_units = [Unit(number, size_mb, **wwn) for number in range(count)]
    finally:
        MODPROBE.write_text(before)
    yield all_units
    for unit in all_units:
        unit.remove()
    CORE.rmdir()
    LOOPBACK.rmdir()
    modprobe("-r", "tcm_loop", "target_core_file")
