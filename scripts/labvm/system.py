# SPDX-License-Identifier: GPL-2.0
"""The files of a guest that has them in memory, as in virtual time.

While a guest waits for the host, virtual time continues by an amount that depends on the
host's load. A guest that reads a file of the host is therefore never the same twice. In
virtual time the guest gets a copy of all files that it needs, selected by dpkg's lists of
files and dependencies, and reads none of the host's afterwards. With the same packages it
then executes the same instructions.
"""
import importlib.util
import os
import re
import subprocess
import sysconfig

# The guest has these packages, what they depend on, and Debian's essential ones.
PACKAGES = ("blktrace", "busybox-static", "dmsetup", "e2fsprogs", "fio", "kmod", "mount", "procps",
            "python3", "util-linux", "xfsprogs")
# Large files that no program needs to run.
USELESS = re.compile("/boot/|/usr/lib/(apt|gcc|x86_64-linux-gnu/gconv)/|/usr/share/("
                     "bash-completion|bug|ca-certificates|doc|doc-base|info|lintian|locale|man|"
                     "menu|unicode|zsh)/|"
                     # Of what scipy depends on, to compile.
                     "/usr/include/(?!xfs)|/usr/bin/x86_64-linux-gnu-|.*[.]a/$|"
                     "/usr/lib/python3/dist-packages/pythran/|/usr/lib/python3[.0-9]*/config-")
# Files that no package owns: configuration, and the links at the top of the tree.
OTHERS = ("/bin", "/etc/group", "/etc/mtab", "/etc/nsswitch.conf", "/etc/passwd", "/lib", "/lib64",
          "/sbin")
FOLDERS = ("/mnt", "/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp")
# Kernel modules; they and their dependencies are 15 % of all.
MODULES = re.compile("updates/|kernel/(arch|block|crypto|lib|drivers/(block|md|nvme|virtio)|"
                     "fs/(btrfs|configfs|ext4|f2fs|nilfs2|xfs))/|.*/(scsi_debug|virtio_console)[.]")
# Those of the drives that only a guest with the host's time has.
DRIVES = re.compile("kernel/drivers/(mmc|scsi|usb/(common|core|host|storage))/")
# The lab's own half in the guest.
GUEST_SIDE = ("scripts/lab-guest", "scripts/kernel-health.sh")


def names_in(relation):
    """Return the packages in the alternatives of a dependency, without versions."""
    return [re.sub(r"[ (:].*", "", name.strip()) for name in relation.split("|")]


def with_dependencies(wanted):
    """Return the @wanted packages, the essential ones and all that they depend on. Raise
    KeyError with the name of a package that is not installed."""
    form = "${db:Status-Status}\t${Package}\t${Essential}\t${Pre-Depends},${Depends}\t${Provides}\n"
    listed = subprocess.run(["dpkg-query", "-W", "-f", form], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    needs, provided, waiting = {}, {}, list(wanted)
    for line in listed.splitlines():
        status, package, essential, depends, provides = line.split("\t")
        if status != "installed":
            continue
        needs[package] = [names_in(need) for need in depends.split(",") if need.strip()]
        for relation in filter(None, provides.split(",")):
            provided.setdefault(names_in(relation)[0], package)
        if essential == "yes":
            waiting.append(package)
    found = set()
    while waiting:
        package = waiting.pop()
        if package in found:
            continue
        for names in needs[package]:
            here = [name if name in needs else provided.get(name) for name in names]
            waiting += list(filter(None, here))[:1]
        found.add(package)
    return sorted(found)


def in_folder(folder, without=()):
    """Yield all files and links below a folder, but not below folders named @without."""
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in without]
        linked = [name for name in folders if os.path.islink(os.path.join(where, name))]
        yield from (os.path.join(where, name) for name in files + linked)


def of_packages(packages):
    """Yield the files, folders and links of packages, and the compiled Python files."""
    listed = subprocess.run(["dpkg-query", "-L", *packages], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    for path in listed.splitlines():
        if path.startswith("/") and not USELESS.match(path + "/"):
            yield path
            if path.endswith(".py"):
                yield importlib.util.cache_from_source(path)


def alternatives(found):
    """Yield Debian's links to the files @found, such as awk for mawk and libblas.so.3 for that
    of OpenBLAS."""
    libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    for folder in ("/usr/bin", "/usr/sbin", libraries):
        for entry in os.scandir(folder):
            if entry.is_symlink() and os.path.realpath(entry.path) in found:
                target = os.readlink(entry.path)
                yield from (entry.path, target) if os.path.isabs(target) else (entry.path,)


def real_place(path):
    """Return the path of a file without links in its folders."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def is_readable(path):
    """Return True for a link, and for a file that this user may read."""
    return os.path.islink(path) or os.access(path, os.R_OK)


def of_system(packages):
    """Return {path in the guest: path on the host} for the files of PACKAGES and @packages."""
    owned = of_packages(with_dependencies([*PACKAGES, *packages]))
    found = set(filter(is_readable, map(real_place, (*owned, *OTHERS))))
    return {path: path for path in (*found, *alternatives(found))}


def of_root(root):
    """Return {path in the guest: path on the host} for the root file system of another
    architecture: nearly all that is there."""
    return {path.removeprefix(root): path for path in in_folder(root, ("dev",))
            if not USELESS.match(path.removeprefix(root) + "/") and is_readable(path)}


def of_project(project, place, only=()):
    """Return {path in the guest: path on the host} for the @project, which is at @place in
    the guest: all of it but build/ and the documents, or the paths @only and the lab's own
    half. A document that changes must not change what a guest does."""
    parts = [os.path.join(project, part) for part in (*only, *GUEST_SIDE)] if only else [project]
    paths = [path for part in parts for path in
             ([part] if os.path.isfile(part) else
              in_folder(part, (".git", "build", "__pycache__", "Documentation")))]
    return {os.path.join(place, os.path.relpath(path, project)): path
            for path in paths if not path.endswith(".md")}


def of_modules(stage, needs, drives=False):
    """Return {path in the guest: path on the host} for the modules below the folder @stage;
    @needs: {module: the modules that it depends on}; @drives: with those of DRIVES."""
    place = f"/usr/lib/modules/{os.path.basename(stage)}"
    wanted = {module for name in needs
              if MODULES.match(name) or drives and DRIVES.match(name)
              for module in (name, *needs[name])}
    lists = [name for name in os.listdir(stage) if name.startswith("modules.")]
    return {os.path.join(place, name): os.path.join(stage, name) for name in [*wanted, *lists]}
