# SPDX-License-Identifier: GPL-2.0
"""Whole Debian systems: root file systems in the cache, made with mmdebstrap from this machine's
Debian mirror. Two images, boot.img and root.img, have what a fresh installation has: systemd,
udev, a kernel with its headers, DKMS, and all that the project's packages depend on. Guests have
no network. The packages of the newest kernel that the suites have, for an upgrade, are in the
folder DEBS. This machine's kernel runs the programs of another architecture in QEMU while such a
system is made."""
import dataclasses
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from labvm import CACHE, PROJECT, LabError, arch, find_tool

SYSTEMS = os.path.join(CACHE, "systems")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEBS = "/var/cache/lab/debs"
PACKAGES = """systemd-sysv udev dbus kmod procps mount e2fsprogs initramfs-tools apt
    dkms gcc make libc6-dev linux-image-{arch} linux-headers-{arch} bpftool dwarves xz-utils zstd
    fio liburing2 python3 python3-numpy python3-scipy python3-matplotlib python3-jinja2
    python3-jsonschema openssl mokutil""".split()
# Manual pages stay: the tests look for the project's.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*")
# Services that would run beside a test.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer",
          "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "man-db.timer",
          "systemd-timesyncd.service", "systemd-networkd-wait-online.service")
ROOT_SIZE, BOOT_SIZE = "8G", "800M"
# Files of the system, {path: text}. lab.service takes labvm/agent.py from the host, so that an
# image does not depend on it. A terminal, hvc0, logs in without a password.
FILES = {
    "etc/fstab": "LABEL=root / ext4 errors=remount-ro 0 1\nLABEL=boot /boot ext4 defaults 0 2\n",
    "etc/hostname": "lab\n",
    "etc/hosts": "127.0.0.1 localhost lab\n",
    "etc/systemd/system/lab.service": """[Unit]
Description=Commands from the host
[Service]
ExecStart=/usr/bin/python3 -u /usr/local/sbin/lab-agent
StandardError=journal+console
""",
    "etc/udev/rules.d/10-lab.rules":
        'SUBSYSTEM=="virtio-ports", ATTR{name}=="lab.agent", TAG+="systemd", '
        'ENV{SYSTEMD_WANTS}="lab.service"\n',
    "usr/local/sbin/lab-agent": """with open("/dev/virtio-ports/lab.agent", "r+b", 0) as port:
    port.write(b"ready\\n")
    with open(port.fileno(), "rb", closefd=False) as requests:
        exec(requests.read(int(requests.readline())))
""",
    "etc/systemd/system/serial-getty@hvc0.service.d/lab.conf": """[Service]
ExecStart=
ExecStart=-/sbin/agetty --autologin root --noclear --keep-baud 115200 - xterm-256color
""",
}
# Modules of an initramfs: what a guest's root needs, and SCSI, so that some drives are found there,
# some later. Debian's choice, which has nearly all of them, takes an emulated CPU ten minutes to
# make, and a part of each boot to unpack.
INITRAMFS = {"conf.d/lab": "MODULES=list\n",
             "modules.d/lab": "virtio_pci\nvirtio_blk\nvirtio_scsi\nsd_mod\next4\n"}
# In the system at $1: put the packages of the newest kernel for architecture $2 into folder $3; $4:
# the suite that has it and what it needs.
FETCH_KERNEL = r"""#!/bin/sh -e
release=$(chroot "$1" apt-cache pkgnames linux-image- |
	grep -E "^linux-image-[0-9.]+\+deb[0-9.]+-$2\$" | sort -V | tail -n 1)
[ "$release" ] || { echo "no kernel in the package lists" >&2; exit 1; }
chroot "$1" sh -ec '
	apt-get clean
	apt-get -q -y --download-only -t "$3" install "$1" "linux-headers-${1#linux-image-}"
	mkdir -p "$2"
	mv /var/cache/apt/archives/*.deb "$2"' sh "$release" "$3" "$4"
"""
# Of another architecture: in the system at $1, have packages of Python not compiled as they are
# installed, which takes half an hour, and then have them compiled again as everywhere.
LEAVE_PYTHON = """chroot "$1" dpkg-divert --quiet --local --rename --divert \
	/usr/bin/py3compile.debian --add /usr/bin/py3compile
ln -s true "$1"/usr/bin/py3compile"""
TAKE_PYTHON = """rm "$1"/usr/bin/py3compile
chroot "$1" dpkg-divert --quiet --local --rename --remove /usr/bin/py3compile"""
TRIXIE = ("trixie", "trixie-security", "trixie-backports")


@dataclasses.dataclass(frozen=True)
class Release:
    """A release of Debian: its suites, the last of which has the newest kernel, and its
    architecture (a name of arch.ARCHES)."""
    suites: tuple
    arch: str = "amd64"


RELEASES = {"debian-12": Release(("bookworm", "bookworm-security")),
            "debian-13": Release(TRIXIE), "debian-13-arm64": Release(TRIXIE, "arm64")}


