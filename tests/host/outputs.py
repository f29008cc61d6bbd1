#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl and ssd-probe write through no link, into no folder and over no file of another user, and
# open no device or pipe by its name; their files have their modes whatever the umask is; the lock
# is root's
# quick: host

import contextlib
import fcntl
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check  # noqa: E402  (in a folder added above)
from ssd_common import ToolError, files  # noqa: E402
from ssd_ctl import saved  # noqa: E402

SKIP = 4
OTHER = 65534


def refused(call, because):
    """Check that a call fails and says why."""
    try:
        call()
    except ToolError as error:
        check(because in str(error), f"refused: {error}")
        return
    check(False, f"not refused: {because}")


def named_refused(path, because):
    """Check that a file is refused before the measurement, and again when it is written."""
    refused(lambda: files.check_named(str(path)), because)
    refused(lambda: files.write_named(str(path), "report"), because)


def mode(path):
    """The mode of a file."""
    return stat.S_IMODE(path.lstat().st_mode)


def others_folder(folder, bits=0o755):
    """Make a folder of another user."""
    folder.mkdir()
    folder.chmod(bits)
    os.chown(folder, OTHER, OTHER)
    return folder


def links(folder):
    """No link is followed but root's own on the way."""
    precious = folder / "precious"
    precious.write_text("data")
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name, leads in (("report", precious), ("way", folder), ("new", folder / "missing")):
        (shared / name).symlink_to(leads)
        os.lchown(shared / name, OTHER, OTHER)
    named_refused(shared / "report", "is a link: name a file")
    named_refused(shared / "new", "is a link: name a file")
    named_refused(shared / "way/precious", "way is another user's link")
    check(precious.read_text() == "data" and not (folder / "missing").exists(), "nothing written")
    (folder / "own").symlink_to("shared/../shared")
    files.write_named(f"{folder}/own/made", "report")
    check((shared / "made").read_text() == "report", "root's link on the way is followed")
    (folder / "ring").symlink_to("ring")
    named_refused(folder / "ring/x", "ring")


def others(folder):
    """Nothing is written where another user could interfere, nor over what is theirs."""
    theirs = others_folder(folder / "theirs")
    named_refused(theirs / "report", "belongs to another user")
    (theirs / "below").mkdir()
    named_refused(theirs / "below/report", "belongs to another user")
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    named_refused(open_to_all / "report", "can be written to by other users")
    open_to_all.chmod(0o1777)
    (open_to_all / "report").write_text("theirs")
    os.chown(open_to_all / "report", OTHER, OTHER)
    named_refused(open_to_all / "report", "belongs to another user")
    check((open_to_all / "report").read_text() == "theirs", "it is as it was")
    group = folder / "group"
    group.mkdir()
    group.chmod(0o775)
    os.chown(group, 0, OTHER)
    named_refused(group / "report", "can be written to by other users")
    os.environ["SUDO_UID"] = os.environ["SUDO_GID"] = str(OTHER)
    files.write_named(str(theirs / "report"), "report")
    files.write_named(str(open_to_all / "report"), "report")
    check((theirs / "report").stat().st_uid == 0, "with sudo into the caller's folder, as root")
    del os.environ["SUDO_UID"], os.environ["SUDO_GID"]
    # Relative, and as the program does it.
    done = subprocess.run([PROJECT / "tools/ssd-probe/ssd-probe", "--from", "/dev/null", "--html",
                           "x.html"], cwd=theirs, capture_output=True, text=True, check=False)
    check(done.returncode == 1 and done.stderr.count("\n") == 1, f"ssd-probe: {done.stderr}")
    check(sorted(path.name for path in theirs.iterdir()) == ["below", "report"], "nothing is left")


def new(folder):
    """A new file takes no name that is taken, is its owner's alone, and with sudo its caller's."""
    theirs = others_folder(folder / "new-theirs")
    refused(lambda: files.make_named(str(theirs / "x"), "text"), "belongs to another user")
    place = folder / "new-own"
    place.mkdir()
    (place / "link").symlink_to(place / "missing")
    (place / "taken").write_text("before")
    check(not any(files.make_named(str(place / name), "text") for name in ("link", "taken")),
          "names that are taken")
    check((place / "taken").read_text() == "before" and not (place / "missing").exists(),
          "nothing is written there")
    with umask(0):
        check(files.make_named(str(place / "made"), "text") and mode(place / "made") == 0o600,
              "only its owner reads it")
    os.environ["SUDO_UID"] = str(OTHER)
    check(files.make_named(str(theirs / "x"), "text") and (theirs / "x").stat().st_uid == OTHER,
          "with sudo it is the caller's")
    del os.environ["SUDO_UID"]
    refused(lambda: files.make_named("/proc/x", "text"), "/proc/x cannot be written")


