#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl recommend and persist --recommended, by made-up files of the kernel: each kind of drive is
# told by what it shows, and udev's rules come to the same; what is recommended gains by the
# published figures and is nowhere worse in all; advice and the hardware database come first; a
# drive's own rule wins over its kind; rules are printed without root; the documents, the examples
# and the table agree; the answer takes less than two seconds
# quick: host

import contextlib
import io
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/ssd-probe")]

from checks import check, run  # noqa: E402  (in a folder added above)
from ssd_ctl import (  # noqa: E402
    UsageError, by_kind, command, drives, evidence, hwdb, kinds, persist_kinds,
    recommend, rules, saved, schedulers, udev, udev_apply)
from ssd_ctl.choice import Choice  # noqa: E402
from ssd_ctl.setters import files, shell, tuned  # noqa: E402
from ssd_ctl.setters import rules as events  # noqa: E402
from ssd_probe import ProbeError  # noqa: E402

EXAMPLES = PROJECT / "Documentation/examples"
# {drive: (its kind, folders from the bus down to the device with (subsystem, driver), files of the
# device, files of the disk, properties of udev)}. The last folder but one has the host.
SD = {"type": "SD", "preferred_erase_size": "4194304"}
PCI = ("pci0", "pci", "")
USB = (PCI, ("usb1", "usb", "usb"), ("1-1:1.0", "usb", "usb-storage"), ("host2", "scsi", ""))
UAS = (*USB[:2], ("1-1:1.0", "usb", "uas"), USB[3])
ATA = (PCI, ("ata1", "", ""), ("host0", "scsi", ""))
SCSI = ("0:0:0:0", "scsi", "sd")
MMC = (PCI, ("mmc0", "mmc_host", ""), ("mmc0:0001", "mmc", "mmcblk"))
NVME = (PCI, ("nvme0", "nvme", "nvme"))
CARD, FLASH, QLC = {"mq/0/nr_tags": "64"}, {"queue/rotational": "0"}, {"SSD_IOSCHED_KIND": "qlc"}
MANY = {**FLASH, "mq/1/nr_tags": "1023"}
DRIVES = {
    "mmcblk0": ("sd", MMC, SD, {**FLASH, **CARD}, {}),
    "mmcblk1": ("emmc", MMC, {"type": "MMC", "cmdq_en": "0"}, {**FLASH, **CARD}, {}),
    # With a command queue it takes fewer.
    "mmcblk2": ("other", MMC, {"type": "MMC", "cmdq_en": "1"}, {**FLASH, "mq/0/nr_tags": "32"}, {}),
    "mmcblk3": ("other", MMC, {"type": "SD"}, {**FLASH, "mq/0/nr_tags": "31"}, {}),
    # Most sticks do not say that they do not rotate.
    "sda": ("stick", (*USB, SCSI), {"model": "Stick"}, {"removable": "1"}, {}),
    # A DVD drive is removable, too.
    "sr0": ("other", (*USB, ("0:0:0:0", "scsi", "sr")), {"model": "DVD"}, {"removable": "1"}, {}),
    "sdb": ("disk", (*USB, SCSI), {"model": "Enclosure"}, {}, {}),
    "sdc": ("other", (*USB, SCSI), {"model": "Enclosure"}, FLASH, {}),
    "sdd": ("uas", (*UAS, SCSI), {"model": "Portable SSD"}, FLASH, {}),
    "sde": ("disk", (*UAS, SCSI), {"model": "Portable disk"}, {}, {}),
    "sdf": ("sata", (*ATA, SCSI), {"model": "SSD"}, FLASH, {}),
    "sdg": ("qlc", (*ATA, SCSI), {"model": "Samsung SSD 870 QVO"}, FLASH, QLC),
    "sdh": ("disk", (*ATA, SCSI), {"model": "Disk"}, {}, {}),
    "sdi": ("virtual", (*ATA, SCSI), {"model": "QEMU HARDDISK   "}, FLASH, {}),
    "sdj": ("other", (PCI, ("host3", "scsi", ""), SCSI), {"model": "RAID"}, FLASH, {}),
    "sdk": ("other", (*ATA, SCSI), {"model": "Many queues"}, MANY, {}),
    "sdl": ("zoned", (*ATA, SCSI), {"model": "Zoned"}, {"queue/zoned": "host-managed"}, {}),
    "nvme0n1": ("nvme", NVME, {"model": "SSD"}, MANY, {}),
    "nvme1n1": ("qlc-other", NVME, {"model": "INTEL SSDPEKNW010T8"}, MANY, QLC),
    "vda": ("virtual", (PCI, ("virtio0", "virtio", "virtio_blk")), {}, FLASH, {}),
}
DISK = {"size": "8", "hidden": "0", "removable": "0", "queue/rotational": "1",
        "queue/zoned": "none", "queue/scheduler": "[mq-deadline] none", "mq/0/nr_tags": "32",
        "uevent": ""}


