# SPDX-License-Identifier: GPL-2.0
"""What a guest in virtual time finds in its memory, for scripts/lab.

A wait for the host takes real time, and meanwhile virtual time runs on by as much
as that happens to be: from the first file read from the host on, no two guests are
the same. So these get a copy of all that they need, by Debian's own lists of files
and dependencies, and nothing of the host after that. They do the same, instruction
by instruction, wherever these packages are the same.
"""
import importlib.util
import os
import re
import subprocess

# With all that they depend on and what is essential to Debian.
PACKAGES = ("blktrace", "busybox-static", "dmsetup", "e2fsprogs", "fio", "kmod", "mount", "procps",
            "python3", "util-linux", "xfsprogs")
# What no program needs to run, and is large.
USELESS = re.compile("/boot/|/usr/lib/(apt|x86_64-linux-gnu/gconv)/|/usr/share/(bash-completion|"
                     "bug|ca-certificates|doc|doc-base|info|lintian|locale|man|menu|zsh)/")
# What no package owns: configuration, and the top folders that are links today.
OTHERS = ("/bin", "/etc/group", "/etc/mtab", "/etc/nsswitch.conf", "/etc/passwd", "/lib", "/lib64",
          "/sbin")
FOLDERS = ("/mnt", "/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp")
# Kernel modules, with those that they need: 15 % of all.
MODULES = re.compile("updates/|kernel/(arch|block|crypto|lib|drivers/(block|md|nvme|virtio)|"
                     "fs/(btrfs|configfs|ext4|f2fs|nilfs2|xfs))/|.*/(scsi_debug|virtio_console)[.]")


def names_in(relation):
    """Packages in a dependency's alternatives, without versions."""
    return [re.sub(r"[ (:].*", "", name.strip()) for name in relation.split("|")]


def with_dependencies(wanted):
    """Installed packages: the @wanted ones, the essential ones, all they depend on.
    KeyError: the name of one that is not installed."""
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
    """All files and links below a folder."""
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in without]
        linked = [name for name in folders if os.path.islink(os.path.join(where, name))]
        yield from (os.path.join(where, name) for name in files + linked)


def of_packages(packages):
    """Files, folders and links of packages, with what Python's files were compiled to."""
    listed = subprocess.run(["dpkg-query", "-L", *packages], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    for path in listed.splitlines():
        if path.startswith("/") and not USELESS.match(path + "/"):
            yield path
            if path.endswith(".py"):
                yield importlib.util.cache_from_source(path)


def alternatives(found):
    """Debian's links to those of the files @found that do under another name."""
    for folder in ("/usr/bin", "/usr/sbin"):
        for entry in os.scandir(folder):
            if entry.is_symlink() and os.path.realpath(entry.path) in found:
                target = os.readlink(entry.path)
                yield from (entry.path, target) if os.path.isabs(target) else (entry.path,)


def real_place(path):
    """The same file without links on the way to it."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def is_here(path):
    """Can the guest get it? Not so what only root may read, when somebody else asks."""
    return os.path.islink(path) or os.access(path, os.R_OK)


def of_system(packages):
    """Where the files of these packages are: {path in the guest: path here}."""
    owned = of_packages(with_dependencies([*PACKAGES, *packages]))
    found = set(filter(is_here, map(real_place, (*owned, *OTHERS))))
    return {path: path for path in (*found, *alternatives(found))}


def of_project(project, place):
    """The project without what was built and kept, and what only people read: that a
    document was changed is no reason for a guest to do anything else."""
    return {os.path.join(place, os.path.relpath(path, project)): path
            for path in in_folder(project, (".git", "build", "__pycache__", "Documentation"))
            if not path.endswith(".md")}


def of_modules(stage, needs):
    """The modules below the folder @stage, of which each @needs others."""
    place = f"/usr/lib/modules/{os.path.basename(stage)}"
    wanted = {module for name in needs if MODULES.match(name) for module in (name, *needs[name])}
    lists = [name for name in os.listdir(stage) if name.startswith("modules.")]
    return {os.path.join(place, name): os.path.join(stage, name) for name in [*wanted, *lists]}
