# SPDX-License-Identifier: GPL-2.0
"""Made-up files of a system in which something sets the scheduler of a drive, and what ssdctl finds
in them."""
import contextlib
import pathlib
import shutil
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tools/ssdctl"), str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_ctl import keeping, udev  # noqa: E402
from ssd_ctl.choice import Choice  # noqa: E402
from ssd_ctl.setters import files  # noqa: E402

CHOICE = Choice("mq-deadline", {"fifo_batch": "4"}, {"nr_requests": "64"})
OURS = "etc/udev/rules.d/70-ssd-iosched-by-serial-x.rules"
# A service that starts with the machine: a unit, and a link to it.
SERVICE = {"usr/lib/systemd/system/{}.service": "[Service]\nExecStart=/usr/sbin/{}\n",
           "etc/systemd/system/multi-user.target.wants/{}.service": ""}
TO_NONE, MAY = "sets scheduler to none", "may set scheduler to none"
LOOP = "for d in /sys/block/sd*; do\n echo none > $d/queue/scheduler\ndone\n"


def service(name, text=None):
    """Files of a service that starts with the machine."""
    made = {path.format(name): line.format(name) for path, line in SERVICE.items()}
    return made if text is None else made | {f"usr/lib/systemd/system/{name}.service": text}


def drive_in(folder):
    """A drive of the kernel, sda, with a partition, on a bus."""
    host = folder / "sys/devices/pci/usb1/host2"
    place = host / "block/sda"
    (place / "sda1").mkdir(parents=True)
    (place / "queue/iosched").mkdir(parents=True)
    for path, text in ((place / "uevent", ""), (place / "sda1/uevent", ""), (host / "uevent", ""),
                       (place / "sda1/partition", "1"), (place / "queue/rotational", "0\n"),
                       (place / "queue/scheduler", "none [mq-deadline]")):
        path.write_text(text)
    (folder / "sys/bus/usb").mkdir(parents=True)
    (host / "subsystem").symlink_to(folder / "sys/bus/usb")
    return types.SimpleNamespace(name="sda", number="8:0", path="/dev/sda", sysfs=place,
                                 queue=place / "queue")


def properties(device):
    """What udev knows of the drive and of its partition."""
    part = device.sysfs.name == "sda1"
    return {"DEVTYPE": "partition" if part else "disk", "ID_MODEL": "A_disk", "ID_BUS": "usb",
            "DEVLINKS": "" if part else "/dev/disk/by-id/usb-A_disk-0:0 /dev/disk/by-path/x"}


@contextlib.contextmanager
def made_drive():
    """Have the drive of drive_in() and what udev knows of it, until the body ends."""
    udev.properties = properties
    with tempfile.TemporaryDirectory() as place:
        drive = drive_in(pathlib.Path(place))
        drive.folder = pathlib.Path(place)
        yield drive


def found_with(drive, made):
    """What contradicts CHOICE if the system has these files, {path: text}; an empty link to a unit
    is a link to /dev/null if it has no other text."""
    root = pathlib.Path(tempfile.mkdtemp(dir=drive.folder))
    for path, text in made.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.symlink_to("/dev/null")
        else:
            place.write_text(text)
            place.chmod(0o755)
    files.ROOT = root
    rule = types.SimpleNamespace(choice=CHOICE, path=pathlib.Path("/" + OURS))
    said = sorted(map(str, keeping.against(drive, rule)))
    shutil.rmtree(root)
    return said


def finds(drive, what, made, *because):
    """Check what is found: so many, and each says so."""
    said = found_with(drive, made)
    check(len(said) == len(because) and
          all(text in line for text, line in zip(sorted(because), said, strict=False)),
          f"{what}: {said}")
