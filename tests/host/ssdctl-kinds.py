#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl persist --recommended --all and revert, by made-up files of the kernel: what is no drive is
# of no kind; a rule of a drive's own comes first, and the rules by kind leave the drive to it;
# to revert a drive's own leaves the kinds, and nothing is lost while a drive is busy, or by a kill;
# --all changes all or nothing, and tells what is lost of its file; what --print prints is what is
# installed; what an administrator has selected stays
# quick: host

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_ctl import (  # noqa: E402
    CtlError, UsageError, apply, by_kind, command, drives, keeping, kinds, persist, persist_kinds,
    revert, rules, saved, schedulers, udev)
from ssd_ctl import explicit as choices  # noqa: E402
from ssd_ctl.choice import Choice  # noqa: E402
from ssd_ctl.rule_lines import KEPT  # noqa: E402
from ssd_ctl.said import Said  # noqa: E402
from ssd_ctl.setters import files  # noqa: E402
from ssd_ctl.setters import rules as events  # noqa: E402

FILES = {"uevent": "", "size": "8", "queue/rotational": "0", "queue/zoned": "none",
         "queue/scheduler": "[none] pass", "mq/0/nr_tags": "64"}


class Drive(types.SimpleNamespace):
    """A card, or a part of it, with files of the kernel in a folder."""

    def __init__(self, folder, name):
        card = folder / "devices" / name
        sysfs = card / "block" / name
        for path, text in ((card / "uevent", ""), (card / "type", "MMC"),
                           *((sysfs / name, text) for name, text in FILES.items())):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        (card / "subsystem").symlink_to(folder / "bus/mmc")
        super().__init__(name=name, path=f"/dev/{name}", number="8:0", sysfs=sysfs,
                         queue=sysfs / "queue", now=Choice("none"), busy=False,
                         known={"ID_NAME": "CARD", "ID_SERIAL": name})

    def identity(self):
        """What the kernel knows."""
        return {"model": "CARD", "serial": self.name, "wwid": ""}

    def describe(self):
        """What files say of it."""
        return self.name

    def instance(self):
        """Which of those that had the name it is."""
        return self.name

    def driver(self):
        """The driver's name."""
        return "mmcblk"

    def exists(self):
        """It is there."""
        return True


def parts(folder):
    """A part of an eMMC for a boot loader is no eMMC, also by the file, and also if the hardware
    database knows the model; the eMMC is."""
    file = by_kind.File.recommended("/usr/sbin/ssdctl")
    rules.kinds_path().write_text(file.text())
    for name, kind, kept in (("mmcblk0", "emmc", ["pass"]), ("mmcblk0boot0", "other", []),
                             ("mmcblk0gp1", "other", []), ("mmcblk0rpmb", "other", [])):
        drive = Drive(folder / name, name)
        check(kinds.of(drive, drive.known).name == kind, f"{name} is of the kind {kind}")
        check([str(rule.choice) for rule in rules.of(drive)] == kept, f"{name} keeps {kept}")
        known = drive.known | {"SSD_IOSCHED": "kyber"}
        found = by_kind.chosen(file, drive, known)[0]
        check(bool(found) == bool(kept), f"{name} of a known model keeps {found}")
    rules.kinds_path().unlink()


def own_rule(name, **match):
    """A rule for a drive."""
    return rules.Rule(Choice("kyber"), "mmcblk[0-9]", match or {"ID_SERIAL": name}, "CARD",
                      "ID_NAME" in match, "")


