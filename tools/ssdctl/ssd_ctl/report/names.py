# SPDX-License-Identifier: GPL-2.0
"""What identifies this machine, its drives and its users: values to keep out of a report.

Each is found where the kernel and udev have it, of all drives and not only of those in the report:
the log and rules may name any.
"""
import functools
import os
import re
from collections.abc import Callable, Iterator

from ssd_ctl import schedulers
from ssd_ctl.report.bounded import Budget, answers, names_in
from ssd_ctl.report.facts import few
from ssd_ctl.report.machine import at

# Kinds of values, which take their place in the report.
SERIAL, HOST, USER, MOUNT, LABEL = "serial", "host", "user", "mount", "label"
Names = list[tuple[str, str]]
# Files in sysfs that hold numbers of one thing: patterns by the folder.
NUMBERS = {"sys/block": ("serial", "wwid", "device/serial", "device/wwid", "device/cid",
                         "device/uuid", "device/nguid", "device/eui", "uuid", "nguid", "eui",
                         "dm/uuid", "md/uuid"),
           "sys/class/nvme": ("serial", "subsysnqn", "hostnqn", "hostid", "address"),
           "sys/class/nvme-subsystem": ("serial", "subsysnqn"),
           "sys/bus/usb/devices": ("serial",), "sys/bus/mmc/devices": ("serial", "cid"),
           "sys/class/net": ("address",),
           "sys/class/fc_host": ("port_name", "node_name"),
           "sys/class/scsi_device": ("device/wwid",),
           "sys/class/sas_device": ("sas_address",)}
# Pages of SCSI drives with a serial number, and with names.
PAGES = ("device/vpd_pg80", "device/vpd_pg83")
OF_MACHINE = ("sys/class/dmi/id/product_serial", "sys/class/dmi/id/board_serial",
              "sys/class/dmi/id/chassis_serial", "sys/class/dmi/id/product_uuid",
              "proc/sys/kernel/random/boot_id")
OF_HOST = ("proc/sys/kernel/hostname", "proc/sys/kernel/domainname")
LINKS = ("by-id", "by-uuid", "by-partuuid")
LABELS = ("by-label", "by-partlabel")
# What udev knows of a drive or partition.
PROPERTIES = {"ID_SERIAL_SHORT": SERIAL, "ID_SCSI_SERIAL": SERIAL, "ID_WWN": SERIAL,
              "ID_WWN_WITH_EXTENSION": SERIAL, "ID_FS_UUID": SERIAL, "ID_PART_ENTRY_UUID": SERIAL,
              "ID_PART_TABLE_UUID": SERIAL, "ID_FS_LABEL": LABEL, "ID_PART_ENTRY_NAME": LABEL,
              "DM_NAME": LABEL, "DM_UUID": SERIAL, "MD_NAME": LABEL, "MD_UUID": SERIAL}
# Mount points that most machines have.
USUAL_MOUNTS = re.compile(r"/|/(boot|efi|home|usr|var|tmp|opt|srv|mnt|media|dev|proc|sys|run|root)"
                          r"(/(efi|log|lib|cache|tmp|local|user|lock|shm|pts|mqueue|hugepages|fs|"
                          r"kernel|firmware|debug|tracing|credentials|rpc_pipefs|security|config|"
                          r"bpf|cgroup|fuse|connections|efivars|pstore|\d+|binfmt_misc|sys))*")
REMOTE = re.compile(r"//(?:([^/@]+)@)?([^/@]+)/|(?:([^/@]+)@)?([^/@]+):(?:/|$)")
PORT = re.compile(r":\d+$")
# Bytes of a file: a name that is cut off would stay in.
MOST_FILE = 2 << 20
FIRST_USER, NOBODY = 1000, 65534
VARIABLES = ("USER", "LOGNAME", "SUDO_USER", "DOAS_USER")
HEX = re.compile(r"(?:0x|naa\.|eui\.|nguid\.|uuid\.|wwn-0x|t10\.)", re.I)
ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})|\\([0-7]{3})")


