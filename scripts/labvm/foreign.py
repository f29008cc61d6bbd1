# SPDX-License-Identifier: GPL-2.0
"""The root file system of a guest of another architecture than this machine's: packages of this
machine's Debian release, unpacked in the cache by mmdebstrap. None of their programs runs here."""
import hashlib
import os
import shutil
import subprocess

from labvm import CACHE, LabError, debian, find_tool, system

ROOTS = os.path.join(CACHE, "roots")
# Beside these, what a guest in virtual time has, and Debian's essential packages.
PACKAGES = (*system.PACKAGES, "btrfs-progs", "dosfstools", "f2fs-tools", "mawk", "udev")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*", "/boot/*")
# What their installation would write.
FILES = {"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n", "etc/group": "root:x:0:\ndisk:x:6:\n",
         "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n"}
LINKS = {"usr/bin/awk": "mawk", "etc/mtab": "../proc/self/mounts"}


def key():
    """Return a digest of what decides the content of a root."""
    return hashlib.sha256(repr((PACKAGES, LEFT_OUT, FILES, LINKS)).encode()).hexdigest()[:12]


def make(arch, suite, folder):
    """Unpack the packages of architecture @arch into @folder."""
    command = [find_tool("mmdebstrap"), "--quiet", "--mode=root", "--variant=extract",
               f"--architectures={arch}", "--format=directory",
               "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
               "--aptopt=Acquire::Languages \"none\"",
               *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT),
               "--include=?essential", f"--include={','.join(PACKAGES)}", suite, folder,
               f"deb [signed-by={debian.KEYRING}] {debian.mirror(suite)} {suite} main"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise LabError("mmdebstrap failed:\n" + "\n".join(done.stdout.splitlines()[-15:]))
    debian.write_files(folder, FILES)
    for path, target in LINKS.items():
        if not os.path.lexists(f"{folder}/{path}"):
            os.symlink(target, f"{folder}/{path}")
    for path in LEFT_OUT:
        shutil.rmtree(folder + path.removesuffix("/*"), ignore_errors=True)
    # An emulated CPU takes seconds to compile what each Python program imports.
    subprocess.run([find_tool("python3"), "-m", "compileall", "-q", "-s", folder,
                    *(f"{folder}/usr/lib/{name}" for name in os.listdir(f"{folder}/usr/lib")
                      if name.startswith("python3"))], check=False)
    os.makedirs(f"{folder}/root", exist_ok=True)


def find(arch):
    """Return the root of architecture @arch (a name of arch.ARCHES); make it if it is missing."""
    with open("/etc/os-release", encoding="utf-8") as file:
        names = dict(line.rstrip().split("=", 1) for line in file if "=" in line)
    suite = names.get("VERSION_CODENAME")
    if names.get("ID") != "debian" or not suite:
        raise LabError(f"a guest of {arch} has packages of this machine's release of Debian")
    return debian.made_once(f"{ROOTS}/{suite}-{arch}-{key()}", arch, f"scripts/lab --arch {arch}",
                            lambda folder: make(arch, suite, folder))
