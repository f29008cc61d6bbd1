# SPDX-License-Identifier: GPL-2.0
"""What a report says of a drive: what it is, its queue, statistics, debugfs, and who sets them."""
import os
import re

from ssd_common.drive import BLOCK, Drive, device_number, place_of
from ssd_ctl import CtlError, drives, hwdb, rules, status, udev
from ssd_ctl.choice import Choice
from ssd_ctl.debugfs import debugfs
from ssd_ctl.report import Section
from ssd_ctl.report.bounded import Budget, answer, names_in, text_of
from ssd_ctl.report.facts import add, note, read_all, shown
from ssd_ctl.setters import boot
from ssd_ctl.setters import rules as others

# Files of a drive's folder and of its device: none that identifies one drive.
OF_DISK = ("size", "ro", "removable", "hidden", "stat", "inflight", "ext_range", "cache_type",
           "diskseq", "nsid")
OF_DEVICE = ("vendor", "model", "name", "rev", "firmware_rev", "fwrev", "hwrev", "type", "state",
             "queue_depth", "queue_type", "queue_ramp_up_period", "timeout", "eh_timeout",
             "iorequest_cnt", "iodone_cnt", "ioerr_cnt", "iotmo_cnt", "scsi_level", "manfid",
             "oemid", "date", "preferred_erase_size", "erase_size", "life_time", "pre_eol_info",
             "transport", "queue_count", "sqsize", "cntrltype", "numa_node")
# Of an NVMe namespace they are in the controller's folder, and of a driver's bus above.
PARENTS = ("", "..", "../..")
OF_PCI = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width", "speed")
HCTX = re.compile(r"hctx\d+")
# What debugfs has of a queue; others are numbers of each CPU and bitmaps.
OF_QUEUE = ("state", "flags", "dispatch", "busy", "active", "queued", "run", "type",
            "dispatch_busy", "tags", "sched_tags", "ctx_map")
OF_ROOT = ("state", "pm_only", "requeue_list", "zone_wlock", "zwplugs", "nr_zone_wplugs")

# Options of mounts with a value that is no name.
OF_MOUNT = ("errors", "data", "commit", "barrier", "stripe", "logbufs", "logbsize", "sunit",
            "swidth", "compress", "space_cache", "discard", "fsync_mode", "background_gc")


class Disk:
    """A drive that is looked at and not opened. It may have no medium. @sysfs: its folder."""

    def __init__(self, name: str):
        self.name, self.path = name, drives.device_path(name)
        self.sysfs = BLOCK / name
        self.queue = self.sysfs / "queue"

    @property
    def number(self) -> str:
        """Its number, major:minor."""
        return text_of(self.sysfs / "dev")


def name_of(path: str) -> str:
    """Return the name of the drive that a user means: by a path, a name, or a partition. Opens
    nothing."""
    named = path if "/" in path else f"/dev/{path}"
    if "/" not in path and path not in ("", ".", "..") and (BLOCK / path).is_dir():
        return path
    try:
        place = place_of(device_number(os.stat(named).st_rdev))
    except (OSError, ValueError) as error:
        raise CtlError(f"{named}: {getattr(error, 'strerror', error)}: ssdctl lists the drives"
                       ) from None
    name = place.parent.name if (place / "partition").exists() else place.name
    if not (BLOCK / name).is_dir() or ":" in name:
        raise CtlError(f"{named} is not a block device: ssdctl lists the drives")
    return name


def files_of(disk: Disk) -> dict[str, str]:
    """Return {name: path} of the files in sysfs that tell of a drive."""
    found = {name: disk.sysfs / name for name in OF_DISK}
    for above in PARENTS:
        place = disk.sysfs / "device" / above
        for name in (*OF_DEVICE, *(OF_PCI if above else ())):
            if (place / name).is_file():
                found.setdefault(f"device/{name}", place / name)
    for part in sorted(path.parent for path in disk.sysfs.glob("*/partition")):
        found |= {f"{part.name}/{name}": part / name for name in ("start", "size", "stat",
                                                                  "inflight")}
    for queue in sorted(disk.sysfs.glob("mq/*"), key=lambda path: path.name.zfill(9)):
        found |= {f"mq/{queue.name}/{name}": queue / name for name in names_in(queue)
                  if (queue / name).is_file()}
    return {name: str(path) for name, path in found.items()}


def queue_files(disk: Disk) -> dict[str, str]:
    """Return {name: path} of the settings of a drive's queue and scheduler."""
    found = [disk.queue / name for name in names_in(disk.queue)]
    found += [disk.queue / "iosched" / name for name in names_in(disk.queue / "iosched")]
    return {str(path.relative_to(disk.queue)): str(path) for path in found if path.is_file()}


