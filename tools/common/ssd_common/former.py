# SPDX-License-Identifier: GPL-2.0
"""The settings that a drive's queue had before it was measured.

They are in a file before anything is changed, and until all is restored: by the program that has
changed it, or if that was killed or has crashed, by the next command of ssd-probe or of ssdctl that
changes the drive, which tries it once. The drive's lock is held meanwhile, so whoever holds the
lock and finds a file knows that nobody measures. Settings do not survive a boot, and nor does the
file.
"""
import contextlib
import errno
import json
import pathlib
import re
import time
from collections.abc import Callable, Iterator

from ssd_common import DriveFailed, ToolError, checked, files
from ssd_common.drive import Drive, chosen, read
from ssd_common.signals import uninterrupted

FOLDER = pathlib.Path("/run/ssd-iosched")
# The scheduler comes first, because a change of it changes others.
SCHEDULER, NONE = "scheduler", "none"
# Changed by a change of the scheduler.
SIDE_EFFECTS = ("nr_requests", "async_depth")
SETTINGS = ("nomerges", "wbt_lat_usec", "iostats", "rq_affinity", *SIDE_EFFECTS, "max_sectors_kb",
            "read_ahead_kb", "add_random")
# So long the queue may be frozen, or the device be added, before a change of it fails.
BUSY_S = 5
# Other settings wait until the scheduler's own changes of them, which some make a moment later,
# are over.
SETTLE_S = 0.5
# A file below queue/.
FILE = re.compile(r"(iosched/)?[A-Za-z0-9_]+")
Settings = dict[str, str]


def write(drive: Drive, file: str, value: str):
    """Write a file below queue/; repeat it for some time while the queue is busy."""
    end = time.monotonic() + BUSY_S
    while True:
        try:
            (drive.queue / file).write_text(value)
            return
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EAGAIN) or time.monotonic() > end:
                raise
        time.sleep(0.05)


def are_settings(found) -> bool:
    """Return true if what a file says are Settings."""
    return isinstance(found, dict) and all(FILE.fullmatch(name) and isinstance(value, str)
                                           for name, value in found.items())


def journalled(text: str) -> dict:
    """Return what the text of a journal says, {} if it is none. Checked without a schema: a drive
    has to be restored also where jsonschema is missing, as the benchmark's agent runs."""
    try:
        found = checked.loaded(text)
    except ValueError:
        return {}
    saved = found.get("settings") if isinstance(found, dict) else None
    if isinstance(saved, dict) and are_settings(saved.get("under")):
        bare = saved.get("bare", "")
        return found if bare is None or are_settings(bare) else {}
    return {}


class Journal:
    """The file of a drive's former settings."""

    def __init__(self, drive: Drive, folder: pathlib.Path = FOLDER):
        self.path, self.instance = folder / f"{drive.name}.json", drive.instance()

    def load(self) -> dict | None:
        """Return what a program that has ended has not restored, None if it has. What is said of
        another drive of the name, or before a boot, says nothing of this one."""
        found = journalled(files.read_ours(self.path) or "")
        return found["settings"] if found.get("instance") == self.instance else None

    def save(self, settings: dict):
        """Keep settings."""
        text = json.dumps({"instance": self.instance, "settings": settings}, indent=1)
        files.write_ours(self.path, text + "\n", files.PRIVATE, files.PRIVATE_FOLDER)

    def remove(self):
        """Note that nothing is left to restore. The folder stays: another program may be about to
        make a file in it."""
        self.path.unlink(missing_ok=True)


class QueueSettings:
    """The settings of a drive's queue: changed for the measurements, then restored.

    A change of the scheduler changes other settings, and loses the scheduler's tunables. So
    two sets are saved: "under", with the user's scheduler, and "bare", without one. restore()
    undoes the steps of change() in the opposite order."""

    def __init__(self, drive: Drive, saved: dict | None = None):
        """@saved: of a program that did not restore them."""
        self.drive = drive
        self.saved = saved or {"under": self.present(), "bare": None}

    def present(self) -> Settings:
        """Return the values of all settings that matter, and of the scheduler's tunables."""
        tunables = sorted(path.name for path in self.drive.queue.glob("iosched/*"))
        names = [SCHEDULER, *SETTINGS, *(f"iosched/{name}" for name in tunables)]
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
            write(self.drive, name, value)
        except OSError as error:
            if not self.drive.exists():
                raise DriveFailed(f"{name} cannot be set") from None
            if needed:
                raise ToolError(f"{self.drive.queue / name} does not take {value}: "
                                f"{error.strerror}") from None

    def without_scheduler(self, needed: bool):
        """Select none, and wait until what this changes has its values."""
        if self.value(SCHEDULER) not in ("", NONE):
            self.write(SCHEDULER, NONE, needed)
            time.sleep(SETTLE_S)

    def change(self, keep: Callable[[dict], None], wanted: Settings):
        """Select none and make the settings that are @wanted, of those that the kernel has. @keep:
        is called with the saved settings before each step that changes any."""
        keep(self.saved)
        self.without_scheduler(needed=True)
        if not self.saved["bare"]:
            self.saved["bare"] = self.present()
            keep(self.saved)
        for name, value in wanted.items():
            if self.value(name):
                self.write(name, value)

    def restore(self) -> list[str]:
        """Restore all settings; return the names of those that differ nevertheless."""
        under, bare = self.saved["under"], self.saved["bare"]
        if bare:
            self.without_scheduler(needed=False)
            for name, value in bare.items():
                if name != SCHEDULER and name not in SIDE_EFFECTS:
                    self.write(name, value)
        if SCHEDULER in under:
            self.write(SCHEDULER, under[SCHEDULER])
        for name, value in under.items():
            if name.startswith("iosched/"):
                self.write(name, value)
        if under.get(SCHEDULER, NONE) != NONE:
            time.sleep(SETTLE_S)
        for name, value in under.items():
            self.write(name, value)
        return [name for name, value in under.items() if self.value(name) != value]


def finish(drive: Drive, settings: QueueSettings, journal: Journal, last: bool) -> list[str]:
    """Restore a drive's settings, unless it has disappeared; return the names of those that differ
    nevertheless, for which the journal is kept for one more try. @last: this is that one. A journal
    that is kept for ever would undo all that is selected later."""
    differ = []
    with contextlib.suppress(ToolError):
        differ = settings.restore() if drive.exists() else []
    if last or not differ:
        journal.remove()
    return differ


@contextlib.contextmanager
def changed(drive: Drive, wanted: Settings, say: Callable[[str], None]) -> Iterator[None]:
    """Have a drive, whose lock is held, without a scheduler and with these settings, and restore it
    whatever happens. What a program that was killed has left is restored before: so that is what
    the drive has again. @say: is called with what is not restored."""
    journal = Journal(drive)
    left = journal.load()
    settings = QueueSettings(drive, left)
    try:
        settings.change(journal.save, wanted)
        yield
    finally:
        with uninterrupted():
            differ = finish(drive, settings, journal, last=bool(left))
            if differ:
                say(f"{drive.path} does not take back its former {' '.join(differ)}" +
                    ("" if left else f": ssdctl revert {drive.path} tries again"))


def restore_left(drive: Drive) -> list[str] | None:
    """Restore what a program that was killed has changed; return None if there is nothing to
    restore, otherwise what differs nevertheless, for which there is no other try. The drive's lock
    is held."""
    journal = Journal(drive)
    left = journal.load()
    if not left:
        # Of another drive of this name.
        with contextlib.suppress(OSError):
            journal.remove()
        return None
    with uninterrupted():
        return finish(drive, QueueSettings(drive, left), journal, last=True)