def first(folder):
    """A rule of a drive's own, as one of a former version that gets the line for it, comes before
    the rules by kind, and tells them to select nothing."""
    drive, file = Drive(folder, "mmcblk0"), by_kind.File.recommended("")
    rules.kinds_path().write_text(file.text())
    device = events.Device(drive.sysfs, drive)
    lines = events.lines_of(rules.kinds_path(), file.text())
    lines = [line for line in lines if not line.value("IMPORT")]
    for own in (own_rule("mmcblk0"), own_rule("", ID_NAME="CARD"), own_rule("", ID_PATH="at")):
        text = own.text()
        line = f'{own.condition()}, ENV{{{KEPT}}}="1"\n'
        check(text.count(line) == 1 and own.path.name < rules.kinds_path().name,
              f"{own.path.name} comes first")
        for former, meant in ((text, text), (text.replace(line, ""), text.replace(line, "") + line),
                              (text.replace(line, "")[:-1], text.replace(line, "") + line)):
            own.path.write_text(former)
            check(own.as_kept() == meant and not own.edited(), "the line is there once")
        own.path.write_text(text + "# Mine\n")
        check(own.edited() and own.as_kept() == text + "# Mine\n", "what was edited stays")
        own.path.unlink()
    for value, meant in (("", ["pass"]), ("1", [])):
        device.properties = {"DEVTYPE": "disk", KEPT: value}
        found = [term[3] for line, _ in events.reached(device, "change", lines)
                 for term in line.terms if term[:3] == ("ATTR", "queue/scheduler", "=")]
        check(found == meant, f"with {KEPT}={value} the rules by kind select {found}")
    # udev remembers the property until the next event.
    drive.known[KEPT] = "1"
    check([rule.model for rule in rules.of(drive)] == ["emmc"], "without the rule its kind decides")
    by_place = own_rule("", ID_PATH="at")
    check(persist.replaced_by_place(drive, by_place) == [], "a rule by the place leaves the kinds")
    own = own_rule("mmcblk0")
    own.path.write_text(own.text())
    check(persist.replaced_by_place(drive, by_place) == [own], "and not the drive's own")
    check(rules.of(drive)[-1] == own, "its own rule decides")
    own.path.unlink()
    rules.kinds_path().unlink()


def three(folder):
    """Three cards that are present, which are kept by their kind and had none before."""
    found = [Drive(folder, f"mmcblk{number}") for number in range(3)]
    drives.every, drives.find = lambda **_: found, lambda name: next(
        drive for drive in found if drive.name == name)
    rules.kinds_path().write_text(by_kind.File.recommended("").text())
    for drive in found:
        saved.write_choices(drive, saved.SAVED, {drive.instance(): Choice("none")})
        drive.now = Choice("pass")
    return found


def had(found):
    """What is known of what drives had before."""
    return [str(saved.choices(drive, saved.SAVED).get(drive.instance())) for drive in found]


def reverted(name):
    """Revert a drive; return the status, or the error, and what is said."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            status = revert.run(types.SimpleNamespace(device=name, json=False))
        except CtlError as error:
            status = str(error)
    return status, out.getvalue()


def undone(folder):
    """To revert one drive restores all that are kept by their kinds, but not one with a rule of its
    own; that of a drive's own leaves the kinds. While one is busy nothing is changed, and after a
    kill the next try restores all."""
    found = three(folder)
    one, other, owner = found
    own = own_rule(owner.name)
    own.path.write_text(own.text())
    owner.now = own.choice
    other.busy = True
    status, said = reverted(one.name)
    check("busy" in str(status) and not said and rules.kinds_path().exists() and
          one.now == other.now == Choice("pass") and had(found) == ["none"] * 3,
          f"one is busy: {status}, {said!r}")
    other.busy = False
    status, said = reverted(owner.name)
    check(status == 0 and owner.now == Choice("pass") and not own.path.exists() and
          rules.kinds_path().exists() and had(found) == ["none"] * 3 and
          f"ssdctl revert {owner.path} again" in said and one.now == Choice("pass"),
          f"its own rule: {status}, {said!r}")
    own.path.write_text(own.text())
    owner.now = own.choice
    udev.reload, reload = killed, udev.reload
    with contextlib.suppress(KeyboardInterrupt):
        reverted(one.name)
    udev.reload = reload
    check(had(found) == ["none"] * 3 and not rules.kinds_path().exists(),
          "after a kill it is known what they had")
    rules.kinds_path().write_text(by_kind.File.recommended("").text())
    one.now = other.now = Choice("pass")
    status, said = reverted(one.name)
    check(status == 0 and one.now == other.now == Choice("none") and owner.now == own.choice and
          had(found) == ["None", "None", "none"] and own.path.exists() and
          not rules.kinds_path().exists(), f"all of the kinds: {status}, {said!r}")
    without_module(owner, own)


def kept(file):
    """Have all drives keep what a file says; return the error, "" without, and what is said."""
    by_kind.File.recommended, known = lambda _: file, by_kind.File.recommended
    error = ""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            persist_kinds.keep("", Said(False))
        except CtlError as failed:
            error = str(failed)
    by_kind.File.recommended = known
    return error, out.getvalue()


def every(folder):
    """Drives for which the file keeps nothing any more get what they had, unless another does not
    keep what it should: then all is as it was. A rule of a drive's own gets its line."""
    found = three(folder)
    one, other, owner = found
    own = own_rule(owner.name)
    former = own.text().replace(f'{own.condition()}, ENV{{{KEPT}}}="1"\n', "")
    own.path.write_text(former)
    owner.now = own.choice
    path, text = rules.kinds_path(), by_kind.File.recommended("").text()
    file = by_kind.File((by_kind.Entry("one", (f'KERNEL=="{one.name}"',), "bfq"),), "")
    keeping.prove, prove = refuse, keeping.prove
    error, _ = kept(file)
    keeping.prove = prove
    check("no module" in error and path.read_text() == text and own.path.read_text() == former and
          one.now == other.now == Choice("pass") and had(found) == ["none"] * 3,
          f"all is as it was: {error}")
    error, said = kept(file)
    check(not error and f"{one.path} keeps bfq\n" in said and path.read_text() == file.text() and
          own.path.read_text() == own.as_kept() != former and
          (one.now, other.now, owner.now) == (Choice("bfq"), Choice("none"), own.choice) and
          had(found) == ["none", "None", "none"] and "lost" not in said, f"all is new: {said!r}")
    for made, lost in ((file.text() + "# Mine\n", "this line is lost: # Mine\n"),
                       ("# Mine\n", "did not write, is replaced; it had: # Mine\n"),
                       (file.text().replace('LABEL="ssd_iosched_end"\n', ""), "is there again\n")):
        path.write_text(made)
        said = kept(file)[1]
        check(said.count(lost) == 1 and path.read_text() == file.text(), f"it is told: {said!r}")
    own.path.unlink()
    path.unlink()


