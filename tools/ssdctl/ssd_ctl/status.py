# SPDX-License-Identifier: GPL-2.0
"""Show the drives, their schedulers, whether these are kept, and what the drives do."""
import argparse
import dataclasses
import json
import os

from ssd_common import ToolError
from ssd_common.drive import Drive, amount
from ssd_ctl import CtlError, activity, drives, keeping, rules, saved, schedulers, uses
from ssd_ctl.said import add_option
from ssd_ctl.setters import boot

OK = 0
LONGEST_S = 3600
HEAD = ("NAME", "KIND", "SIZE", "SCHEDULER", "KEPT", "ADVICE", "MODEL")


def interval(text: str) -> float:
    """Return the number of --interval."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to {LONGEST_S} seconds")
    return value


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", nargs="?", metavar="DEVICE",
                        help="only this drive, as in /dev/sdb (default: all)")
    add_option(parser)
    parser.add_argument("--interval", type=interval, default=1, metavar="S",
                        help="watch what the drives do for so many seconds; 0: do not "
                             "(default: 1)")


def kept(drive: Drive) -> dict | None:
    """Return what the drive's rule keeps, None if it has none."""
    found = rules.of(drive)
    if not found:
        return None
    rule = found[-1]
    return {"rule": str(rule.path), "choice": rule.choice.as_json(), "by_model": rule.by_model,
            "by_kind": rule.model if rule.by_kind else None,
            "edited": rule.edited(), "agrees": schedulers.holds(drive, rule.choice),
            **overruled(drive, rule)}


def overruled(drive: Drive, rule: rules.Rule) -> dict[str, list[str]]:
    """Return what sets something else than a rule, and what may do so, as files tell."""
    found = keeping.against(drive, rule)
    return {"overruled": [str(each) for each in found if each.sure],
            "unsure": [str(each) for each in found if not each.sure]}


def advice(drive: Drive) -> dict:
    """Return the choice of the stored advice of ssdctl advise as "advice", or if it is undecided as
    "undecided", with the bounds of its gain; None where there is none."""
    found = {"advice": None, "undecided": None}
    try:
        made = saved.advised(drive)
    except (CtlError, ToolError):
        return found
    if made and made.sure:
        found["advice"] = made.choice.as_json()
    elif made:
        found["undecided"] = {**made.choice.as_json(), "gain_low": made.low, "gain_high": made.high}
    return found


def report(drive: Drive) -> dict:
    """Return all that is known about a drive but for what it does."""
    found = drive.identity()
    made = {"name": drive.name, "path": drive.path, "model": found["model"],
            "serial": drives.serial(drive), "place": drives.place(drive), "twins": [],
            "uses": uses.of(drive), "kind": drives.kind(drive), "bytes": drive.size,
            "rotational": found["rotational"], "scheduler": None, "tunables": {}, "changed": {},
            "queue": {}, "kept": None, "changes": [], "advice": None, "undecided": None}
    if not drives.schedules(drive.sysfs):
        if not drive.exists():
            raise CtlError(f"{drive.path} has disappeared")
        return made | {"why": drives.without(drive)}
    rule = kept(drive)
    return made | {"scheduler": schedulers.present(drive),
                   "tunables": schedulers.tunables(drive), "changed": schedulers.changed(drive),
                   "queue": schedulers.read_choice(drive).queue, "kept": rule,
                   "changes": [] if rule else list(map(str, keeping.changes(drive))),
                   **advice(drive)}


def note_twins(made: list[dict]):
    """Note which drives have the model and serial number of another one, as in docks and readers of
    cards: their places tell them apart."""
    for each in made:
        each["twins"] = [other["name"] for other in made if other is not each and each["serial"] and
                         (other["model"], other["serial"]) == (each["model"], each["serial"])]


def reports(found: list[Drive]) -> list[dict]:
    """Return the reports of drives, without those that are removed meanwhile."""
    made = []
    for drive in found:
        try:
            made.append(report(drive))
        except CtlError:
            if drive.exists():
                raise
    note_twins(made)
    return made


def kept_word(made: dict | None) -> str:
    """Return whether a drive's scheduler is kept, in a word."""
    if not made:
        return "no"
    return next((word for word, true in (
        ("edited", made["edited"]), ("overruled", made["overruled"]),
        ("differs", not made["agrees"]), ("perhaps", made["unsure"])) if true), "yes")


def advice_word(made: dict) -> str:
    """Return what was advised for a drive, in a word."""
    return made["advice"]["scheduler"] if made["advice"] else (
        "undecided" if made["undecided"] else "-")


