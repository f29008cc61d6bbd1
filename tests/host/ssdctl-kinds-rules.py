#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The rules by kind, by made-up files of the kernel: each kind of drive is told by what it shows,
# and udev's rules come to the same; a drive's own rule wins over its kind; rules are printed
# without root; the examples are what is printed, and tuned's selects the same
# quick: host

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check, run  # noqa: E402  (in a folder added above)
from made_drives import DRIVES, made, write  # noqa: E402
from ssd_ctl import (  # noqa: E402
    UsageError, by_kind, command, drives, explicit_rules, hwdb, kinds, persist_kinds, rules, saved,
    schedulers, udev, udev_apply)
from ssd_ctl.choice import Choice  # noqa: E402
from ssd_ctl.setters import files, shell, tuned  # noqa: E402
from ssd_ctl.setters import rules as events  # noqa: E402

EXAMPLES = PROJECT / "Documentation/examples"


def told(found):
    """Each drive is of its kind, also by the rules in the file, which select what is recommended
    for it and nothing for others."""
    file = by_kind.File.recommended("/usr/sbin/ssdctl")
    lines = events.lines_of(pathlib.Path("/x.rules"), file.text())
    for drive in found:
        known = {"DEVTYPE": "disk", **drive.known}
        kind = kinds.of(drive, known)
        check(kind.name == drive.kind, f"{drive.name} is of the kind {kind.name}")
        check(selected(drive, lines, known) == ([kind.scheduler] if kind.scheduler else []),
              f"by the rules {drive.name} gets {kind.scheduler or 'nothing'}")
        choice, name, _ = by_kind.chosen(file, drive, known)
        check((choice and choice.scheduler or "", name) == (
            kind.scheduler, kind.name if kind.scheduler else ""), "the file is understood so, too")
    card = found[0]
    without(*(drive for drive in found if drive.name in ("sda", "sr0")))
    boot = types.SimpleNamespace(**{**vars(card), "name": "mmcblk0boot0"})
    boot.sysfs = card.sysfs.rename(card.sysfs.parent / boot.name)
    check(selected(boot, lines, {"DEVTYPE": "disk"}) == [], "a boot partition gets nothing")
    boot.sysfs.rename(card.sysfs)
    check(selected(card, lines, {"DEVTYPE": "disk", "SSD_IOSCHED": "kyber"}) == [],
          "a model that the hardware database knows is left to it")


def without(stick, disc):
    """What has no scheduler, or no medium of its own, is of no kind, and no rule selects one."""
    file = by_kind.File((by_kind.Entry("all", ('KERNEL=="*"',), "pass"),), "")
    lines = events.lines_of(pathlib.Path("/x.rules"), file.text())
    check(selected(stick, lines, {"DEVTYPE": "disk"}) == ["pass"], "a stick gets what all get")
    (stick.sysfs / "mq").rename(stick.sysfs / "away")
    for drive, what in ((stick, "a drive without a scheduler"), (disc, "a DVD drive")):
        check(kinds.of(drive, {}) is kinds.OTHER, f"{what} is of no kind")
        check(selected(drive, lines, {"DEVTYPE": "disk"}) == [], f"rules give {what} nothing")
    (stick.sysfs / "away").rename(stick.sysfs / "mq")


def selected(drive, lines, known):
    """What a file of rules selects for a drive that is added."""
    device = events.Device(drive.sysfs, drive)
    device.properties = known
    # What the builtin imports is in the properties.
    lines = [line for line in lines if not line.value("IMPORT")]
    return [term[3] for line, sure in events.reached(device, "add", lines) if sure
            for term in line.terms if term[:3] == ("ATTR", "queue/scheduler", "=")]


