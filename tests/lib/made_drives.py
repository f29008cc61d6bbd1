# SPDX-License-Identifier: GPL-2.0
"""Drives of each kind, by made-up files of the kernel."""
import types

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
