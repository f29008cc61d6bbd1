# SPDX-License-Identifier: GPL-2.0
"""What the active profile of tuned sets of a drive's queue."""
import dataclasses
import fnmatch
import os
import pathlib
import re
from collections.abc import Iterator

from ssd_common.drive import Drive, read
from ssd_ctl.setters import Setter, files, shell

ACTIVE = ("etc/tuned/active_profile", "etc/tuned/post_loaded_profile")
PROFILES = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
WHEN = "when tuned starts"
FOLDER = "${i:PROFILE_DIR}"
# {option of [disk]: file below queue/}.
OPTIONS = {"elevator": "scheduler", "readahead": "read_ahead_kb"}
# The buses of the drives that tuned's plugin for disks takes; cards are not among them.
BUSES = ("", "scsi", "virtio", "xen", "nvme")
# Options that a section does not get from the profiles that are included.
OWN = ("type", "enabled", "devices")
# Options that leave it to the machine whether a section counts.
CONDITIONS = ("cpuinfo_regex", "uname_regex")
TRUE = ("1", "true", "True")
# {section: {option: (value, FILE:LINE)}}.
Sections = dict[str, dict[str, tuple[str, str]]]


def profile(name: str, read_already: set[pathlib.Path] | None = None) -> Sections:
    """Return the sections of a profile, with those of the profiles that it includes. One that
    includes its own name means the next file of that name. @read_already: files of profiles"""
    done = set() if read_already is None else read_already
    path = next((path for folder in PROFILES
                 if os.path.isfile(path := files.at(f"{folder}/{name}/tuned.conf"))
                 and path not in done), None)
    if not path:
        return {}
    done.add(path)
    own: Sections = {}
    for number, section, option, text in files.settings(path, headings=True):
        options = own.setdefault(section, {})
        if option:
            value = re.sub(r"\s#.*", "", text).strip("\"'").replace(FOLDER,
                                                                   files.shown(path.parent))
            options[option] = value, f"{files.shown(path)}:{number}"
    included = own.get("main", {}).get("include", ("", ""))[0]
    found: Sections = {}
    # A name after "-" need not be there.
    for other in re.split(r"[,;\s]+", included):
        if other.removeprefix("-"):
            merge(found, profile(other.removeprefix("-"), done))
    merge(found, own)
    return found


def merge(found: Sections, more: Sections):
    """Add sections; an option that is there already gets the new value."""
    for section, options in more.items():
        replaced = options.get("replace", ("0", ""))[0] in TRUE
        kept = {} if replaced else found.get(section, {})
        gone = {*OWN, *re.split(r"\s*[,;]\s*", options.get("drop", ("", ""))[0])}
        found[section] = {name: value for name, value in kept.items() if name not in gone} | options


def depends(options: dict[str, tuple[str, str]]) -> bool:
    """Return true if a section counts on some machines only."""
    return any(name in options for name in CONDITIONS)


def meant(drive: Drive, options: dict[str, tuple[str, str]]) -> bool | None:
    """Return true if a section of disks is for a drive, None if that is not known."""
    if "devices_udev_regex" in options or depends(options):
        return None
    wanted = re.split(r"[,;\s]+", options.get("devices", ("*", ""))[0])
    if any(fnmatch.fnmatchcase(drive.name, name[1:]) for name in wanted if name.startswith("!")):
        return False
    named = [name for name in wanted if not name.startswith("!")] or ["*"]
    return any(fnmatch.fnmatchcase(drive.name, name) for name in named)


def takes(drive: Drive) -> bool:
    """Return true if tuned's plugin for disks takes a drive at all."""
    bus = drive.sysfs / "device/subsystem"
    return read(drive.sysfs / "removable") != "1" and (
        os.path.basename(os.readlink(bus)) if bus.is_symlink() else "") in BUSES


def priority(options: dict[str, tuple[str, str]]) -> int:
    """Return the priority of a section; those with low ones come first."""
    text = options.get("priority", ("0", ""))[0]
    return int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else 0


def disks(drive: Drive, sections: list[dict[str, tuple[str, str]]]) -> Iterator[Setter]:
    """Yield what sections of disks set: the first one that is for a drive takes it."""
    certain = True
    for options in sorted(sections, key=priority) if takes(drive) else ():
        fits = meant(drive, options)
        if fits is False:
            continue
        certain = bool(fits and certain)
        for option, file in OPTIONS.items():
            if option in options:
                value, place = options[option]
                # The least value, or one in sectors, is not known as a number of KiB.
                clear = re.fullmatch(r"[\w-]+" if option == "elevator" else r"\d+", value)
                yield Setter(place, file, value if clear else "", bool(certain and clear), WHEN)
        if fits:
            return


def sysfs(drive: Drive, options: dict[str, tuple[str, str]]) -> Iterator[Setter]:
    """Yield what a section of files of sysfs sets."""
    names = shell.Names.of(drive)
    for path, (value, place) in options.items():
        yield from shell.path_setter(path, names, place, value, WHEN)


def script(drive: Drive, options: dict[str, tuple[str, str]]) -> Iterator[Setter]:
    """Yield what a profile's script sets."""
    value, place = options.get("script", ("", ""))
    path = pathlib.Path(place.rpartition(":")[0]).parent / value
    for found in shell.writes(files.text_of(files.at(path)), shell.Names.of(drive)):
        # It is called to start and to stop.
        yield dataclasses.replace(found, place=f"{path}:{found.place} (run by {place})", sure=False,
                                  when=WHEN)


def of(drive: Drive) -> Iterator[Setter]:
    """Yield what tuned sets."""
    sections: Sections = {}
    for name in (name for path in ACTIVE for name in files.text_of(files.at(path)).split()):
        merge(sections, profile(name))
    by_kind: dict[str, list[dict[str, tuple[str, str]]]] = {}
    for section, options in sections.items():
        if options.get("enabled", ("1", ""))[0] in TRUE:
            by_kind.setdefault(options.get("type", (section, ""))[0], []).append(options)
    yield from disks(drive, by_kind.get("disk", []))
    for kind, setters in (("sysfs", sysfs), ("script", script)):
        for options in by_kind.get(kind, []):
            for found in setters(drive, options):
                yield dataclasses.replace(found, sure=found.sure and not depends(options))
