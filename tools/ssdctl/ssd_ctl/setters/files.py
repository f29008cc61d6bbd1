# SPDX-License-Identifier: GPL-2.0
"""Files of the system in which schedulers may be set, as programs of the system read them."""
import os
import pathlib
import stat
from collections.abc import Iterator

from ssd_common.files import names_in

# Tests have another one.
ROOT = pathlib.Path("/")
# Scripts and settings are shorter; what is longer, or is no text, is not read.
LONGEST = 1 << 20
HEAD = 512
# Files here may never end, and an open of one may do something.
OF_KERNEL = ("/proc/", "/sys/", "/dev/")
# A file in an earlier folder stands for one of this name in a later one.
LAYERS = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
# Targets of which the machine reaches none when it boots as usual.
UNUSUAL = ("rescue", "emergency", "halt", "poweroff", "reboot", "kexec", "shutdown")
# What starts a service without systemd: in rc?.d, /etc/runlevels and /etc/runit.
STARTED = ("etc/rc[2-5S].d/S??{}", "etc/runlevels/*/{}", "etc/runit/runsvdir/*/{}")


def at(path: str | pathlib.Path) -> pathlib.Path:
    """Return where a file is, of which the path is relative to the root or absolute."""
    return ROOT / str(path).lstrip("/")


def shown(path: pathlib.Path) -> str:
    """Return the path of a file for eyes."""
    return f"/{path.relative_to(ROOT)}" if path.is_relative_to(ROOT) else str(path)


def text_of(path: pathlib.Path) -> str:
    """Return a file's text, "" if it cannot be read, is no text, is too long or is the kernel's."""
    try:
        if os.path.realpath(path).startswith(OF_KERNEL) or not path.is_file():
            return ""
        with open(path, "rb", opener=at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            # Programs have zeros near their beginning.
            found = file.read(HEAD) or b""
            found += b"" if b"\0" in found else file.read(LONGEST) or b""
    except (OSError, ValueError):
        return ""
    return "" if b"\0" in found or len(found) > LONGEST else found.decode(errors="replace")


def at_once(path: str, flags: int) -> int:
    """Open a file without waiting for anything."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def layered(folder: str, pattern: str, layers: tuple[str, ...] = LAYERS) -> list[pathlib.Path]:
    """Return the files of a folder that each of the layers has, in the order of their names; of one
    name the first one, none if that is masked by a link to /dev/null."""
    found: dict[str, pathlib.Path] = {}
    for layer in layers:
        for path in at(layer).glob(f"{folder}/{pattern}"):
            found.setdefault(path.name, path)
    return [found[name] for name in sorted(found)]


def joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a text in which a line that ends with a backslash goes on."""
    start, line = 0, ""
    for number, part in enumerate(text.splitlines(), 1):
        start, line = start or number, line + part.removesuffix("\\")
        if not part.endswith("\\"):
            yield start, line
            start, line = 0, ""
    if start:
        yield start, line


def settings(path: pathlib.Path, comments: str = "#;", headings: bool = False
             ) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line number, section, name, value) of a file with lines NAME=VALUE. @headings: also of
    the line that begins a section, without a name"""
    section = ""
    for number, line in enumerate(map(str.strip, text_of(path).splitlines()), 1):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            if headings:
                yield number, section, "", ""
        elif "=" in line and line[0] not in comments:
            name, _, value = line.partition("=")
            yield number, section, name.strip(), value.strip()


class Units:
    """The units of systemd. Reads the folders when it is made."""

    def __init__(self):
        self.paths: dict[str, pathlib.Path] = {}
        self.more: dict[str, list[pathlib.Path]] = {}
        # Those that links in *.wants and *.requires start; those that only unusual targets do.
        self.wanted: set[str] = set()
        self.unusual: set[str] = set()
        for folder in (at(layer) / "systemd/system" for layer in LAYERS):
            for path in (folder / name for name in names_in(folder)):
                if path.suffix in (".wants", ".requires"):
                    unusual = path.stem.removesuffix(".target") in UNUSUAL
                    (self.unusual if unusual else self.wanted).update(names_in(path))
                elif path.suffix == ".d":
                    self.more.setdefault(path.stem, []).extend(sorted(path.glob("*.conf")))
                else:
                    self.paths.setdefault(path.name, path)

    def texts(self, name: str) -> list[tuple[pathlib.Path, str]]:
        """Return (path, text) of a unit's file, of an instance that of its template, and of those
        that extend it; none if it is masked."""
        head, at_sign, tail = name.partition("@")
        template = f"{head}@.{tail.rpartition('.')[2]}" if at_sign else name
        main = self.paths.get(name) or self.paths.get(template)
        text = text_of(main) if main else ""
        if not text:
            return []
        more = [*self.more.get(template, ()), *(self.more.get(name, ()) if at_sign else ())]
        return [(main, text), *((path, text_of(path)) for path in more)]

    def started(self, service: str) -> bool:
        """Return true if a service starts with the machine, by systemd or otherwise."""
        name = f"{service}.service"
        return name in self.wanted and bool(self.texts(name)) or any(
            path for pattern in STARTED for path in at("/").glob(pattern.format(service)))
