#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl recommend, by made-up files of the kernel: what is recommended gains by the published
# figures and is nowhere worse in all; advice and the hardware database come first; the documents
# and the table agree; the answer takes less than two seconds
# quick: host

import json
import pathlib
import resource
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from checks import check, run  # noqa: E402  (in a folder added above)
from made_drives import DISK, made  # noqa: E402
from ssd_common import ToolError  # noqa: E402
from ssd_ctl import evidence, kinds, recommend, saved, schedulers  # noqa: E402
from ssd_ctl.choice import Choice  # noqa: E402


def gains():
    """What is recommended gains, by what is published, and no load is worse by more than 2 % in
    all its figures than under none or what the kernel selects; costs are shown."""
    for kind in kinds.KINDS:
        if kind.strength == kinds.NOTHING:
            check(not kind.scheduler, f"{kind.name}: nothing is known, nothing is recommended")
            continue
        found, costs = evidence.of(kind.drive, kind.scheduler, kind.usual)
        check(found and costs, f"{kind.name}: {len(found)} gains, {len(costs)} costs")
        for workload in {cell["workload"] for cell in evidence.cells()
                         if cell["drive"] == kind.drive}:
            for peer in {"none", kind.usual}:
                score = evidence.score(kind.drive, workload, kind.scheduler, peer)
                check(score >= evidence.WORSE,
                      f"{kind.name}, {workload}: {score:+.2f} against {peer}")
    # The drive qlc has no SLC cache in the cells.
    for kind in kinds.KINDS:
        if "qlc" in (kind.drive, *(each.drive for each in kind.instead)):
            check("once its SLC cache is full" in kind.why and kind.strength != kinds.EMULATED,
                  f"{kind.name}: {kind.strength}; {kind.why}")
    check("no SLC cache" in (PROJECT / recommend.PAGE).read_text(), "the page says so, too")
    # A figure that no scheduler decides is in neither list.
    equal = [cell for cell in evidence.cells() if cell["drive"] == "nvme" and
             cell["workload"] == "start beside a copy"]
    shown = [each.workload for ways in evidence.of("nvme", "pass", "none") for each in ways]
    check(equal and equal[0]["workload"] not in shown, "what is equal is not shown")
    text = str(evidence.Figure("sd", "start", "start_s", "selected", "pass",
                               {"pass": 1.06, "none": 60, "bfq": 1200}))
    check(text == "start: an application starts, s: 1.06 (none 60 or more, bfq 60 or more)", text)
    for figure, means, better in (("start_s", {"pass": 1, "bfq": 2}, True),
                                  ("ops_s", {"pass": 1, "bfq": 2}, False),
                                  ("read_mbps", {"pass": 1, "none": 2}, True),
                                  ("write_p99", {"pass": 1, "bfq": 2}, True),
                                  ("write_p99", {"pass": 2, "bfq": 1}, False),
                                  ("write_p99", {"pass": 2}, True)):
        each = evidence.Figure("sd", "x", figure, "selected", "pass", means)
        check(each.better("bfq") == better, f"{figure} of {means} is better: {better}")
    _, costs = evidence.of("qlc", "pass", "mq-deadline")
    late = [str(each) for each in costs if each.figure == "write_p99"]
    check(any("a write waits (99 %), ms: 563 (none 260" in each for each in late),
          f"how late writes are is a cost: {late}")
    figures = [evidence.Figure("sd", str(at), "ops_s", "selected", "pass", {"pass": 8, "bfq": at})
               for at in (8, 2, 0, 4)]
    order = [each.workload for each in evidence.telling(figures, "bfq")]
    check(order == ["0", "2", "4", "8"], f"what differs most comes first: {order}")