def write(folder, texts):
    """Write files, {path: text}."""
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{text}\n")


def made(folder, name):
    """Make the files of a drive; return it."""
    kind, way, device, disk, known = DRIVES[name]
    place = folder / name
    for part, subsystem, driver in way:
        place = place / part
        write(place, {"uevent": ""})
        for link, target in (("subsystem", subsystem), ("driver", driver)):
            if target:
                (place / link).symlink_to(folder / link / target)
    write(place, device)
    sysfs = place / "block" / name
    write(sysfs, {**DISK, **disk})
    (sysfs / "device").symlink_to(place)
    return types.SimpleNamespace(
        name=name, path=f"/dev/{name}", number="8:0", sysfs=sysfs, queue=sysfs / "queue", kind=kind,
        known=known, driver=lambda: way[-1][2], exists=lambda: True,
        identity=lambda: {"model": device.get("model", ""), "serial": "", "wwid": ""})


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


def gains():
    """What is recommended gains, by what is published, and no load is worse by more than 2 % in
    all its figures than under none or what the kernel selects; costs are shown."""
    for kind in kinds.KINDS:
        if kind.strength == kinds.NOTHING:
            check(not kind.scheduler, f"{kind.name}: nothing is known, nothing is recommended")
            continue
        found, costs = evidence.of(kind.drive, kind.scheduler, kind.usual)
        check(found and costs, f"{kind.name}: {len(found)} gains, {len(costs)} costs")
        for workload in {cell["workload"] for cell in evidence.cells()
                         if cell["drive"] == kind.drive}:
            for peer in {"none", kind.usual}:
                score = evidence.score(kind.drive, workload, kind.scheduler, peer)
                check(score >= evidence.WORSE,
                      f"{kind.name}, {workload}: {score:+.2f} against {peer}")
    # The drive qlc has no SLC cache in the cells.
    for kind in kinds.KINDS:
        if "qlc" in (kind.drive, *(each.drive for each in kind.instead)):
            check("once its SLC cache is full" in kind.why and kind.strength != kinds.EMULATED,
                  f"{kind.name}: {kind.strength}; {kind.why}")
    check("no SLC cache" in (PROJECT / recommend.PAGE).read_text(), "the page says so, too")
    # A figure that no scheduler decides is in neither list.
    equal = [cell for cell in evidence.cells() if cell["drive"] == "nvme" and
             cell["workload"] == "start beside a copy"]
    shown = [each.workload for ways in evidence.of("nvme", "pass", "none") for each in ways]
    check(equal and equal[0]["workload"] not in shown, "what is equal is not shown")
    text = str(evidence.Figure("sd", "start", "start_s", "selected", "pass",
                               {"pass": 1.06, "none": 60, "bfq": 1200}))
    check(text == "start: an application starts, s: 1.06 (none 60 or more, bfq 60 or more)", text)
    for figure, means, better in (("start_s", {"pass": 1, "bfq": 2}, True),
                                  ("ops_s", {"pass": 1, "bfq": 2}, False),
                                  ("read_mbps", {"pass": 1, "none": 2}, True),
                                  ("write_p99", {"pass": 1, "bfq": 2}, True),
                                  ("write_p99", {"pass": 2, "bfq": 1}, False),
                                  ("write_p99", {"pass": 2}, True)):
        each = evidence.Figure("sd", "x", figure, "selected", "pass", means)
        check(each.better("bfq") == better, f"{figure} of {means} is better: {better}")
    _, costs = evidence.of("qlc", "pass", "mq-deadline")
    late = [str(each) for each in costs if each.figure == "write_p99"]
    check(any("a write waits (99 %), ms: 563 (none 260" in each for each in late),
          f"how late writes are is a cost: {late}")
    figures = [evidence.Figure("sd", str(at), "ops_s", "selected", "pass", {"pass": 8, "bfq": at})
               for at in (8, 2, 0, 4)]
    order = [each.workload for each in evidence.telling(figures, "bfq")]
    check(order == ["0", "2", "4", "8"], f"what differs most comes first: {order}")


