# SPDX-License-Identifier: GPL-2.0
"""Files of /var/lib/ssd-iosched: what a drive had before ssdctl changed it, and advice."""
import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Callable

from ssd_ctl import STATE, CtlError, drives, schedulers
from ssd_ctl.choice import Choice
from ssd_probe.drive import Drive

SAVED, ADVICE = STATE / "saved", STATE / "advice"
LOCK = pathlib.Path("/run/ssd-iosched.lock")


def root():
    """Raise CtlError unless the user may change drives."""
    if os.geteuid():
        raise CtlError("must be run as root")


@contextlib.contextmanager
def alone():
    """Keep other commands that change drives or files waiting."""
    root()
    with open(LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_text(path: pathlib.Path, text: str):
    """Write a file of ssdctl's own, all of it or nothing."""
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise CtlError(f"{path} cannot be written: {error.strerror}") from None


def read_json(path: pathlib.Path) -> dict | None:
    """Return the contents of a file, None if there is none."""
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CtlError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        made = None
    if not isinstance(made, dict):
        raise CtlError(f"{path} is damaged: remove it")
    return made


def path_of(drive: Drive) -> pathlib.Path:
    """Return the file of what a drive had before."""
    return SAVED / f"{drives.key(drive)}.json"


def choice_in(made: dict, name: str, drive: Drive, place: Callable[[Drive], pathlib.Path]
              ) -> Choice:
    """Return a choice of the contents of the drive's file, which @place tells."""
    try:
        return Choice.from_json(made.get(name, {}))
    except CtlError:
        raise CtlError(f"{place(drive)} is damaged: remove it") from None


def before(drive: Drive) -> Choice | None:
    """Return what a drive had before ssdctl changed it, None if it did not."""
    made = read_json(path_of(drive))
    return choice_in(made, "before", drive, path_of) if made else None


def is_present(drive: Drive) -> bool:
    """Return true if what was saved is of this boot, and of the drive since it appeared."""
    made = read_json(path_of(drive))
    return bool(made) and made.get("instance") == drive.instance()


def is_valid(drive: Drive, kept: list[Choice]) -> bool:
    """Return true if what was saved is what the drive had before. @kept: what rules select when the
    drive appears. Without them, what was saved of a drive that has been removed since, or before a
    boot, says nothing any more; nor does it if another drive may have its name now."""
    path = path_of(drive)
    return is_present(drive) or bool(
        kept and path.exists() and path.stem != drives.slug(drive.name))


def keep(drive: Drive, kept: list[Choice]) -> bool:
    """Save what a drive has, unless an older state is saved; return true if it was saved now.
    @kept: what rules select when the drive appears: that is not what the drive had before."""
    if is_valid(drive, kept):
        return False
    if any(schedulers.holds(drive, choice) for choice in kept):
        return False
    now = {"drive": drive.describe(), "instance": drive.instance(),
           "before": schedulers.read_choice(drive).as_json()}
    write_text(path_of(drive), json.dumps(now, indent=1) + "\n")
    return True


@contextlib.contextmanager
def changing(drive: Drive, kept: list[Choice]):
    """Save what a drive has for revert, and restore what it has now after an error. @kept: what
    rules select when the drive appears."""
    now = schedulers.read_choice(drive)
    new = keep(drive, kept)
    try:
        yield
    except BaseException:
        with contextlib.suppress(CtlError):
            schedulers.restore(drive, now)
        if new:
            path_of(drive).unlink(missing_ok=True)
        raise


def advice_of(key: str) -> pathlib.Path:
    """Return the file of the advice for a drive, by its key."""
    return ADVICE / f"{key}.json"


def advice_path(drive: Drive) -> pathlib.Path:
    """Return the file of the advice for a drive."""
    return advice_of(drives.key(drive))


def keep_advice(drive: Drive, made: dict):
    """Store advice for a drive."""
    text = json.dumps({**made, "instance": drive.instance()}, indent=1) + "\n"
    write_text(advice_path(drive), text)


def advice(drive: Drive) -> dict | None:
    """Return the advice that is stored for a drive; its choice is in "choice". Without a serial
    number, another drive may have the name now: then there is none."""
    key = drives.key(drive)
    made = read_json(advice_of(key))
    known = key != drives.slug(drive.name) or made and made.get("instance") == drive.instance()
    return made if known else None


def advised(drive: Drive) -> Choice | None:
    """Return the choice of the stored advice."""
    made = advice(drive)
    return choice_in(made, "choice", drive, advice_path) if made else None