def order(folder, card):
    """A drive's own rule, one for its model and one for its place win over its kind, which the
    hardware database does, too; the file has its own table; another file is not taken for it."""
    rules.FOLDER, former = folder, udev.properties
    udev.properties = lambda _: {"ID_NAME": "SD16G", "ID_SERIAL": "0x1", "ID_PATH": "at"}
    file = by_kind.File.recommended("/usr/sbin/ssdctl")
    path = rules.kinds_path()
    check(rules.of(card) == [], "without the file nothing is kept")
    path.write_text(file.text())
    found = rules.of(card)
    check([(str(each.choice), each.model, each.edited()) for each in found] ==
          [("pass", "sd", False)] and rules.is_ours(path) and rules.every() == [], "by its kind")
    for match in ({"ID_NAME": "SD16G"}, {"ID_PATH": "at"}, {"ID_SERIAL": "0x1"}):
        own = rules.Rule(Choice("kyber"), "mmcblk[0-9]", match, "SD16G", "ID_NAME" in match, "")
        own.path.write_text(own.text())
        found = rules.of(card)
        check(found[-1] == own and own.path.name < path.name, f"{own.path.name} decides")
        said = []
        wanted = persist_kinds.wanted(card, file, lambda line, said=said: said.append(line))
        check(wanted is None and "by its own rule" in said[0], f"{said}")
        own.path.unlink()
    applied(card, file)
    path.write_text(file.text() + "# Mine\n")
    check(rules.of(card)[0].edited(), "a line of the user's")
    other = by_kind.File((by_kind.Entry("card", ('KERNEL=="mmcblk*"',), "bfq low_latency=0"),), "")
    path.write_text(other.text())
    check(str(rules.of(card)[0].choice) == "bfq low_latency=0" and not rules.of(card)[0].edited(),
          "another version's table")
    for text in ("", "x\ny\n", file.text().replace("ssdctl persist", "me", 1),
                 file.text().replace('"words"', '"word"'), file.text().replace('"pass"', '"p s"')):
        path.write_text(text)
        check(rules.of(card) == [] and not rules.is_ours(path), "another file is none")
    path.unlink()
    udev.properties = former


def applied(card, file):
    """What udev calls selects what the drive's own rule keeps, otherwise what the database says,
    otherwise what is kept for the kind."""
    done, former = [], (drives.find, schedulers.apply, saved.root, dict(os.environ))
    drives.find, saved.root = lambda _: card, lambda: None
    schedulers.apply = lambda _, choice: done.append(choice.scheduler)
    own = rules.Rule(Choice("bfq"), "mmcblk[0-9]", {"ID_SERIAL": "0x1"}, "", False, "")
    # The file without a program leaves the database to the rules that "ssdctl hwdb on" turns on.
    for rule, program, model, meant in ((own, file.program, "kyber", "bfq"),
                                        (None, file.program, "kyber", "kyber"),
                                        (None, "", "kyber", "kyber"), (None, "", "", "pass")):
        rules.kinds_path().write_text(by_kind.File.recommended(program).text())
        if rule:
            own.path.write_text(own.text())
        os.environ |= {"ID_SERIAL": "0x1", "SSD_IOSCHED": model}
        udev_apply.run(types.SimpleNamespace(name=card.name))
        own.path.unlink(missing_ok=True)
        check(done.pop() == meant, f"udev selects {meant}")
    drives.find, schedulers.apply, saved.root = former[:3]
    os.environ.clear()
    os.environ.update(former[3])