def unescaped(text: str) -> str:
    """Return a name as udev or the kernel escapes it, without escapes."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16) if found[1] else int(found[2], 8)), text)


def text_at(path: str) -> str:
    """Return the text of a file, "" if it is not there."""
    try:
        with open(at(path), "rb") as file:
            return file.read(MOST_FILE).decode(errors="replace").strip("\0\n ")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def first(path: str) -> str:
    """Return the text of a file of the kernel or udev, "" if it cannot be read."""
    try:
        return text_at(path)
    except OSError:
        return ""


def page_words(path: str) -> list[str]:
    """Return the texts and the numbers in a page of SCSI's vital product data."""
    try:
        with open(at(path), "rb") as file:
            data = file.read(4096)[4:]
    except OSError:
        return []
    words = [found.decode() for found in re.findall(rb"[ -~]{6,}", data)]
    # A designator of page 83: code set, type, and after a byte the length of what follows.
    place = 0
    while path.endswith("83") and place + 4 <= len(data):
        size = data[place + 3]
        words.append(data[place + 4:place + 4 + size].hex())
        place += 4 + size
    return words


def numbers_of(folder: str, name: str) -> Names:
    """Return the numbers of a thing in a folder of sysfs, and a mapped drive's names."""
    place = f"{folder}/{name}"
    found = [(SERIAL, first(f"{place}/{file}")) for file in NUMBERS[folder]]
    if folder == "sys/block":
        found += [(SERIAL, word) for page in PAGES for word in page_words(f"{place}/{page}")]
        found += [(LABEL, word) for word in mapped(place)]
    return found


def mapped(place: str) -> list[str]:
    """Return the names of what the device mapper and LVM have made."""
    name = first(f"{place}/dm/name")
    if not first(f"{place}/dm/uuid").startswith("LVM-"):
        return [name]
    # GROUP-VOLUME, in which a dash of a name is written twice.
    parts = [part.replace("--", "-") for part in re.split("(?<!-)-(?!-)", name)]
    return [name, "/".join(parts), *parts]


def linked() -> Names:
    """Return the names that udev's links have."""
    found = [(SERIAL, re.sub(r"-part\d+$", "", name)) for folder in LINKS
             for name in names_in(at(f"dev/disk/{folder}"))]
    return found + [(LABEL, name) for folder in LABELS
                    for name in names_in(at(f"dev/disk/{folder}"))]


def known_to_udev() -> Names:
    """Return what udev's database has of drives and partitions."""
    found = []
    for name in names_in(at("run/udev/data")):
        if not name.startswith("b"):
            continue
        pairs = dict(line[2:].partition("=")[::2] for line in
                     first(f"run/udev/data/{name}").splitlines() if line.startswith("E:"))
        found += [(PROPERTIES[key], value) for key, value in pairs.items() if key in PROPERTIES]
        # Without another serial number it may be made of the model alone.
        if "ID_SERIAL_SHORT" not in pairs and pairs.get("ID_BUS") not in ("usb", "ata"):
            found.append((SERIAL, pairs.get("ID_SERIAL", "")))
    return found


def of_machine() -> Names:
    """Return the numbers of the machine that the kernel has, and its domain."""
    return [(SERIAL, first(path)) for path in OF_MACHINE] + [
        pair for path in OF_HOST for pair in host_names(first(path))]


def host_names(name: str) -> Names:
    """Return a machine's name with and without its domain."""
    return [(HOST, name), (HOST, name.partition(".")[0])]


def at_hand() -> Names:
    """Return the names for which no file is read: of the machine and of the caller."""
    return host_names(os.uname().nodename) + [(USER, os.environ.get(name, ""))
                                              for name in VARIABLES]


def accounts() -> Names:
    """Return the names of people's accounts, their real names and folders."""
    found = []
    for fields in (line.split(":") for line in text_at("etc/passwd").splitlines()):
        if len(fields) > 5 and fields[2].isdigit() and FIRST_USER <= int(fields[2]) != NOBODY:
            found += [(USER, fields[0]), (USER, fields[4].partition(",")[0]), (MOUNT, fields[5])]
    return found


