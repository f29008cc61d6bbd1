# SPDX-License-Identifier: GPL-2.0
"""The text of a job file, whatever its encoding, and of the files that it includes.

A job file may come from someone else, and ssdctl runs as root: what is included has to be a file
below the folder of the job file, of the same owner, reached without a link. So a job file makes
ssdctl read nothing that its author could not have put into it.
"""
import codecs
import errno
import os
import posixpath
import stat

from ssd_ctl import CtlError

# What the kernel says of a link, and of one to a folder.
BY_LINK = (errno.ELOOP, errno.ENOTDIR)
# Larger files are no job files; what is included counts, too.
LARGEST = 1 << 20
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le",
         codecs.BOM_UTF16_BE: "utf-16-be"}
# Without a mark: where the high byte of a first character in UTF-16 is.
ZEROS = {"utf-16-le": 1, "utf-16-be": 0}


def decoded(content: bytes) -> str:
    """Return the text of the bytes of a job file: UTF-8 or UTF-16, else Latin-1, in which each byte
    means something."""
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            return content[len(mark):].decode(encoding, "replace")
    for encoding, at in ZEROS.items():
        if len(content) > 1 and content[:2].count(0) == 1 and not content[at]:
            return content.decode(encoding, "replace")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_up_to(file, most: int, name: str | os.PathLike) -> bytes:
    """Return the content of a file that has @most bytes at most."""
    content = file.read(most + 1)
    if len(content) > most:
        raise CtlError(f"{name} is no job file: it is larger than {LARGEST >> 20} MiB")
    return content


def opened_below(folder: str, name: str) -> int:
    """Return the descriptor of a file below a folder, on whose way there is no link. It may be a
    pipe, or a device, for which this does not wait."""
    flags = os.O_RDONLY | os.O_CLOEXEC
    place = os.open(folder, flags | os.O_DIRECTORY)
    *folders, last = name.split("/")
    try:
        for each in folders:
            inner = os.open(each, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=place)
    finally:
        os.close(place)


class Folder:
    """The folder of a job file: what its include lines may read. @path: of the job file, @owner: of
    it; None if it is no file in a folder, as a pipe."""

    def __init__(self, path: str | os.PathLike, owner: int | None):
        self.path, self.owner = os.path.dirname(path) or ".", owner
        self.left = LARGEST

    def name_of(self, name: str, by: str) -> str:
        """Return the path, below the folder, of a file that is included. @name: in the file @by,
        "" for the job file."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(by), name))
        if not name or path.startswith("/") or path.split("/")[0] in ("..", "."):
            raise CtlError("an included file has to be below the folder of the job file: insert it")
        return path

    def text_of(self, path: str) -> str:
        """Return the text of an included file. @path: as of name_of()."""
        if self.owner is None:
            raise CtlError("only a job file in a folder can include another: insert the file")
        try:
            with open(opened_below(self.path, path), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_uid != self.owner:
                    raise CtlError("it is no file of the job file's owner: insert it")
                content = read_up_to(file, self.left, path)
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) in BY_LINK:
                raise CtlError("it is a link, or below one, which is not followed: insert the file"
                               ) from None
            raise CtlError(getattr(error, "strerror", None) or "no name of a file") from None
        # An empty one counts, so that there is an end of them.
        self.left = max(0, self.left - len(content) - 1)
        return decoded(content)


def read(path: str | os.PathLike) -> tuple[str, Folder]:
    """Return the text of a job file, and the folder that it may include from."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        text = decoded(read_up_to(file, LARGEST, path))
    return text, Folder(path, status.st_uid if stat.S_ISREG(status.st_mode) else None)
