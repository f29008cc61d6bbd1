# SPDX-License-Identifier: GPL-2.0
"""ssdctl persist --recommended --all: drives that are here, and those that come, keep what is
recommended for their kind, unless a rule of their own, or the administrator's choice, says
otherwise. All of it or nothing."""
import contextlib
import dataclasses
import fcntl
import pathlib

from ssd_common.drive import Drive
from ssd_ctl import (
    CtlError, apply, by_kind, drives, evidence, explicit, explicit_rules, keeping, kinds, revert,
    rules, saved, schedulers, udev)
from ssd_ctl.choice import Choice
from ssd_ctl.said import Said
from ssd_ctl.setters import Setter, boot

# Where the hardware database of the project is, as a file: installed, or in a checkout.
DATABASE = "60-ssd-iosched.hwdb"
PLACES = tuple(map(pathlib.Path, ("/etc/udev/hwdb.d", "/usr/lib/udev/hwdb.d", "/lib/udev/hwdb.d")))
CHECKOUT = pathlib.Path(__file__).resolve().parent.parent / "udev"


def texts(file: by_kind.File) -> dict[pathlib.Path, str]:
    """Return {path: text} of all files that the rules need."""
    database = next((place / DATABASE for place in (CHECKOUT, *PLACES)
                     if (place / DATABASE).exists()), None)
    found = {rules.kinds_path(): file.text()}
    if database:
        found[PLACES[0] / DATABASE] = database.read_text(encoding="utf-8")
    return found


def leaving(file: by_kind.File, said: Said) -> by_kind.File:
    """Return the file with the drives for which the administrator has chosen something else, also
    those that appear later, or that have a scheduler which does better: it leaves them alone, which
    is said."""
    theirs = explicit_rules.theirs(file)
    left, odd = [each.terms for each in theirs if each.terms], []
    told: list[str] = []
    for drive in drives.every():
        known = kinds.properties(drive)
        choice, _, database = by_kind.chosen(file, drive, known)
        if not choice or not all(rule.by_kind for rule in rules.of(drive)):
            continue
        covered = kinds.has(drive, tuple(left), {**known, "DEVTYPE": "disk"})
        why, setter = chosen_instead(drive, choice, database, known)
        if setter and not covered:
            odd.append(setter.place)
        if why and not covered:
            left.append(explicit.condition(drive, choice))
        if why or covered:
            told.append(drive.path)
            said(why or f"{drive.path} is left alone: a rule in /etc selects {choice} for it")
    for each in theirs:
        if each.terms:
            said(f"what {each.place} is for is left to it, also drives that appear later")
    for place in dict.fromkeys(odd):
        said(f"drives that appear later get what is recommended for their kind, also if {place} "
             "selects something else for them")
    said.facts["left"] = told
    return dataclasses.replace(file, left=tuple(dict.fromkeys(left)))


def chosen_instead(drive: Drive, choice: Choice, database: bool, known: dict[str, str]
                   ) -> tuple[str, Setter | None]:
    """Return why a drive is left alone instead of keeping a choice, "" if it is not, and the line
    in /etc that selects something else. @database: the choice is of its model; @known: its
    properties of udev."""
    setter = explicit.by_file(drive, choice)
    if setter:
        return (f"{drive.path} is left alone: {setter.place} selects {setter.value}; to keep "
                f"{choice}: remove that line, then this command again"), setter
    applied = explicit.by_apply(drive, choice)
    if applied:
        return (f"{drive.path} is left alone: {applied} was selected by ssdctl; to keep {choice}: "
                f"ssdctl apply {drive.path} {choice}, then this command again"), None
    # Not if a former version of the file has selected it.
    kept = any(schedulers.holds(drive, rule.choice) for rule in rules.of(drive))
    better = "" if database or kept else evidence.better(
        kinds.of(drive, known).drive, schedulers.present(drive), choice)
    return better and (f"{drive.path} is left alone: {better}; to keep {choice}: "
                       f"ssdctl persist {drive.path} {choice}"), None


