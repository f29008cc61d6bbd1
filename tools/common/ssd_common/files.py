# SPDX-License-Identifier: GPL-2.0
"""How the programs write files, as root, and trust no name: files of their own, and files that the
user has named.

A path is walked folder by folder, each held by a descriptor, so that nothing on the way can be
replaced meanwhile. Only root and the caller may own a link or a folder on the way, and nobody else
may be able to replace what is in such a folder. The file is made under another name, whole and with
its mode, and then renamed: what had the name before is neither opened nor changed.
"""
import contextlib
import errno
import fcntl
import os
import pathlib
import re
import secrets
import stat

from ssd_common import ToolError

# Modes. A umask changes none of them.
REPORT, PRIVATE, FOLDER, PRIVATE_FOLDER = 0o644, 0o600, 0o755, 0o700
# Links on the way, as for the kernel.
MOST_LINKS = 40
# Bytes of a file that is read.
MOST_BYTES = 64 << 20
OTHERS, GROUP = stat.S_IWOTH, stat.S_IWGRP
# Files that the caller has opened: they are used as they are, and not opened by their names.
OPENED = re.compile(r"(?:/dev|/proc/self)/fd/(\d{1,9})")
STDOUT, STDERR = 1, 2
# A file before it is renamed has this name, and random characters.
NEW = ".ssd-iosched."
UNFINISHED = NEW + "*"
BY_NAME = {"-": STDOUT, "/dev/stdout": STDOUT, "/dev/stderr": STDERR}


def callers() -> set[int]:
    """Return the users on whose behalf the program runs: with sudo, also the user who called it."""
    sudo = os.environ.get("SUDO_UID", "")
    return {os.geteuid()} | ({int(sudo)} if not os.geteuid() and sudo.isdecimal() else set())


def groups() -> set[int]:
    """Return the groups of callers(), whose members they trust."""
    sudo = os.environ.get("SUDO_GID", "")
    return {0, os.getegid()} | ({int(sudo)} if not os.geteuid() and sudo.isdecimal() else set())


def replaceable(found: os.stat_result) -> str:
    """Return why another user could replace what is in a folder, "" if none could. In a sticky one
    a file is replaced by its owner only."""
    if found.st_uid not in callers() | {0}:
        return "belongs to another user"
    by_group = found.st_mode & GROUP and found.st_gid not in groups()
    if (found.st_mode & OTHERS or by_group) and not found.st_mode & stat.S_ISVTX:
        return "can be written to by other users (chmod go-w)"
    return ""


class Walk:
    """The way to a folder. Holds the folder that it has come to; @make: the mode of folders that
    are missing, None: they are an error."""

    def __init__(self, path: str, make: int | None):
        self.path, self.make, self.links = path, make, 0
        self.left = path.split("/")[::-1]
        self.at = -1
        self.move("/" if path.startswith("/") else ".")

    def move(self, name: str):
        """Go to a folder: @name in the one that is held, or absolute."""
        here = None if self.at < 0 else self.at
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        try:
            self.entered(found, name)
        finally:
            os.close(found)

    def entered(self, found: int, name: str):
        """Hold a folder that was found; follow a link."""
        status = os.fstat(found)
        if stat.S_ISLNK(status.st_mode):
            self.follow(found, status, name)
        elif not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        elif why := replaceable(status):
            place = os.readlink(f"/proc/self/fd/{found}")
            raise ToolError(f"{self.path}: the folder {place} {why}")
        else:
            self.hold(os.dup(found))

    def follow(self, found: int, status: os.stat_result, name: str):
        """Go where a link leads."""
        self.links += 1
        if status.st_uid not in callers() | {0}:
            raise ToolError(f"{self.path}: {name} is another user's link")
        if self.links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        leads = os.readlink("", dir_fd=found)
        self.left += leads.split("/")[::-1]
        if leads.startswith("/"):
            self.hold(-1)
            self.move("/")

    def hold(self, descriptor: int):
        """Hold another folder, -1: none."""
        if self.at >= 0:
            os.close(self.at)
        self.at = descriptor

    def step(self, name: str):
        """Go to a folder in the one that is held; make it if it is missing."""
        try:
            self.move(name)
        except FileNotFoundError:
            if self.make is None:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, self.make, dir_fd=self.at)
            self.move(name)
            os.chmod(f"/proc/self/fd/{self.at}", self.make)

    def end(self) -> int:
        """Walk; return the descriptor of the folder. It can be synced."""
        try:
            while self.left:
                name = self.left.pop()
                if name not in ("", "."):
                    self.step(name)
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.at)
        finally:
            self.hold(-1)


@contextlib.contextmanager
def folder_of(path: pathlib.Path | str, make: int | None = None):
    """Give the descriptor of the folder of a file, and the file's name there. Raises OSError, or
    ToolError if another user could interfere."""
    place, name = os.path.split(os.fspath(path))
    folder = Walk(place or ".", make).end()
    try:
        yield folder, name
    finally:
        os.close(folder)


def encoded(content: str | bytes) -> bytes:
    """Return the bytes of a file's content."""
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")


def replace(folder: int, name: str, content: str | bytes, mode: int):
    """Write a file so that it is whole at any time, old or new, also after a loss of power."""
    new = f"{NEW}{secrets.token_hex(12)}"
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                   PRIVATE, dir_fd=folder)
    try:
        with open(file, "wb") as stream:
            os.fchmod(file, mode)
            stream.write(encoded(content))
            stream.flush()
            os.fsync(file)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise
    # Not every file system can sync a folder.
    with contextlib.suppress(OSError):
        os.fsync(folder)