# Lines of a file in /etc, for which drives of DRIVES they are, "*" for all, and "?" if that cannot
# be told.
ETC = (
    ('KERNEL=="mmcblk[0-9]*", ATTR{queue/scheduler}="bfq"', "mmcblk0 mmcblk1"),
    ('ACTION=="add|change", KERNEL=="sd*|mmcblk*", ATTR{queue/rotational}=="0", '
     'ATTR{queue/scheduler}="bfq"', "mmcblk0 mmcblk1 sdg"),
    ('SUBSYSTEMS=="usb", ATTR{queue/scheduler}="none"', "sda"),
    ('ATTR{queue/scheduler}!="none", ENV{SSD_IOSCHED_KIND}=="qlc", ATTR{queue/scheduler}:="none"',
     "sdg"),
    ('TEST=="device/cmdq_en", ATTR{queue/scheduler}="noop"', "mmcblk1"),
    ('ATTR{queue/scheduler}="kyber"', "*"),
    ('SUBSYSTEM!="block", GOTO="x"\nKERNEL!="mmcblk0", GOTO="x"\nACTION!="add", GOTO="x"\n'
     'ATTR{queue/scheduler}="bfq"\nLABEL="x"', "mmcblk0"),
    ('KERNEL=="sda", GOTO="x"\nLABEL="x"\nKERNEL=="sdg", ATTR{queue/scheduler}="bfq"', "sdg"),
    ('ACTION=="remove", GOTO="x"\nACTION=="change", KERNEL=="sdg", GOTO="x"\n'
     'KERNEL=="sdg", ATTR{queue/scheduler}="bfq"\nLABEL="x"', "sdg"),
    # What they do not change, do not select, or select later.
    ('KERNEL=="mmcblk0", ATTR{queue/scheduler}=="bfq", ATTR{queue/nr_requests}="4"', ""),
    ('KERNEL=="mmcblk0", ATTR{queue/scheduler}="pass"', ""),
    ('ACTION=="remove", KERNEL=="mmcblk0", ATTR{queue/scheduler}="bfq"', ""),
    ('KERNEL=="mmcblk0", ATTR{../queue/scheduler}="bfq"', ""),
    ('# KERNEL=="mmcblk0", ATTR{queue/scheduler}="bfq"', ""),
    # What a program says decides, or several terms, or what another rule has found out.
    ('KERNEL==i"MMCBLK0", ATTR{queue/scheduler}="bfq"', "?"),
    ('PROGRAM=="/bin/x", ATTR{queue/scheduler}="bfq"', "?"),
    ('KERNEL=="sda", RESULT=="1", ATTR{queue/scheduler}="bfq"', "?"),
    ('KERNEL=="sda", ENV{.X}=="1", ATTR{queue/scheduler}="bfq"', "?"),
    ('KERNEL=="sda", TAG=="x", ATTR{queue/scheduler}="bfq"', "?"),
    ('KERNEL=="$env{X}", ATTR{queue/scheduler}="bfq"', "?"),
    ('KERNEL=="sda", ENV{X}=="1", GOTO="x"\nATTR{queue/scheduler}="bfq"\nLABEL="x"', "?"),
    ('SUBSYSTEMS!="usb", GOTO="x"\nATTR{queue/scheduler}="bfq"\nLABEL="x"', "?"))


def theirs(folder, found):
    """What a rule in /etc selects before the rules by kind stays, also for drives that appear
    later: the file has its conditions."""
    files.ROOT, path = folder, folder / "etc/udev/rules.d/60-x.rules"
    path.parent.mkdir(parents=True)
    file = by_kind.File.recommended("")
    get = {drive.name for drive in found if kinds.of(drive, known_of(drive)).scheduler}
    for text, meant in ETC:
        path.write_text(f"{text}\n")
        lines = explicit_rules.theirs(file)
        left = tuple(each.terms for each in lines if each.terms)
        made = dataclasses.replace(file, left=left)
        parsed = events.lines_of(pathlib.Path("/x.rules"), made.text())
        names = {drive.name for drive in found if drive.name in get and
                 not selected(drive, parsed, known_of(drive))}
        wanted = get if meant == "*" else set(meant.replace("?", "").split())
        check(names == wanted and bool(lines and not left) == (meant == "?"),
              f"{text!r}: {left}, {names}")
    path.rename(path.with_name("99-x.rules"))
    check(explicit_rules.theirs(file) == [], "a file that is read later wins anyway")


def known_of(drive):
    """What udev knows of a drive."""
    return {"DEVTYPE": "disk", **drive.known}