def printed(folder):
    """What is printed of a drive's rule is what is installed: decided advice, undecided advice if
    that is asked for, a named choice, otherwise what the drive has."""
    drive = Drive(folder, "mmcblk0")
    drives.find, drives.every = lambda _: drive, lambda **_: [drive]
    drive.known["USEC_INITIALIZED"] = "1"
    schedulers.changed = lambda _: {}
    for sure, words, meant in ((True, [], "pass"), (False, [], "none"),
                               (False, ["--even-unsure"], "pass"), (True, ["bfq"], "bfq")):
        drive.now = Choice("none")
        saved.advised = lambda _, sure=sure: saved.Advice(Choice("pass"), sure, Choice("none"),
                                                          None, None)
        shown, installed = (ran([drive.name, *words, *more]) for more in (["--print"], []))
        found = json.loads(shown)["files"]
        made = {str(rule.path): rule.path.read_text() for rule in rules.every()}
        check(found == made and json.loads(installed)["choice"]["scheduler"] == meant,
              f"persist {' '.join(words)}, advice that is {'' if sure else 'not '}decided: {meant}")
        for rule in rules.every():
            rule.path.unlink()
        saved.forget(drive, [])
    try:
        command.execute(["persist", drive.name, "--recommended", "--even-unsure"])
        check(False, "both are refused")
    except UsageError as error:
        check("either --even-unsure, or --recommended" in str(error), f"both are refused: {error}")