def debug_files(disk: Disk) -> dict[str, str]:
    """Return {name: path} of what debugfs has of a drive's queues and scheduler. The folder may be
    mounted for the child alone, so the child that lists it also reads it."""
    top = debugfs() / "block" / disk.name
    os.listdir(top)
    found = [top / name for name in OF_ROOT]
    for folder in ("sched", "rqos"):
        found += sorted(path for path in (top / folder).rglob("*") if path.is_file())
    for queue in sorted((name for name in names_in(top) if HCTX.fullmatch(name)),
                        key=lambda name: int(name[4:])):
        found += [top / queue / name for name in OF_QUEUE]
        found += sorted(path for path in (top / queue / "sched").glob("*") if path.is_file())
    return {str(path.relative_to(top)): str(path) for path in found if path.is_file()}


def kinds(disk: Disk) -> dict[str, str]:
    """Return how a drive is attached, and what is on it: types of file systems, no names."""
    drive = object.__new__(Drive)
    drive.name, drive.sysfs, drive.queue = disk.name, disk.sysfs, disk.queue
    made = {"kind": drives.kind(drive), "driver": drive.driver(),
            "holders": " ".join(names_in(disk.sysfs / "holders")),
            "slaves": " ".join(names_in(disk.sysfs / "slaves"))}
    numbers = {text_of(path): path.parent.name for path in
               [disk.sysfs / "dev", *disk.sysfs.glob("*/dev")] if path.is_file()}
    for line in text_of("/proc/self/mountinfo").splitlines():
        fields = line.split()
        if fields[2] in numbers and "-" in fields:
            kind = fields[fields.index("-") + 1]
            made[f"mounted, {numbers[fields[2]]}"] = f"{kind}, {plain_options(fields[-1])}"
    return {name: text for name, text in made.items() if text}


def plain_options(options: str) -> str:
    """Return the options of a mount without those that may have a name as value."""
    return ",".join(option for option in options.split(",")
                    if "=" not in option or option.partition("=")[0] in OF_MOUNT)


def setters(disk: Disk) -> list[str]:
    """Return what sets files of a drive's queue, as files of the system tell."""
    found, units = others.of(disk, "", rules.PREFIX, Choice("none"))
    return [str(each) for each in dict.fromkeys((*found, *boot.of(disk, units)))] + boot.notes()


def kept(disk: Disk) -> dict[str, str]:
    """Return what ssdctl keeps for a drive: rules, advice, the hardware database's choice."""
    drive = Drive(disk.path)
    made = {f"rule {rule.path.name}": text_of(rule.path) for rule in rules.of(drive)}
    rule, advised = status.kept(drive), status.advice(drive)
    made |= {f"kept, {name}": str(value) for name, value in (rule or {}).items()}
    made |= {name: str(value) for name, value in advised.items() if value}
    if hwdb.ENABLED.exists():
        made["the hardware database is on, and says"] = str(hwdb.of(drive) or "nothing")
    known = udev.properties(drive)
    made |= {name: known[name] for name in (hwdb.SCHEDULER, hwdb.TUNABLES, "ID_BUS", "ID_TYPE",
                                            "ID_PATH", "ID_USB_DRIVER", "ID_ATA_ROTATION_RATE_RPM")
             if name in known}
    return made


def read_debugfs(section: Section, disk: Disk, budget: Budget):
    """Add what debugfs has."""
    listed = answer(lambda: debug_files(disk), budget)
    if listed.why:
        section.lacking.append(f"debugfs of {disk.name}: {listed.why}")
        return
    read_all(section, {f"debugfs: {name}": path for name, path in listed.value.items()}, budget,
             lambda path: debugfs() and text_of(path))


def state(name: str, budget: Budget) -> Section:
    """Return what the kernel knows of the drive of this name."""
    disk = Disk(name)
    made = Section(f"drive {name}")
    add(made, f"kind of {name}", lambda: kinds(disk), budget)
    for call in (files_of, queue_files):
        listed = answer(lambda call=call: call(disk), budget)
        note(made, f"files of {name}", listed)
        front = "queue/" if call is queue_files else ""
        read_all(made, {front + each: path for each, path in (listed.value or {}).items()}, budget)
    read_debugfs(made, disk, budget)
    return made


def settings(name: str, budget: Budget) -> Section:
    """Return what sets the scheduler of the drive of this name, of which files are on a drive."""
    disk = Disk(name)
    setting = Section(f"what sets the scheduler of {name}")
    found = answer(lambda: setters(disk), budget, 15)
    setting.facts["found in files"] = "\n".join(found.value or ()) or shown(found)
    if found.value == []:
        setting.facts["found in files"] = "nothing"
    note(setting, f"what sets the scheduler of {name}", found)
    add(setting, f"what ssdctl keeps for {name}", lambda: kept(disk), budget, 15)
    return setting


def names(budget: Budget) -> list[str]:
    """Return the names of the machine's drives."""
    return answer(lambda: drives.names(bare=True), budget).value or []
