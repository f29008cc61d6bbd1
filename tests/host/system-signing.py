#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A kernel that enforces signatures refuses the modules until DKMS's own key is enrolled, then it
# loads them, and drives have at boot what their rules keep; a module without a signature is refused
# kernels: debian-12 debian-13
# check: none
# timeout: 7200
"""The kernel is Debian's own, with module.sig_enforce=1. It trusts the keys in the firmware's list
db as it trusts the owner's keys (MOK), which need the boot loader shim; the lab starts the kernel
itself."""
import pathlib
import struct
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from checks import check  # noqa: E402  (in a folder added above)
from systems import (  # noqa: E402
    CHOICES, MODULES, System, device, has, main, prepared, scheduler)

ENFORCE = ["module.sig_enforce=1"]
KEY = "/var/lib/dkms/mok.pub"
VARIABLE = "/sys/firmware/efi/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f"
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")
OWNER = uuid.UUID("77fa9abd-0359-4d32-bd60-28f4e78f784b")
PKCS7 = uuid.UUID("4aafd29d-68df-49ee-8aa9-347d375665a7")
# Kept, there at boot and later, and authenticated with a time.
ATTRIBUTES = 0x27
# A time and a signature without content: a firmware without a platform key, in setup mode, demands
# the fields and checks neither.
AUTHENTICATION = (struct.pack("<HBBBBBxIhBx", 2020, 1, 1, 0, 0, 0, 0, 0, 0) +
                  struct.pack("<IHH", 24, 0x200, 0xEF1) + PKCS7.bytes_le)
# What modprobe says, by the kernel's error ENOKEY or EKEYREJECTED.
REFUSALS = ("Required key not available", "Key was rejected by service")


def key_list(certificate):
    """Return a firmware's list with one certificate, as the value of a variable."""
    size = 16 + len(certificate)
    return (struct.pack("<I", ATTRIBUTES) + AUTHENTICATION +
            X509.bytes_le + struct.pack("<III", 28 + size, 0, size) +
            OWNER.bytes_le + certificate)


def refused(guest, command, why):
    """Check that a module is refused with one of modprobe's messages and the kernel's."""
    done = guest.run(command, check=False)
    check(done.status and any(text in done.out for text in REFUSALS), f"refused: {done.out}")
    log = guest.run("dmesg | grep -i 'module.*rejected' || true").out
    check(why in log, f"the kernel says: {log}")


def unsigned(guest):
    """Check that a module without a signature is refused."""
    guest.run("""path=$(modinfo -n bp-iosched)
case $path in
*.xz) xz -dc "$path" ;;
*) cat "$path" ;;
esac >/tmp/bp-iosched.ko
strip --strip-debug /tmp/bp-iosched.ko""")
    refused(guest, "insmod /tmp/bp-iosched.ko", "Loading of unsigned module is rejected")


def test(name):
    """Boot with a key that is not enrolled; enrol it; boot again."""
    with System(name, kept=prepared(name), uefi=True) as system:
        with system.boot(list(CHOICES), ENFORCE) as guest:
            check(guest.run("modinfo -F signer bp-iosched").out.strip(), "DKMS has signed")
            unsigned(guest)
            refused(guest, "modprobe bp-iosched", "Loading of module with unavailable key")
            done = guest.run("echo bp >/sys/block/sda/queue/scheduler", check=False)
            check(done.status and "write error: Invalid argument" in done.out, done.out)
            for drive in CHOICES:
                found = scheduler(guest, device(guest, drive))
                check(found not in MODULES, f"{drive.kind} drive has its old scheduler ({found})")
            guest.run("mountpoint -q /sys/firmware/efi/efivars || "
                      "mount -t efivarfs efivarfs /sys/firmware/efi/efivars")
            guest.put("/run/lab/db", key_list(guest.get(KEY)))
            # In one write.
            guest.run(f"cat /run/lab/db >{VARIABLE}")
        with system.boot(list(CHOICES), ENFORCE) as guest:
            for drive, choice in CHOICES.items():
                has(guest, drive, choice, "with the key enrolled")
            guest.run("modprobe bp-iosched")
            unsigned(guest)


if __name__ == "__main__":
    main(test)
