# SPDX-License-Identifier: GPL-2.0
"""What the tests of the packages in whole Debian systems share: the packages, a system in which
they are installed and rules are kept, and what its drives have."""
import fcntl
import hashlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "scripts"))

from checks import check, fail  # noqa: E402  (in a folder added above)
from labvm import LabError, debian  # noqa: E402
from labvm.kernel import Kernel, stage_project  # noqa: E402
from labvm.whole import Drive, System  # noqa: E402

KEPT = PROJECT / "build/systems"
NAMES = ("ssd-iosched-dkms", "ssd-iosched-utils")
MODULES = tuple(sorted(path.name.removesuffix("-iosched.c")
                       for path in PROJECT.glob("*-iosched.c")))
# A drive of each kind, what its rule keeps, and what it then has.
CHOICES = {
    Drive("disk", "DISK1"): "pass depth=24 region_size_mb=512",
    Drive("stick", "STICK1", kind="usb"): "bp block_size_kb=2048",
    Drive("paper", "PAPER1", kind="virtio"): "piq channels=4",
    Drive("flash", "FLASH1", kind="nvme"): "pai split=pasa",
}
# Where packages put files, and DKMS and udev what they make of them.
PLACES = "/etc /boot /lib/modules /usr /var/lib"
# What each boot and each use of apt and dpkg writes, and the key that DKMS makes for all modules.
COMMON = re.compile(r"/var/lib/(dpkg|apt|systemd|dbus|private)(/|$)|/var/lib/initramfs-tools|"
                    r"/etc/(machine-id|resolv.conf|mtab)|/etc/[^/]*[-~]$|/boot/(lost.found|grub)|"
                    r"/__pycache__(/|$)|/etc/ld.so.cache|/var/lib/(ucf|udisks2|logrotate)|"
                    r"/var/lib/shells|/var/lib/dkms/mok")
# A kernel that is there only while the packages are installed.
OLD = pathlib.Path("/lib/modules/6.1.0-1-amd64")
# Seconds for DKMS to build the modules for a kernel in a guest; an idle machine needs 200.
BUILD_SECONDS = 3000