def losses(card):
    """Of what it costs the worst is shown first, one figure of each load, and no gain."""
    def figure(load, name, own, none, usual):
        return evidence.Figure("sd", load, name, "selected", "pass",
                               {"pass": own, "none": none, "mq-deadline": usual})
    small, large, lost, late = (
        figure("a", "write_mbps", 9, 10, 9.5), figure("a", "read_mbps", 800, 900, 1),
        figure("b", "ops_s", 1, 1, 4), figure("c", "write_p99", 30, 10, 40))
    found = evidence.worst([small, large, lost, late], "none", "mq-deadline")
    check(found == [lost, late, large], f"order: {[each.workload for each in found]}")
    answer = recommend.Recommendation(kinds.KINDS[1], Choice("pass"), kinds.EMULATED, "", {},
                                      costs=[small, large, lost, late], present="mq-deadline")
    shown = [line.strip() for line in recommend.lines(card, answer) if "costs:" in line]
    check(shown == [f"costs:  {each}" for each in found], f"the answer has this order: {shown}")
    costs = evidence.of("sd", "pass", "mq-deadline")[1]
    first = evidence.worst(costs, "none", "mq-deadline")[0]
    check((first.workload, first.figure) == ("package installation beside 4 sync readers",
                                             "read_mbps"), f"a card's worst: {first}")


def as_it_is(card):
    """A drive that has a scheduler which does better than what is recommended keeps it; one that
    is worse does not decide, and what it does better is a cost."""
    former, saved.advised = saved.advised, lambda _: None
    for has, meant in (("bfq", "None"), ("kyber", "pass"), ("none", "pass"), ("pass", "pass"),
                       ("unknown", "pass")):
        (card.sysfs / "queue/scheduler").write_text(f"none mq-deadline [{has}]\n")
        found = recommend.of(card)
        why = "it has bfq, which does better than pass in: key-value store beside a backup"
        check((str(found.choice), found.why == why) == (meant, has == "bfq") and
              found.present == found.as_json()["present"] == has,
              f"it has {has}: {found.choice}, {found.why}")
        if has == "bfq":
            shown = "\n".join(recommend.lines(card, found))
            store = [each for each in found.others[0].costs if each.figure == "ops_s"]
            check(str(found.others[0].choice) == "pass" and store and
                  recommend.KEEP in shown and f"why:    {why}" in shown and
                  "--recommended" not in shown and "554 (bfq 825" in shown, shown)
    (card.sysfs / "queue/scheduler").write_text(DISK["queue/scheduler"] + "\n")
    saved.advised = former


def agree():
    """The documents say what the table says; the rows of README.md name schedulers that are
    recommended for their kinds, or instead."""
    run(PROJECT / "scripts/doc-kinds", "--check")
    check(True, "README.md, ssdctl(8), the documents and the evidence are as the table has them")
    named = {kind.name: {kind.scheduler, *(each.scheduler for each in kind.instead)}
             for kind in (*kinds.KINDS, kinds.OTHER)}
    recommended = {kind.name: kind.scheduler for kind in (*kinds.KINDS, kinds.OTHER)}
    for row in kinds.README:
        for kind in row.kinds:
            check(not row.use.startswith("no") or not recommended[kind],
                  f"{row.machine}, {row.trouble}: {kind} keeps what it has")
            fits = any(f"`{name}`" in row.use for name in named[kind] if name)
            check(kind in named and fits != row.use.startswith("no"), f"{row.machine}: {row.use}")


def sources(card):
    """Advice that is decided comes before the database, that before the kind; what is undecided or
    wrong is noted."""
    former = kinds.properties, saved.advised, schedulers.available
    schedulers.available = lambda _: ["none", "pass", "kyber"]
    sure = saved.Advice(Choice("bp"), True, None, 1.3, 2.0)
    for what, model, advice, choice, strength, note in (
            ("the kind", "", None, "pass", kinds.EMULATED, ""),
            ("the model", "kyber", None, "kyber depth=3", kinds.MODEL, ""),
            ("a wrong entry", "k y", None, "pass", kinds.EMULATED, "hardware database is wrong"),
            ("advice", "kyber", sure, "bp", kinds.MEASURED, "the running kernel has no bp"),
            ("undecided advice", "", saved.Advice(Choice("bp"), False, None, None, None), "pass",
             kinds.EMULATED, "undecided, bp leads")):
        saved.advised = lambda _, advice=advice: advice
        kinds.properties = lambda _, model=model: model and {
            "SSD_IOSCHED": model, "SSD_IOSCHED_TUNABLES": "depth=3"} or {}
        found = recommend.of(card)
        check((str(found.choice), found.strength) == (choice, strength) and
              note in " ".join(found.notes) and bool(note) == bool(found.notes),
              f"{what}: {found.choice}, {found.strength}, {found.notes}")
        check(bool(found.gains) == (strength == kinds.EMULATED), "figures are of a kind alone")
    kinds.properties, saved.advised, schedulers.available = former


