# SPDX-License-Identifier: GPL-2.0
"""What each scheduler's module is made of: bytes of machine code by source file, and the hooks of
its policy. What a policy does not use is not in its module."""
import collections
import pathlib
import re
import subprocess

import model

HOOK = re.compile(r"^\t.*\(\*(\w+)\)\(", re.M)
POLICY = re.compile(r"static const struct iosched_policy \w+ = \{(.*?)\};", re.S)
USED = re.compile(r"\.(\w+)\s*=")
LINE = re.compile(r"^(\S+)\s+(\d+|-)\s+(0x[0-9a-f]+|0)\b(.*)$")
OF_KERNEL = "inline functions of the kernel"
POLICY_ROW = "the policy"


def source(name: str) -> pathlib.Path:
    """Return the source of a scheduler."""
    own = model.PROJECT / f"{name}-iosched.c"
    return own if own.exists() else model.PROJECT / f"tests/{name}/{name}.c"


def module(build: pathlib.Path, name: str) -> pathlib.Path:
    """Return the module of a scheduler."""
    return build / source(name).relative_to(model.PROJECT).with_suffix(".ko")


def hooks() -> list[str]:
    """Return the names of all hooks of a policy."""
    text = (model.PROJECT / "include/iosched.h").read_text()
    return HOOK.findall(text[text.index("struct iosched_policy {"):].split("};")[0])


def used(name: str) -> set[str]:
    """Return the hooks that a scheduler has."""
    return set(USED.findall(POLICY.search(source(name).read_text())[1])) - {"size"}


def files_of(name: str) -> dict[str, str]:
    """Return {name of a file without its folder: row} of a scheduler's files: of two files, the
    core's."""
    include = model.PROJECT / "include"
    paths = [*include.glob(f"{name}/*.h"), *include.glob("*.h"), *include.glob("tmpl/**/*.h")]
    return {path.name: row_of(path, name) for path in paths} | {source(name).name: POLICY_ROW}


def row_of(path: pathlib.Path, name: str) -> str:
    """Return the row of a file of the project."""
    row = str(path).rpartition("/include/")[2]
    return POLICY_ROW if row.startswith((f"{name}/", "location-vector.h")) else row


def code(path: pathlib.Path, name: str) -> collections.Counter:
    """Return {row: bytes of machine code} of a module, by its debugging information: inlined
    code belongs to the file in which it is written."""
    text = subprocess.run(["readelf", "--debug-dump=decodedline", path], check=True,
                          capture_output=True, text=True).stdout
    known, found = files_of(name), collections.Counter()
    full, before = "", None
    for line in text.splitlines():
        if line.startswith("/") and line.endswith(":"):
            full = line[:-1]
            continue
        fields = LINE.match(line)
        if not fields:
            continue
        at = int(fields[3], 16)
        if before and at > before[1]:
            found[before[0]] += at - before[1]
        if fields[2] == "-" or "END" in fields[4]:
            before = None
            continue
        # The first lines have no full path.
        row = known.get(fields[1], OF_KERNEL)
        if full.endswith("/" + fields[1]):
            ours = "/build/" in full and "/include/" in full and "/linux-" not in full
            row = row_of(full, name) if ours else OF_KERNEL
        if fields[1] == source(name).name:
            row = POLICY_ROW
        before = row, at
    return found


def table(build: pathlib.Path, names: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of @names' code in a folder of modules."""
    counted = {name: code(module(build, name), name) for name in names}
    parts = sorted(set().union(*counted.values()) - {POLICY_ROW, OF_KERNEL})
    rows = [[part, *(str(counted[name][part]) for name in names)]
            for part in (*parts, OF_KERNEL, POLICY_ROW)]
    rows.append(["all", *(f"**{sum(counted[name].values())}**" for name in names)])
    return ["bytes of", *names], rows


def hook_rows(names: list[str]) -> list[list[str]]:
    """Return the rows of a table: which scheduler has which hook."""
    return [[hook, *("yes" if hook in used(name) else "" for name in names)] for hook in hooks()]
