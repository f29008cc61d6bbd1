# SPDX-License-Identifier: GPL-2.0
"""What udev knows of a drive, and what ssdctl asks of udevadm."""
import pathlib
import re
import subprocess
from collections.abc import Mapping

from ssd_common.drive import Drive
from ssd_common.packages import with_sbin
from ssd_ctl import CtlError

# The first version that has udevadm verify.
VERIFY = 254
TIMEOUT_S = 300
# Properties that have the model of a drive; of cards the second one.
MODELS = ("ID_MODEL", "ID_NAME")


def udevadm(*words: str) -> subprocess.CompletedProcess:
    """Run udevadm."""
    return called("udevadm", *words)


def called(*command: str) -> subprocess.CompletedProcess:
    """Run a program of udev's package."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              env=with_sbin(), errors="replace", timeout=TIMEOUT_S)
    except FileNotFoundError:
        raise CtlError(f"{command[0]} is missing: install udev") from None
    except subprocess.TimeoutExpired:
        raise CtlError(f"{command[0]} {command[1]} has not ended in {TIMEOUT_S} s") from None


def pairs(text: str) -> dict[str, str]:
    """Return {name: value} of lines NAME=VALUE."""
    found = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in found}


def version() -> int:
    """Return udev's version."""
    match = re.match(r"\d+", udevadm("--version").stdout)
    return int(match[0]) if match else 0


def properties(drive) -> dict[str, str]:
    """Return what udev's rules have found out about a drive or partition, which has a folder
    @drive.sysfs."""
    return pairs(udevadm("info", "--query=property", f"--path={drive.sysfs}").stdout)


def first(found: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the first of these properties that a drive has."""
    return next(({name: found[name]} for name in names if found.get(name)), {})


def model(found: Mapping[str, str]) -> str:
    """Return the model of a drive by its properties, "" if udev knows none."""
    return next(iter(first(found, MODELS).values()), "")


def database(found: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the hardware database has for the model in a drive's
    properties."""
    name = model(found)
    if not name:
        return {}
    query = f"block::name:{name}:fwrev:{found.get('ID_REVISION', '')}:"
    return pairs(called("systemd-hwdb", "query", query).stdout)


def problem(path: str) -> str:
    """Return what udevadm verify says against a file of rules, "" if nothing."""
    if version() < VERIFY:
        return ""
    done = udevadm("verify", path)
    if not done.returncode:
        return ""
    said = (done.stderr + done.stdout).strip().splitlines()
    return f"udevadm verify says: {said[0] if said else 'nothing'}"


def test(drive: Drive) -> list[str]:
    """Return the output of udevadm test for a drive that is added. Before version 256 the test
    applies the rules to the drive."""
    done = udevadm("test", "--action=add", str(drive.sysfs))
    return (done.stdout + done.stderr).splitlines()


def places(drive: Drive) -> list[pathlib.Path]:
    """Return the folders of a drive and of its partitions."""
    return [drive.sysfs, *sorted(path.parent for path in drive.sysfs.glob("*/partition"))]


def change(drive: Drive):
    """Have udev process a change of a drive and of its partitions, as after a change of its
    partition table, and wait for the end. An add event would mount drives, or activate volumes,
    which the user has taken out of use."""
    done = udevadm("trigger", "--action=change", "--settle",
                   *(str(place.resolve()) for place in places(drive)))
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["nothing"])[0]
        raise CtlError(f"udev does not process a change of {drive.path}: udevadm says: {why}")


def reload() -> str:
    """Have udev read its rules and hardware database again; return what fails, "" if nothing. Told
    twice: udev drops what arrives between its accept() and SO_PASSCRED, which then has no sender,
    and udevadm does not know (version 252). It would see the change later, with an event at least
    3 s after the one before."""
    try:
        failed = any(udevadm("control", "--reload").returncode for _ in range(2))
    except CtlError as error:
        return str(error)
    return "udev does not run: it reads the rules when it starts" if failed else ""
