#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Judge tools/ssd-probe on random drives.

    tests/bench/probe-score.py [--seeds N] [--first K] [--just SEED...] [--jobs J]
    tests/bench/probe-score.py --papers              # the papers' drives instead
    tests/bench/probe-score.py --again ...           # judge the answers left by an earlier run
    tests/bench/probe-score.py --explain SEED        # keys, truth and answers of a drive

Each seed is a random emulated SSD (probe_draw.py). It is probed in a simulated guest, some of them
beside other I/O, and each finding is compared with what follows from the drive's keys
(probe_truth.py): right, wrong, or "cannot tell". Prints a table, and each wrong answer with
its drive. The answers are left in build/probe-score/, with the table as score.json.
"""
import argparse
import collections
import dataclasses
import json
import pathlib

import guests
import judging
import model
import probe_draw
import probe_papers
import probe_truth
import storage
import tables

FOLDER = model.PROJECT / "build/probe-score"
PROGRAM = "probe_runs.py"
TOOL = "build/tools/ssd-probe-io"
# Drives of a guest.
BATCH = 4
VERDICTS = ("right", "wrong", "cannot tell")


@dataclasses.dataclass
class Probed:
    """A drive and what the probe says of it. @found, @procedures: the "findings" and "procedures"
    of the report, @problems: lines that it says instead, @seconds: real time."""
    drive: probe_draw.Drive
    found: dict[str, dict] = dataclasses.field(default_factory=dict)
    procedures: dict[str, dict] = dataclasses.field(default_factory=dict)
    problems: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def restored(cls, kept: dict) -> "Probed":
        """Return a drive as dataclasses.asdict() has described it."""
        drive = probe_draw.Drive(**kept["drive"] | {"beside": tuple(kept["drive"]["beside"])})
        return cls(**kept | {"drive": drive})

    def truths(self) -> dict[str, probe_truth.Truth]:
        """Return what ought to be found."""
        return probe_truth.truths(all_keys(self.drive))

    def verdicts(self) -> dict[str, str]:
        """Return the verdict on each finding that was to be made."""
        return {name: probe_truth.judge(truth, self.found.get(name, {}).get("value"))
                for name, truth in self.truths().items()}


def all_keys(drive: probe_draw.Drive) -> dict:
    """Return the keys of a drive and of its preset."""
    return model.preset_keys(drive.preset) | drive.keys


# Probing

def options() -> list[str]:
    """Return the options of scripts/lab for the guests."""
    return [*(option for option in storage.guest_options(PROGRAM, simulate=True)
              if not option.startswith("--only")), "--memory=2G"]


def file_of(drive: probe_draw.Drive, folder: pathlib.Path) -> pathlib.Path:
    """Return the file of a drive's answers."""
    return folder / f"{drive.name.replace(' ', '-')}.json"


def probe(drives: list[probe_draw.Drive], folder: pathlib.Path) -> list[Probed]:
    """Probe drives in guests, several at a time; return them in the order of @drives. Leave the
    answers and logs in @folder."""
    if not (model.PROJECT / TOOL).exists():
        raise model.Failed(f"{TOOL} is missing: make tools")
    folder.mkdir(parents=True, exist_ok=True)
    progress, probed = guests.Progress(len(drives)), {}

    def done(one: Probed):
        file_of(one.drive, folder).write_text(json.dumps(dataclasses.asdict(one), indent=1))
        probed[one.drive.name] = one
        counts = collections.Counter(one.verdicts().values())
        progress.step(f"{one.drive.name}: " + ", ".join(
            f"{counts[verdict]} {verdict}" for verdict in VERDICTS))

    judging.run(judging.Work(
        PROGRAM, options(), dataclasses.asdict,
        lambda drive, printed, seconds: done(Probed(drive, **printed, seconds=seconds)),
        # It counts as probed in vain.
        lambda drive, why: done(Probed(drive, problems=[why])),
        ((TOOL, model.PROJECT / TOOL),)), drives, folder, BATCH)
    return [probed[drive.name] for drive in drives]


# Reports

def nothing_there(probed: list[Probed]) -> collections.Counter:
    """Return for each finding, and for all, on how many drives it is right not to tell."""
    counts = collections.Counter()
    for one in probed:
        for name, verdict in one.verdicts().items():
            if verdict == "right" and one.found.get(name, {"value": None})["value"] is None:
                counts[name] += 1
                counts["all"] += name in one.found
    return counts


def counted(probed: list[Probed]) -> dict[str, collections.Counter]:
    """Return the verdicts on each finding that any drive has an answer to, and on all of them."""
    counts = collections.defaultdict(collections.Counter)
    answered = {name for one in probed for name in one.found}
    for one in probed:
        for name, verdict in one.verdicts().items():
            if name in answered:
                counts[name][verdict] += 1
                counts["all"][verdict] += 1
    return counts


