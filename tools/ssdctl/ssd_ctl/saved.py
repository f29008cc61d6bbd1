# SPDX-License-Identifier: GPL-2.0
"""Files of /var/lib/ssd-iosched: what a drive had before ssdctl changed it, what was applied to it,
and advice."""
import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Callable

from ssd_ctl import STATE, CtlError, drives, schedulers
from ssd_ctl.choice import Choice
from ssd_probe.drive import Drive

SAVED, ADVICE, APPLIED = STATE / "saved", STATE / "advice", STATE / "applied"
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


def states(drive: Drive) -> dict[str, dict]:
    """Return {instance: choice as JSON} of what drives with the key of this one had before, the
    latest last: several drives may have one serial number."""
    made = read_json(path_of(drive))
    found = made.get("before") if made else {}
    if not isinstance(found, dict):
        raise CtlError(f"{path_of(drive)} is damaged: remove it")
    return found


def before(drive: Drive) -> Choice | None:
    """Return what a drive had before ssdctl changed it, None if it did not."""
    found = states(drive)
    instance = drive.instance() if drive.instance() in found else next(reversed(found), None)
    return choice_in(found, instance, drive, path_of) if instance else None


def is_present(drive: Drive) -> bool:
    """Return true if what was saved is of this boot, and of the drive since it appeared."""
    return drive.instance() in states(drive)


def is_valid(drive: Drive, kept: list[Choice]) -> bool:
    """Return true if what was saved is what the drive had before. @kept: what rules select when the
    drive appears. Without them, what was saved of a drive that has been removed since, or before a
    boot, says nothing any more; nor does it if another drive may have its name now."""
    return is_present(drive) or bool(
        kept and states(drive) and path_of(drive).stem != drives.slug(drive.name))


def keep(drive: Drive, kept: list[Choice]) -> bool:
    """Save what a drive has, unless an older state is saved; return true if it was saved now.
    @kept: what rules select when the drive appears: that is not what the drive had before."""
    if is_valid(drive, kept):
        return False
    if any(schedulers.holds(drive, choice) for choice in kept):
        return False
    there = {each.instance() for each in drives.every(others=True)}
    left = {instance: state for instance, state in states(drive).items() if instance in there}
    write_states(drive, {**left, drive.instance(): schedulers.read_choice(drive).as_json()})
    return True


def write_states(drive: Drive, found: dict[str, dict]):
    """Write what states() returns."""
    if found:
        now = {"drive": drive.describe(), "before": found}
        write_text(path_of(drive), json.dumps(now, indent=1) + "\n")
    else:
        path_of(drive).unlink(missing_ok=True)


def forget(drive: Drive):
    """Remove what before() returns, and what was applied."""
    found = states(drive)
    if found and not found.pop(drive.instance(), None):
        found.popitem()
    write_states(drive, found)
    applied_path(drive).unlink(missing_ok=True)


def applied_path(drive: Drive) -> pathlib.Path:
    """Return the file of what was applied to a drive."""
    return APPLIED / f"{drives.key(drive)}.json"


def keep_applied(drive: Drive, choice: Choice):
    """Store what was applied to a drive: of some tunables the default is not known, so the drive
    does not tell what was meant."""
    made = {"choice": choice.as_json(), "instance": drive.instance()}
    write_text(applied_path(drive), json.dumps(made, indent=1) + "\n")


def applied(drive: Drive) -> Choice | None:
    """Return what was applied to a drive, as far as it still has that; None if it has another
    scheduler."""
    made = read_json(applied_path(drive))
    if not made or made.get("instance") != drive.instance():
        return None
    choice = choice_in(made, "choice", drive, applied_path)
    if schedulers.present(drive) != choice.scheduler:
        return None
    lost = schedulers.differing(drive, choice)
    return Choice(choice.scheduler,
                  {name: value for name, value in choice.tunables.items()
                   if f"iosched/{name}" not in lost},
                  {name: value for name, value in choice.queue.items() if name not in lost})


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
            forget(drive)
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
    return schedulers.possible(
        drive, choice_in(made, "choice", drive, advice_path)) if made else None
