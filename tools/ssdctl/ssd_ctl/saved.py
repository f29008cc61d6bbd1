# SPDX-License-Identifier: GPL-2.0
"""Files of /var/lib/ssd-iosched: what a drive had before ssdctl changed it, what was applied to it,
and advice."""
import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable

from ssd_common import ToolError, checked, files, packages
from ssd_common.drive import Drive
from ssd_ctl import STATE, CtlError, drives, schedulers
from ssd_ctl.choice import Choice

SAVED, ADVICE, APPLIED = STATE / "saved", STATE / "advice", STATE / "applied"
LOCK = pathlib.Path("/run/ssd-iosched.lock")
SCHEMAS = pathlib.Path(__file__).resolve().parent / "schemas"
# Choices in a file.
MOST = 8


def root():
    """Raise CtlError unless the user may change drives."""
    if os.geteuid():
        raise CtlError("must be run as root")


@contextlib.contextmanager
def alone():
    """Keep other commands that change drives or files waiting. What is stored can be read again."""
    root()
    packages.need("jsonschema")
    with files.locked(LOCK):
        yield


def read_json(path: pathlib.Path, schema: str) -> dict | None:
    """Return the contents of a file, None if there is none. @schema: the name of what they have to
    fit."""
    try:
        text = files.read_ours(path)
    except ToolError as error:
        raise CtlError(str(error)) from None
    try:
        return None if text is None else checked.parse(text, SCHEMAS / schema)
    except ValueError as error:
        raise CtlError(f"{path} is damaged: remove it ({error})") from None


def path_of(drive: Drive, folder: pathlib.Path = SAVED) -> pathlib.Path:
    """Return the file of what a drive had before, or the one in another @folder."""
    return folder / f"{drives.key(drive)}.json"


def choice_in(made: dict, name: str, drive: Drive, place: Callable[[Drive], pathlib.Path]
              ) -> Choice:
    """Return a choice of the contents of the drive's file, which @place tells."""
    try:
        return Choice.from_json(made.get(name, {}))
    except CtlError:
        raise CtlError(f"{place(drive)} is damaged: remove it") from None


def choices(drive: Drive, folder: pathlib.Path) -> dict[str, Choice]:
    """Return {instance: choice} of the drive's file, the latest last: several drives may have one
    serial number."""
    found = (read_json(path_of(drive, folder), "choices.json") or {"choices": {}})["choices"]
    return {instance: choice_in(found, instance, drive, lambda each: path_of(each, folder))
            for instance in found}


def write_choices(drive: Drive, folder: pathlib.Path, found: dict[str, Choice]):
    """Write what choices() returns, but for very old ones."""
    if not found:
        path_of(drive, folder).unlink(missing_ok=True)
        return
    latest = list(found.items())[-MOST:]
    made = {"drive": drive.describe(),
            "choices": {instance: choice.as_json() for instance, choice in latest}}
    files.write_ours(path_of(drive, folder), json.dumps(made, indent=1) + "\n")


def of_drive(drive: Drive, found: dict[str, Choice], kept: list[Choice]) -> str | None:
    """Return the instance under which a drive's former state is, of those that are @found. @kept:
    what rules select when the drive appears. Without them, what was saved of a drive that has been
    removed since, or before a boot, says nothing any more; nor does it if another drive may have
    its name now, or if it is of another one that is present."""
    if drive.instance() in found:
        return drive.instance()
    if not (kept and found) or drives.key(drive) == drives.slug(drive.name):
        return None
    there = {each.instance() for each in drives.every(others=True)}
    return next((instance for instance in reversed(found) if instance not in there), None)


def before(drive: Drive, kept: list[Choice]) -> Choice | None:
    """Return what a drive had before ssdctl changed it, None if it did not, or if that is not
    known. @kept: what rules select when the drive appears."""
    found = choices(drive, SAVED)
    instance = of_drive(drive, found, kept)
    return found[instance] if instance else None


def keep(drive: Drive, kept: list[Choice]) -> bool:
    """Save what a drive has, unless an older state is saved; return true if it was saved now.
    @kept: what rules select when the drive appears: that is not what the drive had before."""
    found = choices(drive, SAVED)
    if of_drive(drive, found, kept):
        return False
    if any(schedulers.holds(drive, choice) for choice in kept):
        return False
    write_choices(drive, SAVED, found | {drive.instance(): schedulers.read_choice(drive)})
    return True


def forget(drive: Drive, kept: list[Choice]):
    """Remove what before() returns, and what was applied."""
    found = choices(drive, SAVED)
    found.pop(of_drive(drive, found, kept), None)
    write_choices(drive, SAVED, found)
    keep_applied(drive, None)


def keep_applied(drive: Drive, choice: Choice | None):
    """Store what was applied to a drive: of some tunables the default is not known, so the drive
    does not tell what was meant. None: nothing was."""
    found = choices(drive, APPLIED)
    found.pop(drive.instance(), None)
    write_choices(drive, APPLIED, found | ({drive.instance(): choice} if choice else {}))


def applied(drive: Drive) -> Choice | None:
    """Return what was applied to a drive since it appeared, None if nothing was."""
    return choices(drive, APPLIED).get(drive.instance())


@contextlib.contextmanager
def changing(drive: Drive, kept: list[Choice]):
    """Save what a drive has for revert, and restore what it has now after an error. @kept: what
    rules select when the drive appears."""
    now, former = schedulers.read_choice(drive), applied(drive)
    new = keep(drive, kept)
    try:
        yield
    except BaseException:
        with contextlib.suppress(CtlError):
            schedulers.restore(drive, now)
        if new:
            forget(drive, kept)
        keep_applied(drive, former)
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
    files.write_ours(advice_path(drive), text)


def advice(drive: Drive) -> dict | None:
    """Return the advice that is stored for a drive; its choice is in "choice". Without a serial
    number, another drive may have the name now: then there is none."""
    key = drives.key(drive)
    made = read_json(advice_of(key), "advice.json")
    known = key != drives.slug(drive.name) or made and made.get("instance") == drive.instance()
    return made if known else None


@dataclasses.dataclass(frozen=True)
class Advice:
    """Stored advice. @choice: what is recommended, or what leads if it is not @sure. @had: what the
    drive had before, @low, @high: bounds of the gain over none, factors; None where not known."""
    choice: Choice
    sure: bool
    had: Choice | None
    low: float | None
    high: float | None


def advised(drive: Drive) -> Advice | None:
    """Return the stored advice, None if there is none. What does not say that it is sure is not."""
    made = advice(drive)
    if not made:
        return None
    # Former versions stored what leads as the choice; what they called sure was not.
    leading = made.get("leading", made)
    sure = made.get("sure", False) and "leading" in made
    return Advice(choice_in(leading, "choice", drive, advice_path), sure,
                  choice_in(made, "had", drive, advice_path) if "had" in made else None,
                  leading.get("gain_low"), leading.get("gain_high"))