def elsewhere(source: str) -> Names:
    """Return the machines, and the user, in what is mounted from elsewhere: //HOST/SHARE, or
    USER@HOST:/FOLDER, of several hosts with commas."""
    match = REMOTE.match(unescaped(source))
    if not match:
        return []
    hosts = [PORT.sub("", host).strip("[]") for host in (match[2] or match[4]).split(",")]
    return [(USER, match[1] or match[3] or ""), *((HOST, host) for host in hosts),
            *((HOST, host.partition(".")[0]) for host in hosts if not host[0:1].isdigit())]


def mounts() -> Names:
    """Return mount points, and what is mounted from elsewhere."""
    found = []
    for fields in map(str.split, first("proc/self/mountinfo").splitlines()):
        if "-" not in fields:
            continue
        point, source = fields[4], fields[fields.index("-") + 2]
        if not USUAL_MOUNTS.fullmatch(point):
            found += [(MOUNT, point), (MOUNT, unescaped(point))]
        if re.search(r"[:@]|^//", source) or "/" in source and not source.startswith("/dev/"):
            found += [(MOUNT, source), (MOUNT, unescaped(source)), *elsewhere(source)]
    return found


# {what is asked: the call}, without what sysfs has: first what is in memory, then what is on a
# drive, which may hang.
IN_MEMORY: dict[str, Callable[[], Names]] = {
    "proc/self/mountinfo": mounts, "run/udev/data": known_to_udev, "dev/disk": linked,
    "dev/md": lambda: [(LABEL, name) for name in names_in(at("dev/md"))],
    "numbers of the machine": of_machine}
ON_DRIVE: dict[str, Callable[[], Names]] = {
    "etc/passwd": accounts, "home": lambda: [(USER, name) for name in names_in(at("home"))],
    **{path: lambda path=path: host_names(text_at(path)) for path in ("etc/hostname",
                                                                      "etc/mailname")},
    **{path: lambda path=path: [(SERIAL, text_at(path))] for path in ("etc/machine-id",
                                                                      "etc/hostid")}}


def forms(kind: str, value: str) -> Iterator[str]:
    """Yield the forms in which a value may appear."""
    plain = unescaped(value).strip()
    yield plain
    if kind == SERIAL:
        yield HEX.sub("", plain)
        if 4 <= len(plain) <= 64 and plain.isascii():
            # As in a dump of a drive's answer.
            yield plain.encode().hex()


def usual(value: str) -> bool:
    """Return true if a value identifies nothing: only zeros, or a scheduler's name."""
    return (re.fullmatch(r"(0x)?[0\W_]*", value) is not None or
            value.lower() in (*schedulers.ALL, "root", "localhost", "(none)", "none"))


def things(budget: Budget, silent: dict[str, list[str]]) -> dict[str, Callable[[], Names]]:
    """Return the questions for the things in sysfs. Adds to @silent the folders that cannot be
    listed, {why: folders}."""
    made: dict[str, Callable[[], Names]] = {}
    for each in answers(lambda folder: names_in(at(folder)), NUMBERS, budget):
        if each.why:
            silent.setdefault(each.why, []).append(each.item)
        made |= {f"{each.item}/{name}": functools.partial(numbers_of, each.item, name)
                 for name in each.value or ()}
    return made


def known(budget: Budget) -> tuple[Names, list[str]]:
    """Return (kind, value) of all that is to be kept out, and what could not be asked. Each file
    that may not answer is a question of its own, so that no other name is lost with it."""
    silent: dict[str, list[str]] = {}
    questions = {**IN_MEMORY, **things(budget, silent), **ON_DRIVE}
    found = dict.fromkeys(at_hand())
    for each in answers(lambda name: questions[name](), questions, budget):
        if each.why:
            silent.setdefault(each.why, []).append(each.item)
        found |= {(kind, value): None for kind, value in each.value or ()}
    return ([(kind, value) for kind, value in found if value.strip()],
            [f"names that are NOT left out ({few(names)}): {why}" for why, names in silent.items()])