def losses(card):
    """Of what it costs the worst is shown first, one figure of each load, and no gain."""
    def figure(load, name, own, none, usual):
        return evidence.Figure("sd", load, name, "selected", "pass",
                               {"pass": own, "none": none, "mq-deadline": usual})
    small, large, lost, late = (
        figure("a", "write_mbps", 9, 10, 9.5), figure("a", "read_mbps", 800, 900, 1),
        figure("b", "ops_s", 1, 1, 4), figure("c", "write_p99", 30, 10, 40))
    found = evidence.worst([small, large, lost, late], "none", "mq-deadline")
    check(found == [lost, late, large], f"order: {[each.workload for each in found]}")
    answer = recommend.Recommendation(kinds.KINDS[1], Choice("pass"), kinds.EMULATED, "", {},
                                      costs=[small, large, lost, late], present="mq-deadline")
    shown = [line.strip() for line in recommend.lines(card, answer) if "costs:" in line]
    check(shown == [f"costs:  {each}" for each in found], f"the answer has this order: {shown}")
    costs = evidence.of("sd", "pass", "mq-deadline")[1]
    first = evidence.worst(costs, "none", "mq-deadline")[0]
    check((first.workload, first.figure) == ("package installation beside 4 sync readers",
                                             "read_mbps"), f"a card's worst: {first}")


def as_it_is(card):
    """A drive that has a scheduler which does better than what is recommended keeps it; one that
    is worse does not decide, and what it does better is a cost."""
    former, saved.advised = saved.advised, lambda _: None
    for has, meant in (("bfq", "None"), ("kyber", "pass"), ("none", "pass"), ("pass", "pass"),
                       ("unknown", "pass")):
        (card.sysfs / "queue/scheduler").write_text(f"none mq-deadline [{has}]\n")
        found = recommend.of(card)
        why = "it has bfq, which does better than pass in: key-value store beside a backup"
        check((str(found.choice), found.why == why) == (meant, has == "bfq") and
              found.present == found.as_json()["present"] == has,
              f"it has {has}: {found.choice}, {found.why}")
        if has == "bfq":
            shown = "\n".join(recommend.lines(card, found))
            store = [each for each in found.others[0].costs if each.figure == "ops_s"]
            check(str(found.others[0].choice) == "pass" and store and
                  recommend.KEEP in shown and f"why:    {why}" in shown and
                  "--recommended" not in shown and "554 (bfq 825" in shown, shown)
    (card.sysfs / "queue/scheduler").write_text(DISK["queue/scheduler"] + "\n")
    saved.advised = former


def agree():
    """The documents say what the table says; the rows of README.md name schedulers that are
    recommended for their kinds, or instead."""
    run(PROJECT / "scripts/doc-kinds", "--check")
    check(True, "README.md, ssdctl(8), recommend.md and the evidence are as the table has them")
    named = {kind.name: {kind.scheduler, *(each.scheduler for each in kind.instead)}
             for kind in (*kinds.KINDS, kinds.OTHER)}
    recommended = {kind.name: kind.scheduler for kind in (*kinds.KINDS, kinds.OTHER)}
    for row in kinds.README:
        for kind in row.kinds:
            check(not row.use.startswith("no") or not recommended[kind],
                  f"{row.machine}, {row.trouble}: {kind} keeps what it has")
            fits = any(f"`{name}`" in row.use for name in named[kind] if name)
            check(kind in named and fits != row.use.startswith("no"), f"{row.machine}: {row.use}")


def sources(card):
    """Advice that is decided comes before the database, that before the kind; what is undecided or
    wrong is noted."""
    former = kinds.properties, saved.advised, schedulers.available
    schedulers.available = lambda _: ["none", "pass", "kyber"]
    sure = saved.Advice(Choice("bp"), True, None, 1.3, 2.0)
    for what, model, advice, choice, strength, note in (
            ("the kind", "", None, "pass", kinds.EMULATED, ""),
            ("the model", "kyber", None, "kyber depth=3", kinds.MODEL, ""),
            ("a wrong entry", "k y", None, "pass", kinds.EMULATED, "hardware database is wrong"),
            ("advice", "kyber", sure, "bp", kinds.MEASURED, "the running kernel has no bp"),
            ("undecided advice", "", saved.Advice(Choice("bp"), False, None, None, None), "pass",
             kinds.EMULATED, "undecided, bp leads")):
        saved.advised = lambda _, advice=advice: advice
        kinds.properties = lambda _, model=model: model and {
            "SSD_IOSCHED": model, "SSD_IOSCHED_TUNABLES": "depth=3"} or {}
        found = recommend.of(card)
        check((str(found.choice), found.strength) == (choice, strength) and
              note in " ".join(found.notes) and bool(note) == bool(found.notes),
              f"{what}: {found.choice}, {found.strength}, {found.notes}")
        check(bool(found.gains) == (strength == kinds.EMULATED), "figures are of a kind alone")
    kinds.properties, saved.advised, schedulers.available = former


