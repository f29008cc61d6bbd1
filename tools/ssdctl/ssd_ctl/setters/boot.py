# SPDX-License-Identifier: GPL-2.0
"""What sets files of a drive's queue when the machine boots, or later, other than rules of udev:
tmpfiles.d, units of systemd, sysfsutils, rc.local, tuned, TLP and laptop-mode-tools."""
import dataclasses
import os
import pathlib
import re
from collections.abc import Iterator

from ssd_common.drive import Drive, read
from ssd_ctl import udev
from ssd_ctl.setters import Setter, files, shell, tuned

BOOT = "when the machine boots"
# Of units that start others: what names them.
STARTS = re.compile(r"^(?:Wants|Requires|BindsTo|Requisite|Upholds|Unit)\s*=(.*)", re.MULTILINE)
EXEC = re.compile(r"\s*(Exec(?:Start|StartPre|StartPost|Reload))\s*=\s*")
# With such a line a unit may not start.
CONDITION = re.compile(r"^\s*(?:Condition|Assert)\w+\s*=[ \t]*\S", re.MULTILINE)
# Units of these kinds start the service of their name.
TRIGGERS = (".timer", ".path", ".socket")
TLP = ("usr/share/tlp/defaults.conf", "etc/default/tlp", "etc/tlp.d", "etc/tlp.conf")
TLP_DISKS = "nvme0n1 sda"
LAPTOP_MODE = "etc/laptop-mode/laptop-mode.conf"
# They may set a scheduler by what another machine, or an application's vendor, tells them.
AGENTS = ("puppet", "salt-minion", "chef-client", "cfengine3", "saptune", "sapconf")
# Files of a unit, and what they have.
Texts = list[tuple[pathlib.Path, str]]


def shell_setters(path: pathlib.Path, names: shell.Names, when: str = BOOT,
                  known: dict[str, str] | None = None) -> Iterator[Setter]:
    """Yield what the shell in a file sets."""
    for found in shell.writes(files.text_of(path), names, known):
        yield dataclasses.replace(found, place=f"{files.shown(path)}:{found.place}", when=when)


def tmpfiles(names: shell.Names) -> Iterator[Setter]:
    """Yield what systemd-tmpfiles writes."""
    for path in files.layered("tmpfiles.d", "*.conf"):
        for number, line in enumerate(files.text_of(path).splitlines(), 1):
            # Type, path, mode, user, group, age, argument.
            words = line.split(None, 6)
            if len(words) == 7 and words[0].startswith("w"):
                yield from shell.path_setter(words[1].strip('"'), names,
                                       f"{files.shown(path)}:{number}", words[6].strip(), BOOT)


def every_unit(found: files.Units, first: set[str]) -> dict[str, Texts]:
    """Return {name: its files and their texts} of units that are started: the @first, and what
    they start."""
    made: dict[str, Texts] = {}
    left = set(first)
    while left:
        name = left.pop()
        made[name] = found.texts(name)
        stem, dot, kind = name.rpartition(".")
        new = {f"{stem}.service"} if dot + kind in TRIGGERS else set()
        for _, text in made[name]:
            new |= {each for names in STARTS.findall(text) for each in names.split()}
        left |= new - set(made)
    return made


def commands(texts: Texts) -> list[tuple[str, str]]:
    """Return (FILE:LINE, line) of the commands of a unit: an empty one resets those before it."""
    made: dict[str, list[tuple[str, str]]] = {}
    for path, text in texts:
        for number, line in files.joined(text):
            found = EXEC.match(line)
            if found and found.end() == len(line):
                made.pop(found[1], None)
            elif found:
                made.setdefault(found[1], []).append((f"{files.shown(path)}:{number}", line))
    return [each for lines in made.values() for each in lines]


def units(names: shell.Names, found: files.Units, first: set[str]) -> Iterator[Setter]:
    """Yield what units of systemd set that start with the machine, or that rules of udev start:
    @first."""
    usual = every_unit(found, first | found.wanted)
    for name, texts in sorted((every_unit(found, found.unusual) | usual).items()):
        sure = name in usual and not any(CONDITION.search(text) for _, text in texts)
        instance = name.rpartition(".")[0].partition("@")[2].replace("\\x2d", "-")
        for place, line in commands(texts):
            command = line.replace("%i", instance).replace("%I", instance) if instance else line
            for each in command_setters(command, names, place):
                yield dataclasses.replace(each, sure=each.sure and sure)