def mirror(suite):
    """Return the address of the machine's Debian mirror that has a suite."""
    kind = "-security" if suite.endswith("-security") else ""
    found = subprocess.run(["bash", "-c", '. "$0" && debian_mirror "$1"',
                            os.path.join(PROJECT, "scripts/common.sh"), kind],
                           stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if not found:
        raise LabError("no Debian mirror among this machine's apt sources")
    return found


def key(release):
    """Return a digest of what decides the content of a system's images."""
    parts = (release, PACKAGES, LEFT_OUT, MASKED, FILES, INITRAMFS, FETCH_KERNEL, ROOT_SIZE,
             BOOT_SIZE, LEAVE_PYTHON, TAKE_PYTHON)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def bootstrap(release, root, log):
    """Install the packages into the folder @root."""
    fetch = os.path.join(os.path.dirname(root), "fetch-kernel")
    with open(fetch, "w", opener=lambda path, flags: os.open(path, flags, 0o755),
              encoding="utf-8") as file:
        file.write(FETCH_KERNEL)
    settings = os.path.join(os.path.dirname(root), "initramfs")
    write_files(settings, {f"usr/share/initramfs-tools/{path}": text
                           for path, text in INITRAMFS.items()})
    # Says whether programs of another architecture run here; mmdebstrap asks it, too.
    if subprocess.run([find_tool("arch-test"), release.arch], check=False,
                      stdout=subprocess.DEVNULL).returncode:
        raise LabError(f"programs of {release.arch} do not run here: run scripts/setup "
                       f"systems-{release.arch}")
    # In name spaces of its own: its mounts and processes end with it.
    command = [find_tool("unshare"), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
               find_tool("mmdebstrap"), "--mode=root", "--variant=minbase", "--format=directory",
               "--aptopt=Acquire::Languages \"none\"", "--aptopt=Acquire::Retries \"3\"",
               "--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=force-unsafe-io",
               f"--architectures={release.arch}",
               *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT),
               f"--extract-hook=cp -r {shlex.quote(settings)}/. \"$1\"",
               *([f"--essential-hook={LEAVE_PYTHON}", f"--customize-hook={TAKE_PYTHON}"]
                 if release.arch != arch.own().name else []),
               f"--include={','.join(PACKAGES).format(arch=release.arch)}",
               (f"--customize-hook={shlex.quote(fetch)} \"$1\" {release.arch} {DEBS} "
                f"{release.suites[-1]}"),
               release.suites[0], root,
               *(f"deb [signed-by={KEYRING}] {mirror(suite)} {suite} main"
                 for suite in release.suites)]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            status = wait(process, "mmdebstrap")
        finally:
            process.kill()
            process.wait()
    if status:
        with open(log, encoding="utf-8", errors="replace") as text:
            raise LabError("mmdebstrap failed:\n" + "".join(text.readlines()[-15:]))


def wait(process, what):
    """Wait for a process, with a message twice a minute; return its status."""
    began = time.monotonic()
    while True:
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            print(f"lab: {what} runs for {time.monotonic() - began:.0f} s", flush=True)


def write_files(folder, files):
    """Write files, {path: text}, into a folder."""
    for path, text in files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def customize(root):
    """Write FILES, mask services and allow root to log in without a password."""
    write_files(root, FILES)
    for name in MASKED:
        os.symlink("/dev/null", f"{root}/etc/systemd/system/{name}")
    subprocess.run(["chroot", root, "passwd", "-q", "-d", "root"], check=True)
    # A machine has its id from the first boot on.
    with open(f"{root}/etc/machine-id", "w", encoding="utf-8") as file:
        file.write("")


def make_image(folder, path, label, size):
    """Make a file system with the files of @folder."""
    subprocess.run([find_tool("mke2fs"), "-q", "-t", "ext4", "-L", label, "-d", folder, path, size],
                   check=True, stdout=subprocess.DEVNULL)


def make(release, folder):
    """Make the images of a system in @folder."""
    root, boot = f"{folder}/root", f"{folder}/boot"
    bootstrap(release, root, f"{folder}/log")
    customize(root)
    os.rename(f"{root}/boot", boot)
    os.mkdir(f"{root}/boot")
    make_image(root, f"{folder}/root.img", "root", ROOT_SIZE)
    make_image(boot, f"{folder}/boot.img", "boot", BOOT_SIZE)
    shutil.rmtree(root)
    shutil.rmtree(boot)


def made_once(folder, name, command, fill):
    """Return @folder of the cache. If it is missing, make it, as root; of several processes that
    want it, one makes it. @name: of what is made; @command: makes it, too; @fill(path): writes it
    into an empty folder."""
    place = os.path.dirname(folder)
    os.makedirs(place, exist_ok=True)
    with open(f"{place}/.lock-{name}", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(folder):
            return folder
        if os.getuid():
            raise LabError(f"only root can make {name}: run {command} -- true as root")
        print(f"lab: making {name}: takes some minutes, once", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix=".make.", dir=place) as work:
            os.mkdir(f"{work}/new")
            fill(f"{work}/new")
            os.rename(f"{work}/new", folder)
    return folder


def find(name):
    """Return the folder with the images of the system @name; make them if they are missing."""
    if name not in RELEASES:
        raise LabError(f"no such system: {name} (there are: {' '.join(RELEASES)})")
    return made_once(f"{SYSTEMS}/{name}-{key(RELEASES[name])}", name, f"scripts/system {name}",
                     lambda folder: make(RELEASES[name], folder))