def register(card):
    """bp's blocks are those that the card tells, if that can be."""
    former = saved.advised
    saved.advised = lambda _: None
    other = recommend.of(card).others[0]
    check(str(other.choice).startswith("bp block_size_kb=4096 "), f"{other.choice}")
    for text in ("0", "x", str(1 << 50), "512"):
        (card.sysfs / kinds.ERASE_SIZE).write_text(text)
        other = recommend.of(card).others[0]
        check("block_size_kb" not in str(other.choice), f"{text}: {other.choice}")
    shown = "\n".join(recommend.lines(card, recommend.of(card)))
    check("mmcblk0: pass\n" in shown and "SD card" in shown and "tags=64" in shown and
          "gains:  start beside a copy" in shown and
          "costs:  package installation beside 4 sync readers: read" in shown and
          shown.count("gains") == recommend.SHOWN + recommend.SHOWN_OF_OTHER and
          "not on a real one" in shown and "persist /dev/mmcblk0 --recommended" in shown,
          "a text for eyes")
    saved.advised = former


def origins(card, stick):
    """Figures that are of another matrix than the usual one name it; those of a choice that sets
    more than the scheduler say that this was not set."""
    former, saved.advised = saved.advised, lambda _: None
    shown = {drive.name: recommend.lines(drive, recommend.of(drive)) for drive in (card, stick)}
    saved.advised = former
    bare = "(figures: with nothing else set)"
    for drive, meant in ((card, True), (stick, False)):
        line = next(line for line in shown[drive.name] if "or:     bp " in line)
        check(line.endswith(bare) == meant, line.strip())
    full = [line for line in shown[stick.name] if "4 sequential writers" in line]
    check(full and all(line.endswith(", Documentation/results/full.md") for line in full),
          f"figures of the full matrix: {full}")
    check(not any("results/" in line for line in shown[card.name]), "a card's are as selected")
    check(bare not in str(recommend.Other("x", Choice("pass"), *evidence.of("sd", "pass"))),
          "a scheduler alone")


def probed(folder, card):
    """What a report of ssd-probe says fits is shown, too; a file that is none ends in a line."""
    former, saved.advised = saved.advised, lambda _: None
    values = {"mapping": "block", "erase_block_kb": 2048, "open_blocks": 2}
    path = folder / "report.json"
    path.write_text(json.dumps({"schema": 1, "findings": {
        name: {"value": value} for name, value in values.items()}}))
    found = recommend.of(card, str(path)).others[-1]
    check(str(found.choice).startswith("bp block_size_kb=2048 open_blocks=2 ") and
          "by ssd-probe, the drive maps whole erase blocks" in found.trouble, f"{found.choice}")
    for text in ("", "{}", '{"schema": 1}'):
        path.write_text(text)
        try:
            recommend.of(card, str(path))
            check(False, f"{text!r} is refused")
        except ProbeError as error:
            check("is no report of ssd-probe" in str(error), f"{text!r}: {error}")
    saved.advised = former


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
    """tuned's example selects pass for the card and for the QLC SSD that it names, and for no other
    drive, as a card with a command queue."""
    profile = folder / "etc/tuned/ssd-iosched/tuned.conf"
    write(folder, {"etc/tuned/active_profile": "ssd-iosched",
                   profile.relative_to(folder):
                   (EXAMPLES / "tuned/ssd-iosched/tuned.conf").read_text()})
    files.ROOT, ssd.name = folder, "sda"
    other = types.SimpleNamespace(**{**vars(ssd), "name": "nvme0n1"})
    for drive, meant in ((card, ["pass"]), (queued, []), (ssd, ["pass"]), (other, [])):
        found = [(each.file, each.value, each.sure) for each in tuned.of(drive)]
        check(found == [("scheduler", value, True) for value in meant], f"{drive.name}: {found}")
    known = {"main": {"summary", "include"}, "disk": {*tuned.OPTIONS, "type", "devices"}}
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


def at_once():
    """The answer for all drives of this machine takes less than two seconds of a CPU, and reads
    nothing of Python's numerical modules."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-B", "-X", "importtime",
                           PROJECT / "tools/ssdctl/ssdctl", "recommend", "--json"],
                          capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    check(done.returncode == 0 and "drives" in json.loads(done.stdout), "JSON")
    heavy = [name for name in ("numpy", "scipy", "matplotlib") if f" {name}\n" in done.stderr]
    check(took < 2 and not heavy, f"in {took:.2f} s of a CPU {heavy or ''}")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        found = [made(folder / "devices", name) for name in DRIVES]
        named = {drive.name: drive for drive in found}
        told(found)
        gains()
        losses(named["mmcblk0"])
        agree()
        as_it_is(named["mmcblk0"])
        sources(named["mmcblk0"])
        register(named["mmcblk0"])
        origins(named["mmcblk0"], named["sda"])
        probed(folder, named["mmcblk0"])
        (folder / "rules").mkdir()
        order(folder / "rules", named["mmcblk0"])
        printed()
        by_tuned(folder / "tuned", *(named[name] for name in ("mmcblk0", "mmcblk2", "sdg")))
        database(folder / "database")
    at_once()


if __name__ == "__main__":
    main()
