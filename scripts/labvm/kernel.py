# SPDX-License-Identifier: GPL-2.0
"""Find a kernel to boot, and stage its modules together with the project's."""
import fcntl
import os
import re
import shutil
import subprocess
import sys

from labvm import BUILD, CACHE, PROJECT, LabError, arch, find_tool


class Kernel:
    """A kernel to boot: the path of its image, its release, the folder of its modules
    (None: none), its build tree (None for a kernel of which only the headers are used), the
    options of each make in the tree or with the headers, and its architecture."""

    def __init__(self, image, release, modules=None, tree=None, options=()):
        self.image = image
        self.release = release
        self.modules = modules
        self.tree = tree
        self.options = options
        self.arch = arch.of_image(image) or arch.of_release(release)

    @classmethod
    def find(cls, name):
        """Return the kernel that --kernel names: an image, a build tree, a release or
        series of Debian's, debug-SERIES, or small-KIND."""
        if re.fullmatch(r"debug-(kcsan-)?\d+\.\d+|small-.*", name):
            return cls.from_source(*name.split("-", 1))
        if os.path.isdir(name):
            return cls.from_tree(os.path.realpath(name))
        if os.path.isfile(name):
            return cls.from_image(os.path.realpath(name))
        if not re.match(r"\d+\.\d|newest(-|$)", name):
            raise LabError(f"--kernel {name}: neither a file nor a folder, nor "
                           "a release or series as in 6.12 or debug-6.12")
        return cls.from_debian(name)

    @classmethod
    def from_debian(cls, name):
        """A stock kernel from the cache; fetch it if it is missing."""
        release = tool_says("fetch-kernel", "--cached", name) or tool_says("fetch-kernel", name)
        if not release:
            raise LabError(f"no kernel {name}")
        root = os.path.join(CACHE, "kernels", release)
        return cls(os.path.join(root, f"boot/vmlinux-{release}"), release,
                   os.path.realpath(os.path.join(root, "lib/modules", release)))

    @classmethod
    def from_source(cls, sort, which):
        """A debug or a small kernel; build it if it is missing. Where it has headers/, the
        project's modules are built as for an installed kernel: with these, by the BTF of the image
        there or, without it, with block/ of the source."""
        root = tool_says(f"{sort}-kernel", which)
        if not root:
            raise LabError(f"no {sort} kernel {which}")
        tree, headers = os.path.join(root, "linux"), os.path.join(root, "headers")
        kernel = cls.from_tree(tree)
        kernel.modules = os.path.join(root, "lib/modules", kernel.release)
        if os.path.isdir(headers):
            kernel.tree, kernel.options = None, (f"HEADERS={headers}",)
            if not os.path.exists(os.path.join(headers, "vmlinux")):
                kernel.options += (f"BLOCK={tree}/block",)
        return kernel

    @classmethod
    def for_simulation(cls):
        """The User-Mode Linux kernel; build it if it is missing."""
        root = tool_says("sim-kernel")
        if not root:
            raise LabError("no kernel for a simulation")
        tree = os.path.join(root, "linux")
        image = os.path.join(tree, "linux")
        release = image_release(image)
        return cls(image, release, os.path.join(root, "lib/modules", release), tree,
                   ("ARCH=um", "CC=gcc-12"))

    @classmethod
    def from_image(cls, path):
        """An image, with the modules beside it or the host's."""
        release = image_release(path)
        above = os.path.dirname(os.path.dirname(path))
        for root in (above, "/"):
            modules = os.path.join(root, "lib/modules", release)
            if os.path.exists(os.path.join(modules, "modules.dep")):
                return cls(path, release, modules)
        return cls(path, release)

    @classmethod
    def from_tree(cls, tree):
        """The kernel built in a kernel tree."""
        for of in arch.ARCHES.values():
            image = os.path.join(tree, of.image)
            if os.path.exists(image):
                return cls(image, image_release(image), tree=tree, options=arch.cross(of))
        raise LabError(f"{tree} has no " + " and no ".join(
            of.image for of in arch.ARCHES.values()) + ": build the kernel there first")


    def mounts(self):
        """Return whether the kernel can mount the host's files; Debian's cloud flavours cannot."""
        needed = "kernel/net/9p/9pnet_virtio.ko"
        lists = [os.path.join(self.modules or "", name)
                 for name in ("modules.dep", "modules.builtin")]
        return not os.path.exists(lists[0]) or any(needed in read(path) for path in lists)


def read(path):
    """Return the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def tool_says(name, *arguments):
    """Return what a program of scripts/ prints, or nothing if it fails."""
    done = subprocess.run([os.path.join(PROJECT, "scripts", name), *arguments], text=True,
                          stdout=subprocess.PIPE, check=False)
    return "" if done.returncode else done.stdout.strip()


def image_release(path):
    """Return the release of the kernel image at @path (bzImage or vmlinux)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[0x202:0x206] == b"HdrS":
        start = int.from_bytes(data[0x20e:0x210], "little") + 0x200
        return data[start:].split(b" ", 1)[0].decode()
    match = re.search(rb"Linux version (\S+) ", data)
    if not match:
        raise LabError(f"{path} is not a kernel image for this machine")
    return match.group(1).decode()


def run_make(arguments):
    """Run make quietly; show its output if it fails."""
    done = subprocess.run(["make", "-s", "-C", PROJECT, "-j", "2", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode:
        print(done.stdout, end="", file=sys.stderr)
        raise LabError(f"make {' '.join(arguments)} failed")


def build_modules(kernel):
    """Build the project's modules for @kernel; return their paths."""
    # Of a stock kernel a warning is an error, as in the test build, which uses the same objects.
    where = [f"KDIR={kernel.tree}"] if kernel.tree else [f"KVER={kernel.release}", "W=1e"]
    run_make([*where, *kernel.options])
    found = []
    for folder, _, files in os.walk(os.path.join(BUILD, kernel.release)):
        found += [os.path.join(folder, f) for f in files if f.endswith(".ko")]
    return found


def stage_project(kernel, folder, bare):
    """Build the project's modules and copy them to @folder; @bare: without the sections
    that depend on the place where they were built."""
    os.makedirs(folder, exist_ok=True)
    # Two labs may build for the same kernel.
    with open(os.path.join(BUILD, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for module in build_modules(kernel):
            copy = shutil.copy(module, folder)
            if bare:
                subprocess.run([find_tool("strip"), "--strip-debug", "-R", ".BTF",
                                "-R", ".note.gnu.build-id", copy], check=True)


def stage_modules(kernel, run, ours, bare):
    """Put the modules of @kernel, and the project's if @ours, below the folder @run, as
    modprobe expects them; return their folder. @bare: see stage_project()."""
    stage = os.path.join(run, "lib/modules", kernel.release)
    if kernel.tree and not kernel.modules:
        done = subprocess.run(["make", "-s", "-C", kernel.tree, *kernel.options, "modules_install",
                               f"INSTALL_MOD_PATH={run}", "INSTALL_MOD_STRIP=1"],
                              stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise LabError(f"the modules of {kernel.tree} cannot be installed")
    os.makedirs(stage, exist_ok=True)
    if kernel.modules:
        os.symlink(os.path.join(kernel.modules, "kernel"), os.path.join(stage, "kernel"))
        for name in os.listdir(kernel.modules):
            if name.startswith(("modules.builtin", "modules.order")):
                shutil.copy(os.path.join(kernel.modules, name), stage)
    if ours:
        stage_project(kernel, os.path.join(stage, "updates"), bare)
    subprocess.run([find_tool("depmod"), "-b", run, kernel.release], check=True)
    return stage
