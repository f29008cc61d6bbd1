# SPDX-License-Identifier: GPL-2.0
"""A place in which fio can do nothing but I/O on what is measured.

fio runs as a user of its own, without capabilities, in namespaces without a network and other
processes. Its file system is in memory and read-only: /usr, the libraries, a few devices, a node of
the drive that exists nowhere else, and one folder for its logs that can be written. All of that
needs root and namespaces, which util-linux uses here, but no program that is not always there.
"""
import os
import pathlib
import pwd
import random
import shutil
import stat
import subprocess

from ssd_common.drive import read
from ssd_ctl import CtlError
from ssd_ctl.advice.target import Target

# Of systemd's range for users without a name, which no one has for long.
FIRST, LAST = 61184, 65519
# Without those that a kernel lacks fio is confined all the same: the namespace of mounts, which
# each kernel has, and the user keep it from other files and drives.
NAMESPACES = ("net", "ipc", "uts", "pid")
# Paths in the sandbox.
LOGS, DEVICE = "/logs", "/dev/measured"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "LC_ALL": "C"}

# $root, $logs, $program, $uid, $gid, $device (major and minor number, or nothing): the words are
# the command. Mounts are private to it, and end with it.
SCRIPT = r"""
root=$1 logs=$2 program=$3 uid=$4 gid=$5 device=$6
shift 6
show() {
    mount -o bind,ro,nosuid,nodev "$1" "$root$1"
}
mount -t tmpfs -o mode=0755,size=1m,nosuid sandbox "$root"
cd "$root"
mkdir dev etc logs old proc
for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /gnu/store /sys/devices/system; do
    if [ -L "$path" ]; then
        ln -s "$(readlink "$path")" "$root$path"
    elif [ -d "$path" ]; then
        mkdir -p "$root$path"
        show "$path"
    fi
done
for path in /etc/ld.so.cache "$program"; do
    if [ -e "$path" ] && [ ! -e "$root$path" ]; then
        mkdir -p "$(dirname "$root$path")"
        : > "$root$path"
        show "$path"
    fi
done
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/urandom c 1 9
if [ "$device" ]; then
    mknod -m 600 dev/measured b $device
    chown "$uid:$gid" dev/measured
fi
mount -t proc -o ro,nosuid,nodev,noexec proc proc
mount -o bind,nosuid,nodev,noexec "$logs" logs
mount -o remount,ro "$root"
# If memory ends, fio ends first.
echo 1000 > /proc/self/oom_score_adj
ulimit -c 0
# For registered buffers of io_uring; in a container it may not be possible.
ulimit -l unlimited 2>/dev/null || :
# The root of an initramfs cannot be replaced, only covered.
if pivot_root . old 2>/dev/null; then
    cd /
    umount -l old
else
    mount --move . /
fi
exec chroot . setpriv --reuid "$uid" --regid "$gid" --clear-groups --inh-caps=-all \
    --ambient-caps=-all --bounding-set=-all --securebits=+noroot,+noroot_locked --no-new-privs \
    --pdeathsig KILL -- "$@"
"""


def present() -> list[str]:
    """Return those of NAMESPACES that the kernel has."""
    return [name for name in NAMESPACES if os.path.exists(f"/proc/self/ns/{name}")]


def lacking() -> list[str]:
    """Return what is to be said of a kernel that does not have all of them."""
    names = [name for name in NAMESPACES if name not in present()]
    return [f"this kernel has no {' '.join(names)} namespaces to confine fio in"] if names else []


def unshare() -> list[str]:
    """Return the words before a command that runs in namespaces of its own, and is killed with its
    parent."""
    return ["unshare", "--mount", *(f"--{name}" for name in present()), "--fork", "--kill-child"]


def check():
    """Raise CtlError if fio cannot be confined here."""
    for program in ("setpriv", "unshare", "pivot_root", "mount"):
        if not shutil.which(program, path=ENVIRONMENT["PATH"]):
            raise CtlError(f"{program} is missing: install util-linux and mount")
    done = subprocess.run([*unshare(), "true"], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise CtlError(f"fio cannot be confined here, so it is not run: {done.stderr.strip()}")


def users() -> set[int]:
    """Return the users that processes have."""
    lines = (line for process in pathlib.Path("/proc").glob("[0-9]*")
             for line in read(process / "status").splitlines() if line.startswith("Uid:"))
    return {int(word) for line in lines for word in line.split()[1:]}


def named(user: int) -> bool:
    """Return true if a user has a name."""
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def free_user() -> int:
    """Return a user without a name and without processes."""
    taken, order = users(), list(range(FIRST, LAST + 1))
    random.SystemRandom().shuffle(order)
    return next(user for user in order if user not in taken and not named(user))


def give(place: Target, user: int) -> tuple[int, int]:
    """Give what is measured on to a user; return the user and the group that can open it. A file
    system without owners, such as FAT, keeps the owner: then fio runs as that one, without
    privileges all the same."""
    if not place.device_number:
        try:
            os.fchown(place.descriptor, user, user)
            os.fchmod(place.descriptor, 0o600)
        except OSError:
            pass
        status = os.fstat(place.descriptor)
        if status.st_uid != user:
            return status.st_uid, status.st_gid
    return user, user


def path_of(place: Target) -> str:
    """Return the path of what is measured on in the sandbox."""
    return DEVICE if place.device_number else f"/proc/self/fd/{place.descriptor}"


def words(folder: str, place: Target | None, command: list[str]) -> list[str]:
    """Return the words of a command that runs fio in the sandbox; it needs ENVIRONMENT, and the
    descriptor of what is measured on. The node of a device allows as much as that does. @place:
    None without I/O, @folder: of root alone, gets the folders "logs", which is the user's, and
    "root"."""
    user = free_user()
    user, group = give(place, user) if place else (user, user)
    logs, root = os.path.join(folder, "logs"), os.path.join(folder, "root")
    for path in (logs, root):
        os.mkdir(path, 0o700)
    os.chown(logs, user, group)
    number = place.device_number if place else 0
    device = f"{os.major(number)} {os.minor(number)}" if number else ""
    # A link may lead to where the sandbox has nothing.
    program = os.path.realpath(shutil.which(command[0]))
    return ["setpriv", "--pdeathsig", "KILL", *unshare(), "sh", "-euc", SCRIPT, "sandbox", root,
            logs, program, str(user), str(group), device, program, *command[1:]]


def foreign_files(processes: list[int], place: Target, folder: str) -> list[str]:
    """Return the block devices that processes have open, but for what is measured on, and the
    regular files that are open for writing, but for those in a folder."""
    ours = {(status.st_dev, status.st_ino)
            for parent, _, names in os.walk(folder) for name in names
            for status in [os.lstat(os.path.join(parent, name))]}
    status = os.fstat(place.descriptor)
    ours.add((status.st_dev, status.st_ino))
    return sorted({name for process in processes for name in foreign_of(process, place, ours)})


def foreign_of(process: int, place: Target, ours: set[tuple[int, int]]) -> list[str]:
    """Return foreign_files() of a process. @ours: device and number of files that are ours."""
    found = []
    for path in pathlib.Path(f"/proc/{process}/fd").glob("*"):
        try:
            status, link, name = path.stat(), path.lstat(), os.readlink(path)
        except OSError:
            continue
        written = stat.S_ISREG(status.st_mode) and link.st_mode & stat.S_IWUSR
        if written and (status.st_dev, status.st_ino) not in ours:
            found.append(name)
        if stat.S_ISBLK(status.st_mode) and status.st_rdev != place.device_number:
            found.append(name)
    return found