def made(what, *arch):
    """Let packaging/build make @what, deb or sources, by default for this machine's architecture;
    return the folder that has it."""
    folder = KEPT / "-".join((what, *arch))
    done = subprocess.run([PROJECT / "packaging/build", what, folder, *arch], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        fail(f"{what} cannot be built: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return folder


def packages(*arch):
    """Return the paths of the two packages, by default for this machine's architecture; build them
    anew."""
    folder = made("deb", *arch)
    found = [path for name in NAMES for path in folder.glob(f"{name}_*.deb")]
    check(len(found) == len(NAMES), "there are the two packages")
    return found


def version():
    """Return the version of the packages."""
    first = (PROJECT / "debian/changelog").read_text().splitlines()[0]
    return re.search(r"\((.*?)\)", first)[1]


def device(guest, drive):
    """Return the kernel's name of a drive; wait until udev knows it."""
    found = guest.run(f"""for try in $(seq 120); do
	udevadm settle
	for link in /dev/disk/by-id/*{drive.serial}*; do
		[ ! -e "$link" ] || {{ basename "$(readlink -f "$link")"; exit; }}
	done
	sleep 1
done
exit 1""").out.strip()
    return found


def scheduler(guest, name):
    """Return the scheduler of a drive."""
    words = guest.run(f"cat /sys/block/{name}/queue/scheduler").out
    return re.search(r"\[(.*)\]", words)[1]


def has(guest, drive, choice, when):
    """Check that a drive has a choice: a scheduler and its tunables."""
    name = device(guest, drive)
    wanted, *settings = choice.split()
    found = scheduler(guest, name)
    check(found == wanted, f"{when}, {drive.kind} drive {name} has {wanted} (it has {found})")
    for setting in settings:
        tunable, _, value = setting.partition("=")
        text = guest.run(f"cat /sys/block/{name}/queue/iosched/{tunable}").out.strip()
        check(text == value or f"[{value}]" in text.split(), f"{when}, {name}: {setting} ({text})")


def replug(guest, drive):
    """Unplug a drive and plug it in again."""
    guest.unplug(drive)
    guest.plug(drive)


def put_modules(guest, system):
    """Build the modules on this machine for the running kernel of a @system, and put them there."""
    release = guest.run("uname -r").out.strip()
    folder = f"{system.folder}/modules"
    stage_project(Kernel.find(release), folder, bare=True)
    for path in pathlib.Path(folder).glob("*-iosched.ko"):
        guest.put(f"/lib/modules/{release}/updates/{path.name}", path.read_bytes())
    guest.run("depmod")


def built(guest, release):
    """Check that DKMS has built and installed the modules for a kernel."""
    status = guest.run("dkms status").out
    line = next((line for line in status.splitlines() if release in line), "")
    check(line.startswith(f"ssd-iosched/{version()}, {release}") and
          line.rstrip().endswith(": installed"), f"dkms status: {line or status}")
    there = guest.run(f"find /lib/modules/{release}/updates/dkms -type f").out
    check(all(f"/{name}-iosched.ko" in there for name in MODULES), "the modules are there")


def files(guest):
    """Return the files below PLACES: {path: type, or the digest of a file in /etc}."""
    types = guest.run(f"find {PLACES} -xdev -type f,l,d -printf '%y %p\\n'").out
    digests = guest.run("find /etc -xdev -type f -exec sha256sum {} +").out
    known = {path: digest for digest, path in
             (line.split("  ", 1) for line in digests.splitlines())}
    found = (line.split(" ", 1) for line in types.splitlines())
    return {path: known.get(path, kind) for kind, path in found}


def differences(before, now):
    """Return the files that came, went or changed, but for COMMON."""
    return sorted(("+ " if path not in before else "- " if path not in now else "! ") + path
                  for path in before | now
                  if before.get(path) != now.get(path) and not COMMON.search(path))


def show(piece):
    """Pass output of the guest on."""
    sys.stdout.buffer.write(piece)
    sys.stdout.flush()


def install(guest, debs):
    """Install packages of the host, as a user does who has downloaded them. An old kernel has
    headers that nothing can be built with."""
    guest.run(f"mkdir -p {OLD}/build/include && touch /boot/vmlinuz-{OLD.name} && "
              f"echo CONFIG_DEBUG_INFO_BTF=y >{OLD}/build/.config")
    for path in debs:
        guest.put(f"/root/{path.name}", path.read_bytes())
    said = guest.run("apt-get -q -y --no-install-recommends install " +
                     " ".join(f"/root/{path.name}" for path in debs), BUILD_SECONDS, hear=show).out
    check(f"ssd-iosched: no modules for {OLD.name}: DKMS says above why" in said,
          "the old kernel is left out")
    guest.run(f"rm -r /root/*.deb {OLD} /boot/vmlinuz-{OLD.name}")


def prepare(name, debs, folder):
    """Install the packages in the fresh system @name and keep CHOICES by rules; keep all that in
    @folder, with the files that were there before."""
    with System(name) as system:
        with system.boot() as guest:
            before = files(guest)
            install(guest, debs)
            built(guest, guest.run("uname -r").out.strip())
            for drive, choice in CHOICES.items():
                guest.plug(drive)
                found = device(guest, drive)
                print(guest.run(f"ssdctl persist /dev/{found} {choice}").out, end="")
                has(guest, drive, choice, "persisted")
        system.keep(folder)
    (pathlib.Path(folder) / "before.json").write_text(json.dumps(before))


def prepared(name):
    """Return the folder of prepare(); prepare the system unless another test has."""
    debs = packages()
    # What is kept is a layer over the image: another image that is made of the same will not do.
    image = os.stat(f"{debian.find(name)}/root.img")
    digest = hashlib.sha256(f"{image.st_ino} {image.st_mtime_ns}".encode())
    for path in debs:
        digest.update(path.read_bytes())
    code = "".join(map(inspect.getsource, (prepare, install, files)))
    digest.update(f"{code}{CHOICES}{PLACES}".encode())
    KEPT.mkdir(parents=True, exist_ok=True)
    folder = KEPT / f"{name}-{digest.hexdigest()[:12]}"
    with open(KEPT / f".lock-{name}", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            for old in KEPT.glob(f"{name}-*"):
                subprocess.run(["rm", "-r", old], check=True)
            prepare(name, debs, str(folder))
    return folder


def upgrade(guest):
    """Install the kernel for an upgrade and its headers, from a folder; return apt's status."""
    return guest.run(f"apt-get -q -y --no-install-recommends install {debian.DEBS}/*.deb",
                     BUILD_SECONDS, check=False, hear=show)


def main(test):
    """Run a test of the system that the environment names; a defect of the lab is a failure."""
    name = os.environ.get("KERNEL", "debian-12")
    try:
        test(name)
    except LabError as error:
        sys.exit(f"fail: {error}")