def command_setters(command: str, names: shell.Names, place: str) -> Iterator[Setter]:
    """Yield what a command of a unit sets: the command itself, or a script that it runs."""
    # In a unit $$ is a $ of the shell, %% a %.
    command = command.replace("$$", "$").replace("%%", "%")
    for found in shell.writes(command, names):
        yield dataclasses.replace(found, place=place, when=BOOT)
    words = command.partition("=")[2].lstrip("@-:+!").split()
    for at, word in enumerate(words):
        if word.startswith("/"):
            known = {str(number): text for number, text in enumerate(words[at + 1:], 1)}
            for found in shell_setters(files.at(word), names, known=known):
                yield dataclasses.replace(found, place=f"{found.place} (run by {place})")


def sysfsutils(names: shell.Names) -> Iterator[Setter]:
    """Yield what sysfsutils writes."""
    for path in (files.at("etc/sysfs.conf"), *sorted(files.at("etc/sysfs.d").glob("*.conf"))):
        for number, _, name, value in files.settings(path):
            yield from shell.path_setter(name, names, f"{files.shown(path)}:{number}", value, BOOT)


def rc_local(names: shell.Names) -> Iterator[Setter]:
    """Yield what rc.local sets, if it is executable."""
    for name in ("etc/rc.local", "etc/rc.d/rc.local"):
        path = files.at(name)
        if os.path.isfile(path) and path.stat().st_mode & 0o111:
            yield from shell_setters(path, names)


def tlp(drive: Drive) -> Iterator[Setter]:
    """Yield what TLP sets, which applies its settings again when the power source changes."""
    found: dict[str, tuple[str, str]] = {"DISK_DEVICES": (TLP_DISKS, "")}
    for name in TLP:
        path = files.at(name)
        for each in sorted(path.glob("*.conf")) if os.path.isdir(path) else [path]:
            for number, _, key, value in files.settings(each):
                found[key] = value.strip("\"'"), f"{files.shown(each)}:{number}"
    if "DISK_IOSCHED" not in found or found.get("TLP_ENABLE", ("1",))[0] == "0":
        return
    called = {drive.name, *(link.rpartition("/")[2]
                            for link in udev.properties(drive).get("DEVLINKS", "").split())}
    value, place = found["DISK_IOSCHED"]
    for disk, scheduler in zip(found["DISK_DEVICES"][0].split(), value.split(), strict=False):
        if disk in called and scheduler not in ("keep", "_"):
            yield Setter(place, "scheduler", scheduler, True, "when TLP starts")


def laptop_mode(drive: Drive, names: shell.Names) -> Iterator[Setter]:
    """Yield what laptop-mode-tools set: read_ahead_kb, and what commands of the user's do."""
    main = files.at(LAPTOP_MODE)
    found = {name: (value.strip("\"'"), number)
             for number, _, name, value in files.settings(main)}
    if found.get("CONTROL_READAHEAD", ("0",))[0] == "1":
        disks = {each for word in found.get("HD", ("",))[0].split()
                 for each in shell.expanded(word, "", {})}
        meant = any(pathlib.PurePath(f"/dev/{drive.name}").match(disk) for disk in disks)
        for name in ("LM_READAHEAD", "NOLM_READAHEAD"):
            if meant and name in found:
                value, number = found[name]
                yield Setter(f"/{LAPTOP_MODE}:{number}", "read_ahead_kb", value, True,
                             "when laptop-mode starts")
    for path in sorted(files.at("etc/laptop-mode/conf.d").glob("*.conf")):
        yield from shell_setters(path, names, "when laptop-mode starts")


def of(drive: Drive, wanted: set[str]) -> Iterator[Setter]:
    """Yield what sets files of a drive's queue. @wanted: units that rules of udev start."""
    names, found = shell.Names.of(drive), files.Units()
    yield from tmpfiles(names)
    yield from units(names, found, wanted)
    yield from rc_local(names)
    for service, made in (("sysfsutils", lambda: sysfsutils(names)), ("tlp", lambda: tlp(drive)),
                          ("laptop-mode", lambda: laptop_mode(drive, names)),
                          ("tuned", lambda: tuned.of(drive))):
        if found.started(service):
            yield from made()


def notes() -> list[str]:
    """Return what does not set a scheduler although it looks so, or may without a file of this
    machine."""
    found = re.search(r"(?:^|\s)(elevator=\S+)", read(files.at("proc/cmdline")))
    said = ([f"{found[1]} of the kernel's command line has no effect since Linux 5.0"]
            if found else [])
    units_found = files.Units()
    agents = [name for name in AGENTS if units_found.started(name)]
    return said + [f"{name} runs here: what it sets is not known" for name in agents]