def wanted(drive: Drive, file: by_kind.File, said: Said) -> Choice | None:
    """Return what a drive is to keep by the file, None if it keeps what it has, which is said."""
    own = [rule for rule in rules.of(drive) if not rule.by_kind]
    if own:
        said(f"{drive.path} keeps {own[-1].choice}, by its own rule: {own[-1].path}")
        return None
    known = kinds.properties(drive)
    choice, _, _ = by_kind.chosen(file, drive, known)
    if kinds.has(drive, file.left, {**known, "DEVTYPE": "disk"}):
        return None
    if not choice:
        said(f"{drive.path} keeps what it has: no gain is known for most uses "
             f"({kinds.of(drive, known).title})")
    with contextlib.suppress(CtlError):
        advice = saved.advised(drive)
        if advice and advice.sure and (not choice or advice.choice != choice):
            said(f"ssdctl advise has measured that {advice.choice} is best for {drive.path}: "
                 f"ssdctl persist {drive.path} --recommended keeps that")
    return choice


@dataclasses.dataclass
class Changed:
    """A drive that is locked and changed. @choice: what it is to keep, None: it has what it had
    before, because the rules by kind keep nothing for it any more; @kept: what rules selected until
    now; @lock: the descriptor of its lock."""
    drive: Drive
    choice: Choice | None
    kept: list[Choice]
    lock: int


def selected(stack: contextlib.ExitStack, file: by_kind.File, said: Said) -> list[Changed]:
    """Select what the drives are to keep, or what they had before, if the file kept something for
    them until now and will not; return them. @stack: holds their locks, and restores them after an
    error."""
    made = []
    for drive in drives.every():
        choice, found = wanted(drive, file, said), rules.of(drive)
        # What was selected since stays.
        if not choice and not any(rule.by_kind and schedulers.holds(drive, rule.choice)
                                  for rule in found if found[-1].by_kind):
            continue
        lock = stack.enter_context(apply.locked(drive))
        apply.finish_left(drive, said)
        kept = [rule.choice for rule in found]
        stack.enter_context(saved.changing(drive, kept))
        if choice:
            choice = apply.select_held(drive, choice, kept)
        else:
            revert.restore(drive, kept, said)
        made.append(Changed(drive, choice, kept, lock))
    return made


def proved(changed: Changed, reloaded: str) -> tuple[list[str], str]:
    """Prove that a drive keeps what the rules say; return what may set something else, and why no
    event has proved it. @reloaded: why udev does not have the rules."""
    drive = changed.drive
    rule = rules.of(drive)[-1]
    if not rule.database:
        rules.verify(drive, rule)
    # udev shares the lock for an event.
    fcntl.flock(changed.lock, fcntl.LOCK_SH)
    failed = reloaded or keeping.stopped(drive)
    return list(map(str, keeping.prove(drive, rule, not failed))), failed


def show(changed: Changed, unsure: list[str], failed: str, said: Said):
    """Say what a drive keeps, and what proved() returns of it."""
    said.facts["unsure"] += unsure
    said.facts["drives"][changed.drive.path] = changed.choice.as_json()
    said(f"{changed.drive.path} keeps {changed.choice}" + (
        f" ({failed}; no event has shown that it does)" if failed else ""))
    for line in unsure:
        said(line)


def keep(program: str, said: Said):
    """Install the rules, and select what they say. @program: the path of ssdctl for rules."""
    file, path = by_kind.File.recommended(program), rules.kinds_path()
    old = by_kind.read(path)
    lost = rules.lost(path, old and old.text())
    said.facts |= {"rule": str(path), "drives": {}, "unsure": []}
    file = leaving(file, said)
    with contextlib.ExitStack() as stack:
        made = selected(stack, file, said)
        for own in rules.every():
            stack.enter_context(rules.written(own.path, own.as_kept(), []))
        stack.enter_context(rules.written(path, file.text(), []))
        reloaded = udev.reload()
        for changed in made:
            if changed.choice:
                show(changed, *proved(changed, reloaded), said)
        # Nothing fails any more.
        for changed in made:
            if not changed.choice:
                saved.forget(changed.drive, changed.kept)
    said(f"drives that appear later keep what is recommended for their kind, too: {path}")
    for line in (*lost, *boot.notes()):
        said(line)
