# SPDX-License-Identifier: GPL-2.0
"""How long a scheduler's functions hold its lock, by the module tests/lockhold. In virtual time."""
import pathlib

from checks import check, modprobe

FOLDER = pathlib.Path("/sys/kernel/debug/lockhold")
# How the names of a scheduler's functions begin if it is no module.
BUILT_IN = {"mq-deadline": ("dd_", "deadline_read", "deadline_write"), "kyber": ("kyber_",),
            "bfq": ("bfq_",)}
COUNTS = ("holds", "total", "longest", "disturbed", "longest_disturbed")


def functions(scheduler):
    """Return {name: address} of a scheduler's functions."""
    name = scheduler.replace("-", "_")
    modules = {f"[{name}]", f"[{name}_iosched]"}
    loaded, built_in = {}, {}
    for line in pathlib.Path("/proc/kallsyms").read_text().splitlines():
        address, kind, symbol, *module = line.split()
        if kind not in "tT" or "." in symbol:
            continue
        if modules.intersection(module):
            loaded[symbol] = int(address, 16)
        elif not module and symbol.startswith(BUILT_IN.get(scheduler, "?")):
            built_in[symbol] = int(address, 16)
    return loaded or built_in


def watch(scheduler):
    """Begin anew with the locks that a scheduler takes; return the names of its functions."""
    if not FOLDER.exists():
        modprobe("lockhold")
    known = functions(scheduler)
    check(known, f"{len(known)} functions of {scheduler}")
    # Where the last one ends is not known; holds() leaves out what follows.
    (FOLDER / "watch").write_text(f"{min(known.values()):x} {max(known.values()) + 4096:x}")
    return set(known)


def holds(known):
    """Return {function that took a lock: {count: number}} of those whose names are @known, of all
    CPUs."""
    found = {}
    for line in (FOLDER / "holds").read_text().splitlines():
        fields = line.split()
        row = dict(zip(COUNTS, map(int, fields[-len(COUNTS):]), strict=True))
        if fields[0] not in known:
            continue
        before = found.get(fields[0], dict.fromkeys(COUNTS, 0))
        found[fields[0]] = {key: max(row[key], before[key]) if key.startswith("longest") else
                            row[key] + before[key] for key in COUNTS}
    return found
