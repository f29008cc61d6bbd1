# SPDX-License-Identifier: GPL-2.0
"""Whether a drive keeps what its rule says: by files, which tell what else sets it, and by an
event."""
import contextlib
import time
import types

from ssd_common.drive import Drive
from ssd_common.former import SETTLE_S
from ssd_ctl import CtlError, rules, schedulers, udev
from ssd_ctl.choice import Choice, canonical
from ssd_ctl.setters import Setter, boot
from ssd_ctl.setters import rules as others


# By their rules a change event of such a drive or partition starts the array that it belongs to
# (mdadm, bcache-tools).
STARTED = ("linux_raid_member", "isw_raid_member", "ddf_raid_member", "bcache")


def stopped(drive: Drive) -> str:
    """Return why a change event of a drive is not made, "" if it can be: it could start an array
    that the user has stopped."""
    for place in udev.places(drive):
        kind = udev.properties(types.SimpleNamespace(sysfs=place)).get("ID_FS_TYPE", "")
        in_use = any((place / "holders").glob("*")) or (place / "bcache").exists()
        if kind in STARTED and not in_use:
            return (f"a change event could start the array that /dev/{place.name} belongs to "
                    f"({kind})")
    return ""


def same(one: str, other: str) -> bool:
    """Return true if two values of a setting are the same, also as numbers."""
    with contextlib.suppress(ValueError):
        return int(one, 0) == int(other, 0)
    return one == other


def contradicts(choice: Choice, setter: Setter) -> bool:
    """Return true if a setter sets another value than a choice has, or than the default of a
    tunable that the choice does not name."""
    wanted = {"scheduler": choice.scheduler, **choice.settings()}
    if setter.file == "scheduler":
        return canonical(setter.value) != choice.scheduler
    if setter.file in wanted:
        return not same(setter.value, wanted[setter.file])
    folder, _, name = setter.file.rpartition("/")
    known = schedulers.defaults(choice.scheduler).get(name) if folder else None
    return known is not None and not same(setter.value, known)


def against(drive: Drive, rule: rules.Rule) -> list[Setter]:
    """Return what contradicts a rule of a drive, as files tell."""
    return contradicting(drive, rule.path.name, rule.choice)


def contradicting(drive: Drive, ours: str, choice: Choice) -> list[Setter]:
    """Return what sets something else than a choice, as files tell: of rules of udev those after
    the file @ours, "": all."""
    by_rules, units = others.of(drive, ours, rules.PREFIX, choice)
    made = [*by_rules, *boot.of(drive, units)]
    return [each for each in dict.fromkeys(made) if contradicts(choice, each)]


def changes(drive: Drive) -> list[Setter]:
    """Return what will select another scheduler for a drive than it has now, as files tell."""
    now = Choice(schedulers.present(drive))
    return [each for each in contradicting(drive, "", now) if each.file == "scheduler"]


def said(found: list[Setter]) -> str:
    """Return setters as a part of a sentence."""
    return ", ".join(map(str, found))


def lasts(drive: Drive, choice: Choice) -> bool:
    """Return true if a drive has a choice, at once or a moment later."""
    if not schedulers.holds(drive, choice):
        time.sleep(SETTLE_S)
    return schedulers.holds(drive, choice)


def seen(drive: Drive, choice: Choice, found: list[Setter]):
    """Raise CtlError unless a drive has a choice after a change event. @found: what contradicts it,
    as files tell. udev needs the drive's lock."""
    udev.change(drive)
    if not drive.exists():
        raise CtlError(f"{drive.path} has disappeared")
    if not lasts(drive, choice):
        why = [each for each in found if each.on_change]
        refuse(drive, choice, f"{said(why)}: remove it there" if why else
               f"{differs(drive, choice)} after a change event of udev, and no rule of udev says "
               "why")


def refuse(drive: Drive, choice: Choice, why: str):
    """Raise the error that a drive does not keep a choice."""
    raise CtlError(f"{drive.path} does not keep {choice}: {why}")


def differs(drive: Drive, choice: Choice) -> str:
    """Return what a drive has that is not as in a choice."""
    now = schedulers.read_choice(drive)
    if now.scheduler != choice.scheduler:
        return f"it has {now.scheduler}"
    lost, now = schedulers.differing(drive, choice), now.settings()
    changed = {f"iosched/{name}": value for name, value in schedulers.changed(drive).items()}
    return "it has " + " ".join(f"{file.removeprefix('iosched/')}={now.get(file)}"
                                for file in lost or changed)


def prove(drive: Drive, rule: rules.Rule, events: bool) -> list[Setter]:
    """Raise CtlError if a drive does not keep what its rule says; return what may set something
    else, as files tell. @events: a change event shows what happens in one: it is the better
    witness."""
    found = against(drive, rule)
    rest = [each for each in found if not (events and each.on_change and not each.by_action)]
    sure = [each for each in rest if each.sure]
    if sure:
        refuse(drive, rule.choice, f"{said(sure)}: remove it there")
    if events:
        seen(drive, rule.choice, found)
    return rest