def kinds(folder):
    """A device, a pipe or a folder is not opened; a regular file is replaced, not written to."""
    os.mkfifo(folder / "pipe")
    for path, because in ((folder / "pipe", "is no regular file"), (folder, "is a folder"),
                          ("/dev/null", "is no regular file"), ("/dev/full", "is no regular file"),
                          (f"{folder}/", "is a folder")):
        named_refused(path, because)
    os.mknod(folder / "drive", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    named_refused(folder / "drive", "is a drive: name a file")
    refused(lambda: files.check_named(f"{folder}/nothing/x"),
            "is not a folder that can be written to")
    old = folder / "old"
    old.write_text("before")
    with old.open(encoding="ascii") as reader:
        files.write_named(str(old), "after")
        check(reader.read() == "before" and old.read_text() == "after", "replaced")


def opened(folder):
    """What the caller has opened is written to as it is."""
    reader, writer = os.pipe()
    files.check_named(f"/dev/fd/{writer}")
    files.write_named(f"/proc/self/fd/{writer}", "report")
    check(os.read(reader, 99) == b"report", "a pipe of the caller")
    refused(lambda: files.check_named(f"/dev/fd/{reader}"), "was opened for reading")
    os.close(reader)
    os.close(writer)
    refused(lambda: files.check_named(f"/dev/fd/{writer}"), "Bad file descriptor")
    script = (f"import sys; sys.path.insert(0, '{PROJECT}/tools/common'); "
              "from ssd_common import files; files.write_named('/dev/stdout', 'report')")
    with (folder / "out").open("wb") as out:
        out.write(b"first ")
        out.flush()
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    check((folder / "out").read_bytes() == b"first report", "/dev/stdout is not opened again")


@contextlib.contextmanager
def umask(bits):
    """Have a umask."""
    former = os.umask(bits)
    try:
        yield
    finally:
        os.umask(former)


def modes(folder):
    """Modes are set."""
    for bits in (0, 0o077):
        with umask(bits):
            place = folder / f"modes-{bits}"
            files.write_ours(place / "below/rule", "text")
            files.write_ours(place / "private/state", "text", files.PRIVATE, files.PRIVATE_FOLDER)
            files.write_named(str(folder / "report"), "text")
            files.make_folder(str(folder / f"output-{bits}"))
        found = [oct(mode(path)) for path in (
            place, place / "below", place / "below/rule", place / "private",
            place / "private/state", folder / "report", folder / f"output-{bits}")]
        check(found == ["0o755", "0o755", "0o644", "0o700", "0o600", "0o644", "0o755"],
              f"umask {bits:o}: {' '.join(found)}")
        check([path.name for path in (place / "below").iterdir()] == ["rule"], "nothing beside it")


def durable(folder):
    """A file and its name are on the drive before the caller goes on."""
    calls, real = [], {name: getattr(os, name) for name in ("fsync", "rename")}
    os.fsync = lambda file: calls.append(stat.S_IFMT(os.fstat(file).st_mode)) or real["fsync"](file)
    os.rename = lambda *names, **how: calls.append("rename") or real["rename"](*names, **how)
    files.write_ours(folder / "durable/state", "text")
    os.fsync, os.rename = real["fsync"], real["rename"]
    check(calls == [stat.S_IFREG, "rename", stat.S_IFDIR], f"synced: {calls}")


def ours(folder):
    """What another user has put in the place of a file of the programs' own is refused."""
    theirs = others_folder(folder / "state")
    for call in (lambda: files.write_ours(theirs / "x", "text"),
                 lambda: files.read_ours(theirs / "x")):
        refused(call, "belongs to another user")
    kept = folder / "kept"
    kept.mkdir()
    (kept / "file").write_text("text")
    check(files.read_ours(kept / "file") == "text" and files.read_ours(kept / "none") is None,
          "it is read")
    os.chown(kept / "file", OTHER, OTHER)
    refused(lambda: files.read_ours(kept / "file"), "was not written by root")
    (kept / "link").symlink_to(folder / "precious")
    refused(lambda: files.read_ours(kept / "link"), "cannot be read")
    refused(lambda: files.write_ours(pathlib.Path("/proc/nothing/file"), "x"), "cannot be written")


def lock(folder):
    """No other user can hold the lock, nor have another file locked."""
    saved.LOCK = folder / "lock"
    with umask(0), saved.alone():
        check(mode(saved.LOCK) == 0o600, f"the lock has mode {mode(saved.LOCK):o}")
        with saved.LOCK.open(encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                check(False, "it is not held")
            except BlockingIOError:
                check(True, "it is held")
    saved.LOCK.chmod(0o666)
    with saved.alone():
        check(mode(saved.LOCK) == 0o600, "an older lock is closed to others")
    os.chown(saved.LOCK, OTHER, OTHER)

    def hold():
        with saved.alone():
            pass
    refused(hold, "is another user's")
    saved.LOCK.unlink()
    saved.LOCK.symlink_to(folder / "precious")
    refused(hold, "cannot be locked")
    check((folder / "precious").read_text() == "data", "a link is not followed")


def main():
    if os.geteuid():
        print("it has to be run as root: it makes files of another user")
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        links(folder)
        others(folder)
        new(folder)
        kinds(folder)
        opened(folder)
        modes(folder)
        durable(folder)
        ours(folder)
        lock(folder)


if __name__ == "__main__":
    main()
