# SPDX-License-Identifier: GPL-2.0
"""A made-up machine with names and serial numbers, of which ssdctl makes a report."""
import contextlib
import io
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = PROJECT / "tools/ssdctl"
sys.path[:0] = [str(TOOL), str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_ctl import command  # noqa: E402
from ssd_ctl.report import kernel_log, machine, of_drive  # noqa: E402

# Seconds of a CPU in which all ends that is bounded here.
SOON = 8
SERIAL, WWN, UUID = "S3Z8NB0K123456", "5002538e40a1b2c3", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
HOST, PERSON, LABEL = "goldfinch", "annabel", "Holiday Pictures"
SECRETS = (SERIAL, WWN, UUID, HOST, PERSON, LABEL, "AA00112233445566", "4c530001", "Ann Abel",
           "/mnt/secret place", "0x1b2c3d4e", "vault-inner", "d0:37:45:aa:bb:cc", "7712345")


def fake_root(folder):
    """Files of a machine with drives that have serial numbers, users and mounts."""
    page80 = b"\x00\x80\x00\x0e" + SERIAL.encode()
    page83 = (b"\x00\x83\x00\x0c\x01\x03\x00\x08" + bytes.fromhex(WWN))
    made = {
        "sys/block/sda/device/wwid": f"naa.{WWN}\n", "sys/block/sda/device/vpd_pg80": page80,
        "sys/block/sda/device/vpd_pg83": page83, "sys/block/sda/size": "2048",
        "sys/block/sda/dev": "8:0", "sys/block/sda/stat": "1 2 3 4", "sys/block/sda/hidden": "0",
        "sys/block/sda/device/model": "SA400S37240G1234", "sys/block/sda/device/vendor": "ATA",
        "sys/block/sda/device/rev": "SBFK71E0", "sys/block/sda/queue/scheduler": "none [bp]",
        "sys/block/sda/queue/iosched/depth": "4", "sys/block/sda/mq/0/nr_tags": "32",
        "sys/block/sda/queue/logical_block_size": "512",
        "sys/block/mmcblk0/device/serial": "0x1b2c3d4e",
        "sys/block/dm-0/dm/name": "vault--inner-root",
        "sys/block/dm-0/dm/uuid": "LVM-abcDEF123456ghi", "sys/class/nvme/nvme0/serial": "7712345 ",
        "sys/class/net/eth0/address": "d0:37:45:aa:bb:cc",
        "sys/bus/usb/devices/1-2/serial": "4C530001", "etc/hostname": f"{HOST}.example.org",
        "proc/sys/kernel/hostname": HOST,
        "etc/os-release": 'PRETTY_NAME="Some Linux 12"\nID=some\n',
        "etc/passwd": f"root:x:0:0:root:/root:/bin/sh\n{PERSON}:x:1000:1000:Ann Abel,,,:"
                      f"/home/{PERSON}:/bin/sh\npass:x:1001:1001::/home/pass:/bin/sh\n",
        "proc/self/mountinfo": "\n".join((
            r"30 1 8:1 / /mnt/secret\040place rw - ext4 /dev/sda1 rw",
            "31 1 0:40 / /mnt rw - nfs4 filer9.corp.example:/export rw",
            "32 1 0:41 / /mnt rw - cifs //nas07/share rw",
            "33 1 0:42 / /mnt rw - fuse.sshfs carla@sparrow:/x rw",
            "34 1 0:4 / / rw - zfs tank/a")),
        "proc/cmdline": f"root=UUID={UUID} ro quiet nvme_core.multipath=N",
        "run/udev/data/b8:1": f"E:ID_FS_UUID={UUID}\nE:ID_FS_LABEL={LABEL}\n",
        "run/udev/data/b8:16": "E:ID_SERIAL_SHORT=AA00112233445566\nE:ID_BUS=usb\n",
        "dev/disk/by-id/usb-Stick_9-0:0": "", "run/udev/data/c1:1": "E:ID_SERIAL_SHORT=urandom\n",
        "sys/module/bp_iosched/srcversion": "533BB7E5866E52F63B9ACCB",
        "sys/module/bp_iosched/parameters/depth": "0"}
    for path, data in made.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
    machine.ROOT = str(folder)
    for module in (of_drive, kernel_log, of_drive.drives):
        module.BLOCK = folder / "sys/block"


def gone(clean, text, *secrets):
    """Check that secrets are not in a text any more."""
    said = clean(text)
    left = [word for word in secrets
            if re.sub(r"[\W_]", "", word).lower() in re.sub(r"[\W_]", "", said).lower()]
    check(not left, f"{text[:60]!r}: {said[:90]!r} {left or ''}")


def called(*words, status=0):
    """Call ssdctl in this process; return what it prints."""
    out, errors = io.StringIO(), io.StringIO()
    sys.argv = ["ssdctl", *map(str, words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        ended = command.main()
    check(ended == status, f"{' '.join(sys.argv)}: {ended} {errors.getvalue().strip()}")
    return out.getvalue() + errors.getvalue()