def row(made: dict) -> tuple[str, ...]:
    """Return a drive's line of the table."""
    kind = made["kind"] + (" disk" if made["rotational"] else "")
    return (made["name"], kind, amount(made["bytes"]), made["scheduler"] or "-",
            kept_word(made["kept"]),
            advice_word(made), str(made["model"]) or "-")


def words(choice: dict) -> str:
    """Return a choice in words."""
    return " ".join([choice["scheduler"], *(f"{name}={value}" for name, value in
                                            (choice["tunables"] | choice["queue"]).items())])


def way_text(name: str, way: dict) -> str:
    """Return what a drive does in a direction."""
    latency = "" if way["latency_ms"] is None else f", {way['latency_ms']:.3g} ms"
    return f"{name} {way['mb_s']:.3g} MB/s ({way['iops']:.0f} IOPS{latency})"


def now_text(now: dict | None) -> str:
    """Return what a drive does in a line."""
    if not now:
        return "it has disappeared"
    if not now["counted"]:
        return "not counted: queue/iostats is 0"
    if now["idle"]:
        return "idle"
    ways = [way_text(name, now[key]) for name, key in (("read", "read"), ("written", "write"))
            if now[key]["iops"]]
    held = [f"{now['queued']} queued"] if now["queued"] is not None else []
    flying = f"{now['read']['in_flight']} reads {now['write']['in_flight']} writes in flight"
    return ", ".join([*ways, f"{now['busy']:.0f} % busy", flying, *held])


def identity_text(made: dict) -> str:
    """Return what tells a drive from others, and what it is used for, "" if nothing is known."""
    parts = [f"serial number {made['serial']}" if made["serial"] else "",
             f"as {' '.join(made['twins'])} has, too" if made["twins"] else "",
             f"at {made['place']}" if made["place"] and (made["twins"] or not made["serial"])
             else "", f"used for {' '.join(made['uses'])}" if made["uses"] else ""]
    return ", ".join(filter(None, parts))


def details(made: dict) -> list[str]:
    """Return the lines below a drive's line of the table."""
    lines = [made["why"]] if "why" in made else []
    if known := identity_text(made):
        lines.append(f"is:     {known}")
    if made["changed"]:
        lines.append("set:    " + " ".join(f"{name}={value}"
                                           for name, value in made["changed"].items()))
    rule = made["kept"]
    if rule and (rule["edited"] or not rule["agrees"]):
        lines.append(f"kept:   {words(rule['choice'])} ({rule['rule']}"
                     f"{', edited' if rule['edited'] else ''})")
    lines += [f"kept:   {text}" for text in (rule["overruled"] + rule["unsure"] if rule else ())]
    lines += [f"later:  {text}" for text in made["changes"]]
    if made["advice"]:
        lines.append(f"advice: {words(made['advice'])}")
    if made["undecided"]:
        lines.append(f"advice: undecided, {words(made['undecided'])} leads")
    if "now" in made:
        lines.append("now:    " + now_text(made["now"]))
    return lines


def support_lines(support: dict[str, str]) -> list[str]:
    """Return which schedulers the kernel has, and what to do about those that it has not."""
    release = os.uname().release
    there = [name for name, state in support.items() if state != schedulers.MISSING]
    lines = [f"kernel {release} has: none {' '.join(there)}"]
    missing = [name for name in support if name not in there]
    for remedy in dict.fromkeys(schedulers.remedy(name) for name in missing):
        names = [name for name in missing if schedulers.remedy(name) == remedy]
        lines.append(f"it lacks {' '.join(names)}: {remedy}")
    return lines


def show(made: dict):
    """Print the table."""
    table = [HEAD, *(row(each) for each in made["drives"])]
    widths = [max(len(line[at]) for line in table) for at in range(len(HEAD))]
    for number, line in enumerate(table):
        print("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True))
              .rstrip())
        for detail in details(made["drives"][number - 1]) if number else ():
            print(f"    {detail}")
    if not made["drives"]:
        print("there are no drives")
    print("\n" + "\n".join([*support_lines(made["support"]), *made["notes"]]))


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    found = [drives.find(args.device, bare=True)] if args.device else drives.every(bare=True)
    made = {"kernel": os.uname().release, "support": schedulers.support(found),
            "notes": boot.notes(), "drives": reports(found)}
    if args.interval > 0:
        seen = activity.watch(found, args.interval)
        for each in made["drives"]:
            one = seen.get(each["name"])
            each["now"] = one and {**dataclasses.asdict(one), "idle": one.idle()}
    if args.json:
        print(json.dumps(made, indent=1))
    else:
        show(made)
    return OK
