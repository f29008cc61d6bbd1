# SPDX-License-Identifier: GPL-2.0
"""The settings of a drive's queue, which are changed for the measurements and restored
afterwards."""
import contextlib
import struct
import time

from ssd_probe import DriveFailed, ProbeError
from ssd_probe.drive import Drive, chosen, read

# Other settings wait until the scheduler's own changes of them, which some make a moment later,
# are over.
SETTLE_S = 0.5
# What is measured with; each if the kernel has it. The scheduler comes first, because a change
# of it changes others.
SCHEDULER = "scheduler"
MEASURING = {"nomerges": "2", "wbt_lat_usec": "0", "iostats": "1", "rq_affinity": "2"}
# Changed by a change of the scheduler.
SIDE_EFFECTS = ("nr_requests", "async_depth")


class QueueSettings:
    """The settings of a drive's queue: changed for the measurements, then restored.

    A change of the scheduler changes other settings, and loses the scheduler's tunables. So
    two sets are saved: @under, with the user's scheduler, and @bare, without one. restore()
    undoes the steps of change() in the opposite order."""

    def __init__(self, drive: Drive, saved: dict | None = None):
        """@saved: of a run that did not restore them."""
        self.drive = drive
        self.saved = saved or {"under": self.present(), "bare": None}

    def present(self) -> dict[str, str]:
        """Return the values of all settings that matter, and of the scheduler's tunables."""
        names = [SCHEDULER, *MEASURING, *SIDE_EFFECTS, "max_sectors_kb"]
        tunables = sorted(path.name for path in self.drive.queue.glob("iosched/*"))
        names += [f"iosched/{name}" for name in tunables]
        return {name: self.value(name) for name in names if self.value(name)}

    def value(self, name: str) -> str:
        """Return the value of a setting as it is written."""
        text = read(self.drive.queue / name)
        return chosen(text) if name == SCHEDULER or name.startswith("iosched/") else text

    def write(self, name: str, value: str, needed: bool = False):
        """Change a setting unless it has this value. An error is raised only if the value is
        @needed."""
        if self.value(name) == value:
            return
        try:
            (self.drive.queue / name).write_text(value)
        except OSError as error:
            if not self.drive.exists():
                raise DriveFailed(f"{name} cannot be set") from None
            if needed:
                raise ProbeError(f"{self.drive.queue / name} does not take {value}: "
                                 f"{error.strerror}") from None

    def change(self, keep):
        """Make the settings those that are measured with. @keep: a function that is called with
        the saved settings before each step that changes any."""
        keep(self.saved)
        if self.saved["under"].get(SCHEDULER, "none") != "none":
            self.write(SCHEDULER, "none", needed=True)
            time.sleep(SETTLE_S)
        if not self.saved["bare"]:
            self.saved["bare"] = self.present()
            keep(self.saved)
        for name, value in MEASURING.items():
            if self.value(name):
                self.write(name, value)
        most = self.drive.number_of("max_hw_sectors_kb")
        if most:
            self.write("max_sectors_kb", str(min(most, 4096)))

    def restore(self) -> list[str]:
        """Restore all settings; return the names of those that differ nevertheless."""
        for name, value in (self.saved["bare"] or {}).items():
            if name != SCHEDULER and name not in SIDE_EFFECTS:
                self.write(name, value)
        under = self.saved["under"]
        if SCHEDULER in under:
            self.write(SCHEDULER, under[SCHEDULER])
        tunables = {name: value for name, value in under.items() if name.startswith("iosched/")}
        for name, value in tunables.items():
            self.write(name, value)
        if under.get(SCHEDULER, "none") != "none":
            time.sleep(SETTLE_S)
        for name, value in under.items():
            self.write(name, value)
        return [name for name, value in under.items() if self.value(name) != value]


@contextlib.contextmanager
def awake_cpus():
    """Keep the CPUs out of sleep states from which they take long to wake up."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            # pylint: disable=consider-using-with
            file = stack.enter_context(open("/dev/cpu_dma_latency", "wb", buffering=0))
            file.write(struct.pack("i", 0))
        yield
