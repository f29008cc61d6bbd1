# SPDX-License-Identifier: GPL-2.0
"""ssdctl persist --recommended --all: drives that are here, and those that come, keep what is
recommended for their kind, unless a rule of their own says otherwise. All of it or nothing."""
import contextlib
import fcntl
import pathlib

from ssd_ctl import CtlError, apply, by_kind, drives, keeping, kinds, revert, rules, saved, udev
from ssd_ctl.choice import Choice
from ssd_ctl.said import Said
from ssd_ctl.setters import boot
from ssd_probe.drive import Drive

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


def wanted(drive: Drive, file: by_kind.File, said: Said) -> Choice | None:
    """Return what a drive is to keep by the file, None if it keeps what it has, which is said."""
    own = [rule for rule in rules.of(drive) if not rule.by_kind]
    if own:
        said(f"{drive.path} keeps {own[-1].choice}, by its own rule: {own[-1].path}")
        return None
    known = kinds.properties(drive)
    choice, _, _ = by_kind.chosen(file, drive, known)
    if not choice:
        said(f"{drive.path} keeps what it has: no gain is known for most uses "
             f"({kinds.of(drive, known).title})")
    with contextlib.suppress(CtlError):
        advice = saved.advised(drive)
        if advice and advice.sure and (not choice or advice.choice != choice):
            said(f"ssdctl advise has measured that {advice.choice} is best for {drive.path}: "
                 f"ssdctl persist {drive.path} --recommended keeps that")
    return choice


def former(drive: Drive, said: Said):
    """Restore what a drive had before, if the file keeps something for it until now, and will
    not."""
    kept = rules.of(drive)
    if kept and all(rule.by_kind for rule in kept):
        with apply.locked(drive):
            choices = [rule.choice for rule in kept]
            revert.restore(drive, choices, said)
            saved.forget(drive, choices)


def selected(stack: contextlib.ExitStack, file: by_kind.File, said: Said
             ) -> list[tuple[Drive, Choice, int]]:
    """Select what the drives are to keep; return them, with their choices and the descriptors of
    their locks. @stack: holds the locks, and restores the drives after an error."""
    made = []
    for drive in drives.every():
        choice = wanted(drive, file, said)
        if not choice:
            former(drive, said)
            continue
        lock = stack.enter_context(apply.locked(drive))
        apply.finish_left(drive, said)
        kept = rules.choices(drive)
        stack.enter_context(saved.changing(drive, kept))
        made.append((drive, apply.select_held(drive, choice, kept), lock))
    return made


def proved(drive: Drive, lock: int, reloaded: str) -> tuple[list[str], str]:
    """Prove that a drive keeps what the rules say; return what may set something else, and why no
    event has proved it. @lock: the drive's; @reloaded: why udev does not have the rules."""
    rule = rules.of(drive)[-1]
    if not rule.database:
        rules.verify(drive, rule)
    # udev shares the lock for an event.
    fcntl.flock(lock, fcntl.LOCK_SH)
    failed = reloaded or keeping.stopped(drive)
    return list(map(str, keeping.prove(drive, rule, not failed))), failed


def keep(program: str, said: Said):
    """Install the rules, and select what they say. @program: the path of ssdctl for rules."""
    file, path = by_kind.File.recommended(program), rules.kinds_path()
    said.facts |= {"rule": str(path), "drives": {}, "unsure": []}
    with contextlib.ExitStack() as stack:
        made = selected(stack, file, said)
        for own in rules.every():
            stack.enter_context(rules.written(own.path, own.as_kept(), []))
        stack.enter_context(rules.written(path, file.text(), []))
        reloaded = udev.reload()
        for drive, choice, lock in made:
            unsure, failed = proved(drive, lock, reloaded)
            said.facts["unsure"] += unsure
            said.facts["drives"][drive.path] = choice.as_json()
            said(f"{drive.path} keeps {choice}" + (
                f" ({failed}; no event has shown that it does)" if failed else ""))
            for line in unsure:
                said(line)
    said(f"drives that appear later keep what is recommended for their kind, too: {path}")
    for line in boot.notes():
        said(line)