def printed():
    """Rules are printed with their paths, for a machine without drives, and nothing is written; the
    examples are what is printed, and tuned's is understood."""
    for words in (("--recommended", "--all"), ("--recommended", "--all", "--json")):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = command.execute(["persist", *words, "--print"])
        text = out.getvalue()
        check(status == 0 and by_kind.NAME in text, f"persist {' '.join(words)} --print")
    found = json.loads(text)["files"]
    paths = [path.rpartition("/")[2] for path in found]
    check(paths == [by_kind.NAME, persist_kinds.DATABASE], f"files: {paths}")
    example = (EXAMPLES / by_kind.NAME).read_text()
    check(example == by_kind.File.recommended("").text() and "RUN" not in example,
          "the example is what is printed where no ssdctl is")
    check(by_kind.File.recommended("/a b").program == "", "a path that no rule can have")
    for words, because in ((["sda", "--all", "--recommended"], "without sda"),
                           (["--all"], "--all goes with --recommended"), ([], "name a drive"),
                           (["sda", "pass", "--recommended"], "either pass, or --recommended")):
        try:
            command.execute(["persist", *words])
            check(False, f"persist {' '.join(words)} is refused")
        except UsageError as error:
            check(because in str(error), f"persist {' '.join(words)}: {error}")


def by_tuned(folder, card, queued, ssd):
    """tuned's example selects pass for the card and for the QLC SSD that it names, though the
    profile that it includes has a section of all disks, and for no other drive, as a card with a
    command queue."""
    profile = folder / "etc/tuned/ssd-iosched/tuned.conf"
    write(folder, {"etc/tuned/active_profile": "ssd-iosched",
                   "usr/lib/tuned/balanced/tuned.conf": "[disk]\n# devices=sda\n",
                   profile.relative_to(folder):
                   (EXAMPLES / "tuned/ssd-iosched/tuned.conf").read_text()})
    files.ROOT, ssd.name = folder, "sda"
    other = types.SimpleNamespace(**{**vars(ssd), "name": "nvme0n1"})
    for drive, meant in ((card, ["pass"]), (queued, []), (ssd, ["pass"]), (other, [])):
        found = [(each.file, each.value, each.sure) for each in tuned.of(drive)]
        check(found == [("scheduler", value, True) for value in meant], f"{drive.name}: {found}")
    known = {"main": {"summary", "include"},
             "disk": {*tuned.OPTIONS, "type", "priority", "devices"}}
    sections = tuned.profile("ssd-iosched")
    for section, options in sections.items():
        kind = options.get("type", (section,))[0]
        odd = {name for name in options if kind != "sysfs" and name not in known[kind]} | {
            name for name in options if kind == "sysfs" and name != "type" and
            not shell.FILE.fullmatch(name)}
        check(not odd, f"[{section}] has options that tuned knows {odd or ''}")


def database(folder):
    """The database tells QLC flash by the model as udev has it, and selects nothing by that."""
    place = folder / "etc/udev/hwdb.d"
    write(place, {persist_kinds.DATABASE:
                  (PROJECT / "tools/ssdctl/udev" / persist_kinds.DATABASE).read_text()})
    run("systemd-hwdb", f"--root={folder}", "--strict", "update")
    for model, meant in (("Samsung_SSD_870_QVO_1TB", "qlc"), ("INTEL SSDPEKNW010T8", "qlc"),
                         ("CT1000P3PSSD8", "qlc"), ("CT1000MX500SSD1", ""),
                         ("Samsung_SSD_870_EVO_1TB", "")):
        said = run("systemd-hwdb", f"--root={folder}", "query", f"block::name:{model}:fwrev:1:")
        found = dict(line.split("=") for line in said.split())
        check(found.get(kinds.KIND, "") == meant and hwdb.choice_in(found) is None,
              f"{model}: {meant or 'nothing'}")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        found = [made(folder / "devices", name) for name in DRIVES]
        named = {drive.name: drive for drive in found}
        told(found)
        theirs(folder / "theirs", found)
        (folder / "rules").mkdir()
        order(folder / "rules", named["mmcblk0"])
        printed()
        by_tuned(folder / "tuned", *(named[name] for name in ("mmcblk0", "mmcblk2", "sdg")))
        database(folder / "database")


if __name__ == "__main__":
    main()
