# SPDX-License-Identifier: GPL-2.0
"""What differs between the architectures that a guest of QEMU may have."""
import dataclasses
import os
import re

from kbuild.kernel_btf import ARM64_MAGIC, IMAGE_AT
from labvm import LabError


@dataclasses.dataclass(frozen=True)
class Arch:
    """An architecture.

    name        Debian's name of it
    uname       the kernel's name
    qemu        QEMU's program
    machine     the machine that QEMU emulates
    pci         the path of its PCI bus
    console     the serial line that the kernel has there
    cpu         QEMU's CPU
    image       the image in a kernel's build tree
    """

    name: str
    uname: str
    qemu: str
    machine: str
    pci: str
    console: str
    cpu: str
    image: str


ARCHES = {arch.name: arch for arch in (
    # With ERMS or FSRM the kernel copies and clears memory byte by byte ("rep movsb"), which
    # processors do in large pieces, but QEMU with an instruction for each byte: 4 us for a
    # page in virtual time. Without, the kernel copies words.
    Arch("amd64", "x86_64", "qemu-system-x86_64", "q35", "/q35-pcihost/pcie.0", "ttyS0",
         "max,erms=off,fsrm=off", "arch/x86/boot/bzImage"),
    # Pointers are signed by an algorithm of QEMU's own: the architecture's takes half of the time.
    Arch("arm64", "aarch64", "qemu-system-aarch64", "virt", "/gpex-pcihost/pcie.0", "ttyAMA0",
         "max,pauth-impdef=on", "arch/arm64/boot/Image"))}
BY_UNAME = {arch.uname: arch for arch in ARCHES.values()}


def own():
    """Return this machine's architecture."""
    name = os.uname().machine
    if name not in BY_UNAME:
        raise LabError(f"the lab does not know the architecture {name} of this machine")
    return BY_UNAME[name]


def cross(arch):
    """Return the options of a kernel's make for an architecture, if it is not this machine's."""
    return () if arch == own() else (f"ARCH={arch.name}", f"CROSS_COMPILE={arch.uname}-linux-gnu-")


def of_image(path):
    """Return the architecture of a kernel's image that tells it, as those of arm64 do, or None."""
    with open(path, "rb") as file:
        return ARCHES["arm64"] if file.read(64)[IMAGE_AT:].startswith(ARM64_MAGIC) else None


def of_release(release):
    """Return the architecture of a Debian kernel, or of a series with its flavour, by the name of
    which it is a part: 6.12-arm64, 7.3.4+deb13-cloud-arm64-16k. Otherwise it is this machine's."""
    flavour = re.search(r"-([a-z].*)$", release)
    for arch in ARCHES.values():
        if flavour and arch.name in flavour[1].split("-"):
            return arch
    return own()