def unwritten(path: pathlib.Path | str, error: OSError) -> ToolError:
    """Return the error to report for a file that cannot be written."""
    return ToolError(f"{path} cannot be written: {error.strerror}")


# Files of the programs' own

def write_ours(path: pathlib.Path, text: str, mode: int = REPORT, folders: int = FOLDER):
    """Write a file of the programs' own. @folders: the mode of folders that are made for it."""
    try:
        with folder_of(path, folders) as (folder, name):
            replace(folder, name, text, mode)
    except OSError as error:
        raise unwritten(path, error) from None


def read_ours(path: pathlib.Path) -> str | None:
    """Return the text of a file of the programs' own, None if there is none."""
    try:
        with folder_of(path) as (folder, name):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                           dir_fd=folder)
            with open(file, encoding="utf-8", errors="surrogateescape") as stream:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
                    raise ToolError(f"{path} was not written by root: remove it")
                return stream.read(MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def locked(path: pathlib.Path):
    """Hold a lock file of the programs' own, which no other user can open."""
    try:
        with folder_of(path, FOLDER) as (folder, name):
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK |
                           os.O_CLOEXEC, PRIVATE, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{path} cannot be locked: {error.strerror}") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise ToolError(f"{path} is another user's: remove it")
        os.fchmod(file, PRIVATE)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


# Files that the user has named

def opened(path: str) -> int | None:
    """Return the descriptor that - or a path such as /dev/fd/3 names, None if another file is
    named."""
    match = OPENED.fullmatch(path)
    return int(match[1]) if match else BY_NAME.get(path)


def check_opened(path: str, number: int):
    """Raise ToolError unless the caller has opened a descriptor to be written to."""
    if number == STDOUT:
        # An error of it is told where it is written to, as for any other output.
        return
    try:
        mode = os.fstat(number).st_mode
        writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError as error:
        raise unwritten(path, error) from None
    if stat.S_ISBLK(mode):
        raise ToolError(f"{path} is a drive: name a file")
    if not writable:
        raise ToolError(f"{path} cannot be written: it was opened for reading")


def make_folder(path: str):
    """Make a folder that the user has named, if it is missing."""
    try:
        with folder_of(path.rstrip("/")) as (folder, name):
            os.mkdir(name, FOLDER, dir_fd=folder)
            os.chmod(name, FOLDER, dir_fd=folder)
    except FileExistsError:
        pass
    except OSError as error:
        raise ToolError(f"{path} cannot be made: {error.strerror}") from None


def check_free(folder: int, name: str, path: str):
    """Raise ToolError if a name in a folder is taken by what must not be replaced."""
    try:
        found = os.stat(name or ".", dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    kind = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a drive", stat.S_IFLNK: "a link",
            stat.S_IFREG: ""}.get(stat.S_IFMT(found.st_mode), "no regular file")
    if kind:
        raise ToolError(f"{path} is {kind}: name a file")
    if found.st_uid not in callers():
        raise ToolError(f"{path} belongs to another user: name another file")


def check_named(path: str):
    """Raise ToolError if a file that the user has named cannot be written; - is stdout."""
    number = opened(path)
    if number is not None:
        check_opened(path, number)
        return
    try:
        with folder_of(path) as (folder, name):
            check_free(folder, name, path)
            if not os.access(".", os.W_OK, dir_fd=folder, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError:
        raise ToolError(f"{os.path.dirname(path) or '.'} is not a folder that can be written "
                        "to") from None


def write_named(path: str, content: str | bytes):
    """Write a file that the user has named; - is stdout, for text. Never follows a link to it, nor
    opens a device: only what the caller has opened may be one, as a pipe or a terminal."""
    number = opened(path)
    if number == STDOUT:
        print(content, end="", flush=True)
        return
    try:
        if number is not None:
            check_opened(path, number)
            with open(os.dup(number), "wb") as stream:
                stream.write(encoded(content))
            return
        with folder_of(path) as (folder, name):
            check_free(folder, name, path)
            replace(folder, name, content, REPORT)
    except OSError as error:
        raise unwritten(path, error) from None


def make_named(path: str, text: str) -> bool:
    """Write a new file that the user has named, which only its owner may read: with sudo, its
    caller. Return false if the name is taken. Does not wait for the drive that the file is on."""
    try:
        with folder_of(path) as (folder, name):
            file = os.open(name or ".", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW |
                           os.O_CLOEXEC, PRIVATE, dir_fd=folder)
            try:
                with open(file, "w", encoding="utf-8", errors="backslashreplace") as stream:
                    os.fchmod(file, PRIVATE)
                    stream.write(text)
                    stream.flush()
                    # Some file systems have no owners, or keep root from setting one.
                    with contextlib.suppress(PermissionError):
                        os.fchown(file, max(callers()), -1)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                raise
    except FileExistsError:
        return False
    except OSError as error:
        raise unwritten(path, error) from None
    return True


def names_in(folder: pathlib.Path | str) -> list[str]:
    """Return the names in a folder, [] if it cannot be read, as of a process that has ended."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read_named(path: str) -> str:
    """Return the text of a file that the user has named to be read. Raises ValueError if it is no
    text, or too long to be meant."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError("it is too long")
    return data.decode("utf-8")
