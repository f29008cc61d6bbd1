# SPDX-License-Identifier: GPL-2.0
"""The initramfs of a guest: a small system that mounts the host's root, or, for a guest with its
files in memory, as in virtual time, all of them (system.py)."""
import glob
import hashlib
import os
import re
import stat
import subprocess

from labvm import GUEST_PROJECT, PROJECT, LabError, find_tool, system

# The folder with the command and its environment, in a guest with its files in memory.
GUEST_RUN = "/lab"
# {module: name} of the project's schedulers.
SCHEDULERS = {f"{name}-iosched.ko": name for name in (
    os.path.basename(path).removesuffix("-iosched.c")
    for path in glob.glob(f"{PROJECT}/*-iosched.c"))} | {"tide.ko": "tide"}
# The modules that mount the root file system.
BOOT_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")

INIT = """#!/bin/busybox sh
# The lab's initramfs: a root of the host below a layer in memory, with folders of the host, of
# which build/ is writable.
mount() {{ busybox mount -t "$@"; }}
p9=trans=virtio,version=9p2000.L,access=any,msize=512000
layers=lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work
mount devtmpfs dev /dev
for module in {modules}; do busybox insmod "/modules/$module"; done
mount tmpfs -o size=75% layer /layer
busybox mkdir /layer/upper /layer/work
mount 9p -o ro,cache=loose,$p9 host /host
mount overlay -o $layers root /root
{mounts}exec busybox switch_root /root /bin/bash \
    "{project}/scripts/lab-guest" "{run}" "{project}"
"""

MEMORY_INIT = """#!/bin/busybox sh
# The lab's initramfs in virtual time. It remains the root.
busybox mount -t devtmpfs dev /dev
for module in {modules}; do /sbin/modprobe -q "$module"; done
exec /bin/bash {project}/scripts/lab-guest {run} {project}
"""


def module_needs(stage):
    """Return {module: the modules that it depends on}."""
    needs = {}
    with open(os.path.join(stage, "modules.dep"), encoding="utf-8") as file:
        for line in file:
            path, _, rest = line.partition(":")
            needs[path] = rest.split()
    return needs


def boot_modules(needs):
    """Return the modules that init loads, each after those that it @needs."""
    by_name = {re.sub(r"\.ko.*", "", os.path.basename(p)): p for p in needs}
    ordered = []
    for name in BOOT_MODULES:
        path = by_name.get(name)
        # A kernel without the module has the driver built in, or does not boot.
        for module in reversed(needs[path] if path else []):
            if module not in ordered:
                ordered.append(module)
        if path:
            ordered.append(path)
    return list(dict.fromkeys(ordered))


def read_module(path):
    """Return the content of a module, decompressed."""
    with open(path, "rb") as file:
        data = file.read()
    for suffix, tool in ((".xz", "xz"), (".zst", "zstd"), (".gz", "gzip")):
        if path.endswith(suffix):
            return subprocess.run([tool, "-dc"], input=data, check=True,
                                  stdout=subprocess.PIPE).stdout
    return data


