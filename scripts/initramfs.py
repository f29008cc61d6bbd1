# SPDX-License-Identifier: GPL-2.0
"""What a guest of scripts/lab finds when it comes up: a little system that mounts this
machine's root, or, in virtual time, all that it will ever see (guest_root.py).
"""
import os
import re
import stat
import subprocess

import guest_root

# Where a guest in virtual time has what the lab tells it.
GUEST_RUN = "/lab"
# What the guest needs before it has a root file system.
BOOT_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")

INIT = """#!/bin/busybox sh
# The lab's initramfs: the host's root below a layer in memory, build/ as it is.
mount() {{ busybox mount -t "$@"; }}
p9=trans=virtio,version=9p2000.L,access=any,msize=512000
layers=lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work
mount devtmpfs dev /dev
for module in {modules}; do busybox insmod "/modules/$module"; done
mount tmpfs -o size=75% layer /layer
busybox mkdir /layer/upper /layer/work
mount 9p -o ro,cache=loose,$p9 host /host
mount overlay -o $layers root /root
mount 9p -o rw,$p9 build "/root{build}"
exec busybox switch_root /root /bin/bash \
    "{project}/scripts/lab-guest" "{run}" "{project}"
"""

VIRTUAL_INIT = """#!/bin/busybox sh
# The lab's initramfs in virtual time, which is the root for good.
busybox mount -t devtmpfs dev /dev
/sbin/modprobe -a -q virtio_pci virtio_console
exec /bin/bash {project}/scripts/lab-guest {run} {project}
"""


class Impossible(Exception):
    """There is nothing to start a guest with; the text says why and what to do."""


def module_needs(stage):
    """For each module the others that it needs."""
    needs = {}
    with open(os.path.join(stage, "modules.dep"), encoding="utf-8") as file:
        for line in file:
            path, _, rest = line.partition(":")
            needs[path] = rest.split()
    return needs


def boot_modules(needs):
    """The modules to load first, each after what it @needs."""
    by_name = {re.sub(r"\.ko.*", "", os.path.basename(p)): p for p in needs}
    ordered = []
    for name in BOOT_MODULES:
        path = by_name.get(name)
        # A kernel that lacks it has it built in, or does not come up.
        for module in reversed(needs[path] if path else []):
            if module not in ordered:
                ordered.append(module)
        if path:
            ordered.append(path)
    return list(dict.fromkeys(ordered))


def read_module(path):
    """Content of a module, which may be compressed."""
    with open(path, "rb") as file:
        data = file.read()
    for suffix, tool in ((".xz", "xz"), (".zst", "zstd"), (".gz", "gzip")):
        if path.endswith(suffix):
            return subprocess.run([tool, "-dc"], input=data, check=True,
                                  stdout=subprocess.PIPE).stdout
    return data


class Cpio:
    """Write an initramfs (the newc format)."""

    def __init__(self, file):
        self.file = file
        self.inode = 0
        self.names = {""}

    def add(self, name, mode, data=b"", device=(0, 0), mtime=0):
        """Add one entry, @data being a file's content or a link's target, after the
        folders above it."""
        if os.path.dirname(name) not in self.names:
            self.add(os.path.dirname(name), 0o40755)
        self.names.add(name)
        self.inode += 1
        fields = (self.inode, mode, 0, 0, 1, mtime, len(data), 0, 0, *device,
                  len(os.fsencode(name)) + 1, 0)
        head = "070701" + "".join(f"{field:08x}" for field in fields) + name
        for part in (os.fsencode(head) + b"\0", data):
            self.file.write(part + b"\0" * (-len(part) % 4))

    def copy(self, path, name):
        """Add a file, link or folder of this machine. Python looks at the time of what
        it compiled; nothing else may depend on when that was."""
        info = os.lstat(path)
        data = b""
        if stat.S_ISLNK(info.st_mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(info.st_mode):
            with open(path, "rb") as file:
                data = file.read()
        elif not stat.S_ISDIR(info.st_mode):
            raise Impossible(f"{path} is neither a file nor a folder")
        self.add(name, info.st_mode, data,
                 mtime=int(info.st_mtime) if name.startswith("usr/lib/python") else 0)

    def close(self):
        """Add the entry that ends an archive."""
        self.add("TRAILER!!!", 0)


def write_mounting(path, run, stage, places, busybox):
    """The little system that mounts this machine's root for a guest; @places are the
    project and the folder of it that the guest may write to."""
    project, build = places
    modules = boot_modules(module_needs(stage))
    names = [re.sub(r"\.ko.*", ".ko", os.path.basename(m)) for m in modules]
    init = INIT.format(modules=" ".join(names), build=build, project=project, run=run)
    with open(path, "wb") as file:
        cpio = Cpio(file)
        for folder in ("bin", "dev", "host", "layer", "modules", "root"):
            cpio.add(folder, 0o40755)
        cpio.add("dev/console", 0o20600, device=(5, 1))
        with open(busybox, "rb") as program:
            cpio.add("bin/busybox", 0o100755, program.read())
        for name, module in zip(names, modules, strict=True):
            cpio.add(f"modules/{name}", 0o100644, read_module(os.path.join(stage, module)))
        cpio.add("init", 0o100755, init.encode())
        cpio.close()


def write_root(path, run, stage, places, packages, files):
    """All that a guest in virtual time sees; @places are the project's here and there."""
    project, place = places
    try:
        found = guest_root.of_system(packages)
    except KeyError as missing:
        raise Impossible(f"package {missing.args[0]} is not installed; what the project needs "
                         "comes by scripts/setup") from None
    found |= guest_root.of_project(project, place) | dict(files)
    found |= guest_root.of_modules(stage, module_needs(stage))
    found |= {f"{GUEST_RUN}/{name}": f"{run}/{name}" for name in ("command", "environment")}
    init = VIRTUAL_INIT.format(run=GUEST_RUN, project=place)
    with open(path, "wb") as file:
        cpio = Cpio(file)
        for folder in guest_root.FOLDERS:
            cpio.add(folder.lstrip("/"), 0o40755)
        cpio.add("dev/console", 0o20600, device=(5, 1))
        for name, source in sorted(found.items()):
            if name.lstrip("/") not in cpio.names:
                cpio.copy(source, name.lstrip("/"))
        cpio.add("init", 0o100755, init.encode())
        cpio.close()