def ran(words):
    """Run persist; return its JSON."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        command.execute(["persist", *words, "--json"])
    return out.getvalue()


def explicit(folder):
    """A drive is left alone if something else was applied, or if a rule in /etc that comes before
    selects something else for it. A rule of the distribution, or one that selects the same, does
    not count. What a second rule in /etc selects instead stays, too."""
    found = three(folder)
    ruled, applied, plain = found
    ruled.known |= {"USEC_INITIALIZED": "1"}
    files.ROOT = folder
    line = f'SUBSYSTEM=="block", KERNEL=="{ruled.name}", ATTR{{queue/scheduler}}="%s"\n'
    etc, lib = (folder / place / "udev/rules.d" for place in ("etc", "usr/lib"))
    for place in (etc, lib):
        place.mkdir(parents=True)
    made = by_kind.File.recommended("")
    saved.write_choices(applied, saved.APPLIED, {applied.instance(): Choice("bfq")})
    applied.now = Choice("bfq")
    other = "a rule in /etc selects pass for it"
    for texts, left in (({etc / "60-x.rules": "bfq"}, "/etc/udev/rules.d/60-x.rules:1 selects bfq"),
                        ({lib / "60-x.rules": "bfq"}, ""), ({etc / "60-x.rules": "pass"}, ""),
                        ({etc / "60-x.rules": "bfq", etc / "61-x.rules": "pass"}, other)):
        ruled.now = plain.now = Choice("pass")
        for path, scheduler in texts.items():
            path.write_text(line % scheduler)
        error, said = kept(made)
        names = [rule.model for drive in found for rule in rules.of(drive)]
        check(not error and names == ["emmc"] * (1 if left else 2) and
              [drive.now for drive in found] ==
              [Choice("none" if left and left != other else "pass"), Choice("bfq"),
               Choice("pass")],
              f"{texts.values()}: {names}, {error}, {[str(drive.now) for drive in found]}")
        check((f"{ruled.path} is left alone: {left}" in said) == bool(left) and
              ("60-x.rules:1 is for is left to it, also drives that appear later" in said) ==
              bool(left) and "appear later get what is" not in said and
              f"{applied.path} is left alone: bfq was selected" in said and
              f"{plain.path} keeps pass" in said and "no gain" not in said, f"it is told: {said!r}")
        check(by_kind.read(rules.kinds_path()).left and not rules.of(applied) and
              not rules.of(plain)[0].edited(), "the file can be read")
        for path in texts:
            path.unlink()
    applied.now = Choice("pass")
    check("left alone" not in kept(made)[1] and rules.of(applied), "what is recommended is kept")
    rules.kinds_path().unlink()
    plain.now = Choice("bfq")
    _, said = kept(made)
    check(f"{plain.path} is left alone: it has bfq, which does better than pass in: " in said and
          plain.now == Choice("bfq") and not rules.of(plain) and rules.of(applied),
          f"what does better stays: {said!r}")
    for known, terms in (({"ID_SERIAL": "0x7", "ID_PATH": "at"}, 'ENV{ID_SERIAL}=="0x7"'),
                         ({"ID_PATH": "at"}, 'ENV{ID_PATH}=="at"'), ({}, f'"{plain.name}"')):
        plain.known = {"USEC_INITIALIZED": "1", **known}
        found = choices.condition(plain, Choice("pass"))
        check(terms in found and kinds.has(plain, (found,), plain.known | {"DEVTYPE": "disk"}) and
              not kinds.has(ruled, (found,), ruled.known | {"DEVTYPE": "disk"}), f"by {terms}")
    rules.kinds_path().unlink()


def killed():
    """End as a command that is killed."""
    raise KeyboardInterrupt


def without_module(owner, own):
    """The own rule goes even if the kernel has not what is kept for the kind, which is told."""
    rules.kinds_path().write_text(by_kind.File.recommended("").text())
    known, apply.select_held = apply.select_held, refuse
    status, said = reverted(owner.name)
    apply.select_held = known
    check(status == 1 and not own.path.exists() and rules.kinds_path().exists() and
          "does not have pass" in said and "no module" in said, f"no module: {status}, {said!r}")
    rules.kinds_path().unlink()


def refuse(*_):
    """Fail as a kernel without a module."""
    raise CtlError("no module")


@contextlib.contextmanager
def lock(drive):
    """Hold a drive's lock."""
    if drive.busy:
        raise CtlError(f"{drive.path} is busy")
    yield 0


def set_now(drive, choice):
    """Select what a drive has; return what it does not take."""
    drive.now = choice
    return []


def known_of(drive):
    """The properties of a drive, or of a device that stands for it in rules."""
    return getattr(drive, "drive", drive).known


def without_kernel(folder):
    """What a drive has is known here alone, and what ssdctl stores is in a folder."""
    udev.properties, udev.database = known_of, lambda _: {}
    udev.reload = lambda: ""
    saved.alone, apply.locked = contextlib.nullcontext, lock
    apply.finish_left = lambda *_: None
    saved.SAVED, saved.APPLIED, saved.ADVICE = (folder / name for name in ("s", "a", "advice"))
    schedulers.read_choice = lambda drive: drive.now
    schedulers.present = lambda drive: drive.now.scheduler
    schedulers.holds = lambda drive, choice: drive.now == choice
    schedulers.restore = schedulers.apply = set_now
    schedulers.possible = schedulers.as_shown = lambda _, choice: choice
    persist.fcntl = persist_kinds.fcntl = types.SimpleNamespace(flock=lambda *_: None, LOCK_SH=0)
    rules.verify, keeping.stopped = lambda *_: None, lambda _: ""
    keeping.prove = lambda *_: []
    persist.boot = persist_kinds.boot = types.SimpleNamespace(notes=lambda: [])
    saved.path_of.__defaults__ = (saved.SAVED,)


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        without_kernel(folder)
        rules.FOLDER = folder / "rules.d"
        rules.FOLDER.mkdir()
        parts(folder / "parts")
        first(folder / "first")
        undone(folder / "undone")
        every(folder / "every")
        explicit(folder / "explicit")
        printed(folder / "printed")


if __name__ == "__main__":
    main()