def register(card):
    """bp's blocks are those that the card tells, if that can be."""
    former = saved.advised
    saved.advised = lambda _: None
    other = recommend.of(card).others[0]
    check(str(other.choice).startswith("bp block_size_kb=4096 "), f"{other.choice}")
    for text in ("0", "x", str(1 << 50), "512"):
        (card.sysfs / kinds.ERASE_SIZE).write_text(text)
        other = recommend.of(card).others[0]
        check("block_size_kb" not in str(other.choice), f"{text}: {other.choice}")
    shown = "\n".join(recommend.lines(card, recommend.of(card)))
    check("mmcblk0: pass\n" in shown and "SD card" in shown and "tags=64" in shown and
          "gains:  start beside a copy" in shown and
          "costs:  package installation beside 4 sync readers: read" in shown and
          shown.count("gains") == recommend.SHOWN + recommend.SHOWN_OF_OTHER and
          "not on a real one" in shown and "persist /dev/mmcblk0 --recommended" in shown,
          "a text for eyes")
    saved.advised = former


def origins(card, stick):
    """Figures that are of another matrix than the usual one name it; those of a choice that sets
    more than the scheduler say that this was not set."""
    former, saved.advised = saved.advised, lambda _: None
    shown = {drive.name: recommend.lines(drive, recommend.of(drive)) for drive in (card, stick)}
    saved.advised = former
    bare = "(figures: with nothing else set)"
    for drive, meant in ((card, True), (stick, False)):
        line = next(line for line in shown[drive.name] if "or:     bp " in line)
        check(line.endswith(bare) == meant, line.strip())
    full = [line for line in shown[stick.name] if "4 sequential writers" in line]
    check(full and all(line.endswith(", Documentation/results/full.md") for line in full),
          f"figures of the full matrix: {full}")
    check(not any("results/" in line for line in shown[card.name]), "a card's are as selected")
    check(bare not in str(recommend.Other("x", Choice("pass"), *evidence.of("sd", "pass"))),
          "a scheduler alone")


def probed(folder, card):
    """What a report of ssd-probe says fits is shown, too; a file that is none ends in a line."""
    former, saved.advised = saved.advised, lambda _: None
    values = {"mapping": "block", "erase_block_kb": 2048, "open_blocks": 2}
    path = folder / "report.json"
    path.write_text(json.dumps({"schema": 1, "findings": {
        name: {"value": value} for name, value in values.items()}}))
    found = recommend.of(card, str(path)).others[-1]
    check(str(found.choice).startswith("bp block_size_kb=2048 open_blocks=2 ") and
          "by ssd-probe, the drive maps whole erase blocks" in found.trouble, f"{found.choice}")
    for text in ("", "{}", '{"schema": 1}'):
        path.write_text(text)
        try:
            recommend.of(card, str(path))
            check(False, f"{text!r} is refused")
        except ToolError as error:
            check("is no report of ssd-probe" in str(error), f"{text!r}: {error}")
    saved.advised = former


def at_once():
    """The answer for all drives of this machine takes less than two seconds of a CPU, and reads
    nothing of Python's numerical modules."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-B", "-X", "importtime",
                           PROJECT / "tools/ssdctl/ssdctl", "recommend", "--json"],
                          capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    check(done.returncode == 0 and "drives" in json.loads(done.stdout), "JSON")
    heavy = [name for name in ("numpy", "scipy", "matplotlib") if f" {name}\n" in done.stderr]
    check(took < 2 and not heavy, f"in {took:.2f} s of a CPU {heavy or ''}")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        card, stick = (made(folder / "devices", name) for name in ("mmcblk0", "sda"))
        gains()
        losses(card)
        agree()
        as_it_is(card)
        sources(card)
        register(card)
        origins(card, stick)
        probed(folder, card)
    at_once()


if __name__ == "__main__":
    main()