class Cpio:
    """Write an initramfs in the newc format.

    digest      of all that was written, without the modules of the project's schedulers
    schedulers  {scheduler: digest of its module}
    """

    def __init__(self, file):
        self.file = file
        self.inode = 0
        self.names = {""}
        self.digest = hashlib.sha256()
        self.schedulers = {}

    def add(self, name, mode, data=b"", device=(0, 0), mtime=0):
        """Add the missing folders of an entry, then the entry; @data: the content of a
        file or the target of a link."""
        if os.path.dirname(name) not in self.names:
            self.add(os.path.dirname(name), 0o40755)
        self.names.add(name)
        self.inode += 1
        fields = (self.inode, mode, 0, 0, 1, mtime, len(data), 0, 0, *device,
                  len(os.fsencode(name)) + 1, 0)
        head = "070701" + "".join(f"{field:08x}" for field in fields) + name
        written = b"".join(part + b"\0" * (-len(part) % 4)
                           for part in (os.fsencode(head) + b"\0", data))
        self.file.write(written)
        scheduler = SCHEDULERS.get(os.path.basename(name))
        if scheduler:
            self.schedulers[scheduler] = hashlib.sha256(written).hexdigest()
        else:
            self.digest.update(written)

    def copy(self, path, name):
        """Add a file, link or folder of the host. All times are 0, except for Python's
        files: a compiled file is valid for the time of its source only."""
        info = os.lstat(path)
        data = b""
        if stat.S_ISLNK(info.st_mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(info.st_mode):
            with open(path, "rb") as file:
                data = file.read()
        elif not stat.S_ISDIR(info.st_mode):
            raise LabError(f"{path} is neither a file nor a folder")
        self.add(name, info.st_mode, data,
                 mtime=int(info.st_mtime) if name.startswith("usr/lib/python") else 0)

    def close(self):
        """Add the entry that ends an archive."""
        self.add("TRAILER!!!", 0)


def mounts(folders):
    """Return the lines of INIT that mount the @folders, see qemu.host_folders()."""
    return "".join(f"busybox mkdir -p '/root{path}'\n"
                   f"mount 9p -o {'rw' if writable else 'ro,cache=loose'},$p9 {tag} '/root{path}'\n"
                   for tag, path, writable in folders)


def write_mounting(machine, run, stage):
    """Write @run/initramfs, the small system that mounts the root of a @machine, with the modules
    of the folder @stage."""
    modules = boot_modules(module_needs(stage))
    names = [re.sub(r"\.ko.*", ".ko", os.path.basename(m)) for m in modules]
    init = INIT.format(modules=" ".join(names), project=PROJECT, run=run,
                       mounts=mounts(machine.folders(run)[1:]))
    with open(f"{run}/initramfs", "wb") as file:
        cpio = Cpio(file)
        for folder in ("bin", "dev", "host", "layer", "modules", "root"):
            cpio.add(folder, 0o40755)
        cpio.add("dev/console", 0o20600, device=(5, 1))
        busybox = f"{machine.root}/bin/busybox" if machine.root else find_tool("busybox")
        with open(busybox, "rb") as program:
            cpio.add("bin/busybox", 0o100755, program.read())
        for name, module in zip(names, modules, strict=True):
            cpio.add(f"modules/{name}", 0o100644, read_module(os.path.join(stage, module)))
        cpio.add("init", 0o100755, init.encode())
        cpio.close()


def files_of_guest(machine, run, stage):
    """Return {path in the guest: path on the host} for a guest with its files in memory. Only in
    the host's time are there drives of the host."""
    args = machine.args
    try:
        found = (system.of_root(machine.root) if machine.root else system.of_system(args.package))
    except KeyError as missing:
        raise LabError(f"package {missing.args[0]} is not installed; scripts/setup installs "
                       "what the project needs") from None
    found |= system.of_project(PROJECT, GUEST_PROJECT, args.only) | dict(args.file)
    found |= system.of_modules(stage, module_needs(stage), drives=not args.virtual_time)
    return found | {f"{GUEST_RUN}/{name}": f"{run}/{name}" for name in ("command", "environment")}


def write_root(machine, run, stage):
    """Write @run/initramfs with all files of a guest of a @machine; return the Cpio."""
    init = MEMORY_INIT.format(modules=" ".join(machine.boot_modules), run=GUEST_RUN,
                               project=GUEST_PROJECT)
    with open(f"{run}/initramfs", "wb") as file:
        cpio = Cpio(file)
        for folder in system.FOLDERS:
            cpio.add(folder.lstrip("/"), 0o40755)
        cpio.add("dev/console", 0o20600, device=(5, 1))
        for name, source in sorted(files_of_guest(machine, run, stage).items()):
            if name.lstrip("/") not in cpio.names:
                cpio.copy(source, name.lstrip("/"))
        cpio.add("init", 0o100755, init.encode())
        cpio.close()
    return cpio


def digests(machine, root):
    """Return digests of all that decides what a guest of a @machine in virtual time does: of
    its initramfs @root (Cpio), its kernel, the machine's version and options as "guest"; and of
    the module of each of the project's schedulers by its name. A run under another scheduler
    does not use it."""
    found = root.digest.copy()
    with open(machine.kernel.image, "rb") as file:
        found.update(file.read())
    found.update(machine.identity())
    return {"guest": found.hexdigest()} | root.schedulers