def table(probed: list[Probed]) -> list[str]:
    """Return the lines of the table, a row for each finding."""
    head = ["finding", *VERDICTS, "right %", "wrong %", "of right: nothing to see"]
    rows, nothing = [], nothing_there(probed)
    for name, verdicts in counted(probed).items():
        number = verdicts.total()
        rows.append([name, *(verdicts[verdict] for verdict in VERDICTS),
                     *(judging.share(verdicts[verdict], number) for verdict in ("right", "wrong")),
                     nothing[name] or ""])
    return tables.markdown(head, sorted(rows, key=lambda row: row[0] == "all"))


def listed(probed: list[Probed], verdict: str) -> list[str]:
    """Return a line for each answer with a @verdict."""
    lines = []
    for one in probed:
        truths = one.truths()
        for name, given in one.verdicts().items():
            if given == verdict:
                answer = one.found.get(name, {"value": None, "why": "no answer"})
                lines.append(f"{name}: {one.drive.name}: {answer['value']}, truth "
                             f"{truths[name].says}  {answer['why']}")
    return sorted(lines)


def untold(probed: list[Probed]) -> list[str]:
    """Return the reasons for which the probe cannot tell what it ought to, with their drives."""
    reasons = collections.defaultdict(list)
    for one in probed:
        for name, verdict in one.verdicts().items():
            if verdict == "cannot tell" and name in one.found:
                reasons[name, one.found[name]["why"]].append(one.drive.name)
    return [f"{name}: {why}: {', '.join(drives)}"
            for (name, why), drives in sorted(reasons.items())]


def explain(one: Probed) -> list[str]:
    """Return the lines of --explain."""
    keys = " ".join(f"{key}={value}" for key, value in one.drive.keys.items())
    rows = []
    for name, verdict in one.verdicts().items():
        answer = one.found.get(name, {"value": None, "unit": "", "confidence": 0,
                                      "why": "no answer"})
        rows.append([name, one.truths()[name].says, answer["value"], verdict,
                     f"{answer['confidence']:.2f}", answer["why"]])
    beside = " ".join(one.drive.beside) or "nothing"
    return [f"{one.drive.name}: scripts/ssdemu load {one.drive.preset} {keys}", f"beside: {beside}",
            "", *tables.markdown(["finding", "truth", "answer", "verdict", "confidence", "why"],
                                 rows),
            *one.problems]


def stored(drive: probe_draw.Drive, folder: pathlib.Path) -> Probed:
    """Return the answers of a drive from an earlier run."""
    try:
        kept = json.loads(file_of(drive, folder).read_text())
    except FileNotFoundError:
        raise model.Failed(f"{drive.name} was not probed: --first, --seeds") from None
    one = Probed.restored(kept)
    if one.drive != drive:
        raise model.Failed(f"{drive.name} was another drive when it was probed")
    return one


def report(probed: list[Probed]) -> list[str]:
    """Return what is printed at the end."""
    wrong, reasons = listed(probed, "wrong"), untold(probed)
    problems = [f"{one.drive.name}: {text}" for one in probed for text in one.problems]
    return [*table(probed), *(["", "wrong:", *wrong] if wrong else []),
            *(["", "cannot tell:", *reasons] if reasons else []),
            *(["", "problems:", *problems] if problems else [])]


def papers(probed: list[Probed]) -> list[str]:
    """Return the lines of the table of the papers' drives."""
    return tables.markdown(["drive", "the paper", "the probe"], [
        probe_papers.row(one.drive.name, one.found, one.verdicts()) for one in probed])


def save(probed: list[Probed], path: pathlib.Path):
    """Write all answers and verdicts as JSON."""
    path.write_text(json.dumps({
        "counts": counted(probed), "drives": [dataclasses.asdict(one) for one in probed],
        "verdicts": {one.drive.name: one.verdicts() for one in probed}}, indent=1))


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="K")
    parser.add_argument("--jobs", type=int, default=guests.GUESTS, metavar="J")
    parser.add_argument("--just", type=int, nargs="+", metavar="SEED",
                        help="these seeds instead of N from K on")
    parser.add_argument("--papers", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--explain", type=int, metavar="SEED")
    options_given = parser.parse_args()
    guests.GUESTS = options_given.jobs
    if options_given.explain is not None:
        print(*explain(stored(probe_draw.draw(options_given.explain), options_given.folder)),
              sep="\n")
        return 0
    seeds = options_given.just or range(options_given.first,
                                        options_given.first + options_given.seeds)
    drives = probe_papers.drives() if options_given.papers else [*map(probe_draw.draw, seeds)]
    folder = options_given.folder
    probed = ([stored(drive, folder) for drive in drives] if options_given.again else
              probe(drives, folder))
    save(probed, folder / ("papers.json" if options_given.papers else "score.json"))
    print(*report(probed), sep="\n")
    if options_given.papers:
        print("", *papers(probed), sep="\n")
    return 0


if __name__ == "__main__":
    guests.finish(main)
