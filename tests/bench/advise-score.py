#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Judge `ssdctl advise` on random drives under random loads.

    tests/bench/advise-score.py [--drives N] [--first K] [--just CASE...] [--jobs J]
    tests/bench/advise-score.py --again              # judge the answers left by an earlier run
    tests/bench/advise-score.py --patience 4         # let advise measure undecided ones again
    tests/bench/advise-score.py --longer 4           # measure the truth of unclear ones again
    tests/bench/advise-score.py --explain CASE       # load, truth and answer of a case, as 9001-3
    tests/bench/advise-score.py --publish COMMIT     # add its answers to Documentation/results
    tests/bench/advise-score.py --published          # begin with the answers that are there

Each seed is a random emulated SSD (probe_draw.py), full, under five random loads (advise_draw.py).
It is probed once (ssd-probe, in a simulated guest), then advise measures each load in a simulated
guest, and the truth is measured by itself, in runs of each candidate alone, which have the same
drive, the same addresses and the same order of threads (guest/advise_runs.py). An answer is right
if by the truth no candidate is better than the recommended one by more than 2 %, and safe if none
is not better by more than 2 %; it is unclear if neither is known by the truth. At most 5 % of the
verdicts are false, however often the truth was looked at, if the scores of runs are normal and
independent: a drive that changes over all runs, and what few of the starts lead to, are not in the
bounds. Prints a table, and each answer that is wrong. The answers are left in build/advise-score/,
so an interrupted run continues; with the table as score.json. After a change of advise use another
--folder, with a copy of the folder probe/ if ssd-probe has not changed.
"""
import argparse
import collections
import dataclasses
import importlib
import json
import lzma
import math
import pathlib
import sys

import numpy
from scipy import stats

import advise_draw
import guests
import judging
import model
import probe_draw
import storage
import tables

sys.path.insert(0, str(model.PROJECT / "tools/common"))

from ssd_common import settings  # noqa: E402  (in a folder added above)

score = importlib.import_module("probe-score")

FOLDER = model.PROJECT / "build/advise-score"
PUBLISHED = model.PROJECT / "Documentation/results/advise.json.xz"
PROGRAM = "advise_runs.py"
# What the guest has beside the files of the benchmark.
IN_GUEST = ("tools/ssdctl", "tools/common", "tests/ssdemu/presets")
MARGIN = math.log(1.02)
# Cases of a guest.
BATCH = 5
RIGHT, WRONG, UNCLEAR = "right", "wrong", "unclear"


@dataclasses.dataclass
class Answer:
    """A case, what advise @told and the @truth (guest/advise_runs.py), @problem: instead of both,
    @seconds: real time, @patience: how many times its limits advise was allowed, @commit: of
    advise, once it is published."""
    case: advise_draw.Case
    told: dict = dataclasses.field(default_factory=dict)
    truth: dict = dataclasses.field(default_factory=dict)
    problem: str = ""
    seconds: float = 0.0
    patience: int = 1
    commit: str = ""

    @classmethod
    def restored(cls, kept: dict) -> "Answer":
        """Return an answer as dataclasses.asdict() has described it."""
        return cls(**kept | {"case": advise_draw.Case(**kept["case"])})

    def best(self) -> str:
        """Return the name of the best candidate by the truth."""
        return max((name for name, runs in self.truth["runs"].items() if runs),
                   key=lambda name: self.truth["over_choice"][name][0])

    def regret(self) -> tuple[float, float]:
        """Return how much better the best candidate is than the recommended one, and the half of
        its interval."""
        return tuple(self.truth["over_choice"][self.best()])

    def loss(self) -> tuple[float, float]:
        """Return how much better none is than the recommended one, and the half of its interval."""
        return tuple(self.truth["over_choice"]["none"])

    def near_best(self) -> str:
        """Return the verdict on whether it is the best one."""
        return self.truth["near_best"] if self.truth else WRONG

    def safe(self) -> str:
        """Return the verdict on whether it is no worse than none."""
        return self.truth["safe"] if self.truth else WRONG

    def unclear(self) -> bool:
        """Return true if the truth was measured and does not tell what the answer is."""
        return UNCLEAR in (self.near_best(), self.safe())

    def undecided(self) -> bool:
        """Return true if the time or the I/Os were over before advise knew."""
        return bool(self.told) and not self.told["sure"]

    def unfinished(self) -> bool:
        """Return true if there is no truth yet and nothing that has prevented it."""
        return not self.truth and not self.problem


def likely(mean: float) -> bool:
    """Return the verdict by the truth's mean alone."""
    return mean <= MARGIN


def options() -> list[str]:
    """Return the options of scripts/lab for the guests."""
    return [*storage.guest_options(PROGRAM, simulate=True),
            *(f"--only={path}" for path in IN_GUEST), "--memory=2G"]


def file_of(case: advise_draw.Case, folder: pathlib.Path) -> pathlib.Path:
    """Return the file of a case's answer."""
    return folder / f"{case.name}.json"


def stored(case: advise_draw.Case, folder: pathlib.Path) -> Answer | None:
    """Return the answer of a case from an earlier run, None if there is none."""
    path = file_of(case, folder)
    kept = json.loads(path.read_text()) if path.exists() else None
    if not kept:
        return None
    answer = Answer.restored(kept)
    return answer if answer.case == case else None


def keep(answer: Answer, folder: pathlib.Path):
    """Write the file of an answer."""
    file_of(answer.case, folder).write_text(json.dumps(dataclasses.asdict(answer), indent=1))


def published() -> list[Answer]:
    """Return the answers that are published."""
    return (list(map(Answer.restored, json.loads(lzma.decompress(PUBLISHED.read_bytes()))))
            if PUBLISHED.exists() else [])


def publish(answers: list[Answer], commit: str):
    """Add answers to those that are published. @commit: of those that have none yet."""
    kept = {one.case.name: one for one in published()}
    kept |= {one.case.name: dataclasses.replace(one, commit=one.commit or commit)
             for one in answers}
    PUBLISHED.write_bytes(lzma.compress(json.dumps(
        [dataclasses.asdict(kept[name]) for name in sorted(kept)]).encode()))


def take(folder: pathlib.Path):
    """Put those published answers into a folder that it does not have."""
    folder.mkdir(parents=True, exist_ok=True)
    for answer in published():
        if not stored(answer.case, folder):
            keep(answer, folder)


def probed(seeds: list[int], folder: pathlib.Path) -> dict[int, dict]:
    """Return {seed: tunables} by what ssd-probe finds on the drives; probe those that were not
    probed before."""
    drives = {seed: dataclasses.replace(probe_draw.draw(seed), beside=(),
                                        keys=advise_draw.cases(seed)[0].keys) for seed in seeds}
    left = [drive for drive in drives.values()
            if not score.file_of(drive, folder).exists() or
            score.Probed.restored(json.loads(score.file_of(drive, folder).read_text())).drive
            != drive]
    if left:
        score.probe(left, folder)
    return {seed: settings.tunables({
        name: found["value"] for name, found in score.stored(drive, folder).found.items()})
        for seed, drive in drives.items()}


def measure(cases: list[advise_draw.Case], folder: pathlib.Path, patience: int = 1,
            longer: int = 1):
    """Measure the cases that have no answer yet. @patience: above 1, let advise measure undecided
    ones again, with so many times the I/Os and the time. @longer: above 1, measure the truth of
    unclear ones again, likewise."""
    answers = {case.name: stored(case, folder) or Answer(case) for case in cases}

    def wanted(answer: Answer) -> bool:
        if longer > 1:
            return answer.unclear()
        if patience > 1:
            return answer.undecided() and answer.patience < patience
        return answer.unfinished()

    left = [case for case in cases if wanted(answers[case.name])]
    if not left:
        return
    folder.mkdir(parents=True, exist_ok=True)
    tunables = probed(sorted({case.seed for case in left}), folder / "probe")
    progress = guests.Progress(len(left))

    def plan(case: advise_draw.Case) -> dict:
        known = answers[case.name] if patience == 1 else Answer(case, patience=patience)
        return {**dataclasses.asdict(known), **dataclasses.asdict(case), "name": case.name,
                "probed": tunables[case.seed], "longer": longer}

    def done(answer: Answer):
        keep(answer, folder)
        progress.step(line_of(answer))

    def measured(case: advise_draw.Case, printed: dict, seconds: float):
        before = answers[case.name]
        done(dataclasses.replace(before, **printed, problem="", seconds=before.seconds + seconds,
                                 patience=max(before.patience, patience),
                                 commit=before.commit if printed["told"] == before.told else ""))

    def lost(case: advise_draw.Case, why: str):
        if answers[case.name].told:
            progress.step(f"{case.name}: its earlier answer stays: {why.splitlines()[0]}")
        else:
            done(Answer(case, problem=why))

    judging.run(judging.Work(PROGRAM, options(), plan, measured, lost), left, folder, BATCH)


# Reports

def percent(mean: float, half: float) -> str:
    """Return a difference of scores in percent, with its interval."""
    if not math.isfinite(half):
        return f"{100 * math.expm1(mean):+.1f} ± ? %"
    return f"{100 * math.expm1(mean):+.1f} ± {100 * math.exp(mean) * half:.1f} %"


def line_of(answer: Answer) -> str:
    """Return an answer in a line."""
    name = answer.case.name
    if not answer.truth:
        return f"{name}: no answer: {answer.problem.splitlines()[0]}"
    told = answer.told
    gain, half = answer.truth["over_none"][told["choice"]]
    return (f"{name}: {told['choice']}{'' if told['sure'] else ' (undecided)'} "
            f"{percent(gain, half)} against none; best {answer.best()} "
            f"{percent(*answer.regret())} over it: {answer.near_best()}; {told['rounds']} rounds, "
            f"{told['ios'] + answer.truth['ios']} I/Os, {answer.seconds:.0f} s")


def share(count: int, number: int) -> str:
    """Return a share with its interval, "" if there is nothing to count."""
    return judging.share(count, number, 1) if number else ""


def row(name: str, verdicts: list[str], means: list[float]) -> list:
    """Return the row of a question. @means: of the truths."""
    counts = collections.Counter(verdicts)
    clear = counts[RIGHT] + counts[WRONG]
    return [name, counts[RIGHT], counts[WRONG], counts[UNCLEAR], share(counts[RIGHT], clear),
            share(sum(map(likely, means)), len(means))]


def table(answers: list[Answer]) -> list[str]:
    """Return the lines of the table."""
    head = ["question", RIGHT, WRONG, UNCLEAR, "right of the clear ones, %",
            "right by the mean, %"]
    parts = {"all": answers, "decided": [one for one in answers if one.told.get("sure")],
             "undecided": [one for one in answers if one.undecided()]}
    rows = []
    for name, some in parts.items():
        told = [one for one in some if one.truth]
        rows += [row(f"within 2 % of the best, {name}", [one.near_best() for one in some],
                     [one.regret()[0] for one in told]),
                 row(f"not 2 % worse than none, {name}", [one.safe() for one in some],
                     [one.loss()[0] for one in told])]
    return tables.markdown(head, rows)


def chosen(answers: list[Answer]) -> list[str]:
    """Return the lines of the table of what is recommended and what is best."""
    told = collections.Counter(one.told["choice"] for one in answers if one.truth)
    best = collections.Counter(one.best() for one in answers if one.truth)
    return tables.markdown(["scheduler", "recommended", "best by the truth's mean"],
                           [[name, told[name], best[name]] for name, _ in
                            (told + best).most_common()])


def needed(answer: Answer) -> float:
    """Return how many times its runs an answer would need to know with 95 % of each candidate
    that was left, tested alone, whether it is better than the recommended one by 2 %: by how the
    difference varies from run to run. 0 without a rival."""
    told, most = answer.told, 0.0
    chosen = told["scores"][told["choice"]]
    for name in set(told["left"]) - {told["choice"]}:
        differences = numpy.array([one - other for one, other in
                                   zip(told["scores"][name], chosen, strict=False)])
        if len(differences) > 1:
            half = (stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) /
                    math.sqrt(len(differences)))
            most = max(most, (half / MARGIN) ** 2)
    return most


def costs(answers: list[Answer]) -> str:
    """Return what the measurements took."""
    some = [one for one in answers if one.truth]
    if not some:
        return ""
    mean = {key: sum(one.told[key] for one in some) / len(some)
            for key in ("rounds", "ios", "seconds")}
    return (f"{len(some)} cases; advise took {mean['rounds']:.0f} rounds, {mean['ios']:,.0f} I/Os "
            f"and {mean['seconds']:.1f} s of the drive's time on average; real time "
            f"{sum(one.seconds for one in some) / len(some):.0f} s a case with the truth")


def shortage(answers: list[Answer]) -> str:
    """Return how many more rounds the undecided answers need, "" if there are none."""
    factors = [needed(one) for one in answers if one.undecided()]
    if not factors:
        return ""
    low, middle, high = numpy.quantile(factors, [0.25, 0.5, 0.75])
    return (f"to know 2 % of each candidate left, an undecided answer needs {middle:.0f} times its "
            f"runs (half of them {low:.0f} to {high:.0f} times)")


def report(answers: list[Answer]) -> list[str]:
    """Return what is printed at the end."""
    bad = [line_of(one) for one in answers if WRONG in (one.near_best(), one.safe())]
    return [*table(answers), "", *chosen(answers), "", costs(answers), shortage(answers),
            *(["", "wrong:", *bad] if bad else [])]


def explain(answer: Answer) -> list[str]:
    """Return the lines of --explain."""
    case = answer.case
    keys = " ".join(f"{key}={value}" for key, value in case.keys.items())
    lines = [f"{case.name}: scripts/ssdemu load {case.preset} {keys}", "", case.job]
    if not answer.truth:
        return [*lines, answer.problem]
    rows = []
    for name, (gain, low, high, count) in answer.told["gains"].items():
        half = max(math.log(high / gain), math.log(gain / low)) if low and high else math.inf
        rows.append([name, count, percent(math.log(gain), half),
                     "lost" if name not in answer.told["left"] else
                     "set aside" if name in answer.told["aside"] else "",
                     answer.truth["runs"][name], percent(*answer.truth["over_none"][name])])
    head = ["candidate", "windows", "advise: over none", "", "runs", "truth: over none"]
    return [*lines, *tables.markdown(head, rows), "", line_of(answer)]


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drives", type=int, default=30, metavar="N")
    parser.add_argument("--first", type=int, default=9001, metavar="K")
    parser.add_argument("--just", nargs="+", default=[], metavar="CASE",
                        help="these cases, or all of a drive, instead of N drives from K on")
    parser.add_argument("--jobs", type=int, default=guests.GUESTS, metavar="J")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--patience", type=int, default=1, metavar="N")
    parser.add_argument("--longer", type=int, default=1, metavar="N")
    parser.add_argument("--explain", metavar="CASE")
    parser.add_argument("--publish", metavar="COMMIT", help="of advise when it was measured")
    parser.add_argument("--published", action="store_true")
    given = parser.parse_args()
    if min(given.longer, given.patience) < 1:
        raise model.Failed("--longer or --patience is below 1")
    if given.longer > 1 and given.patience > 1:
        raise model.Failed("first --patience, then --longer")
    guests.GUESTS = given.jobs
    wanted = [given.explain] if given.explain else given.just or [
        str(seed) for seed in range(given.first, given.first + given.drives)]
    cases = [case for text in wanted for case in advise_draw.cases(int(text.partition("-")[0]))
             if text in (case.name, str(case.seed))]
    if given.published:
        take(given.folder)
    if not (given.again or given.explain or given.publish):
        measure(cases, given.folder, given.patience, given.longer)
    answers = [answer for case in cases
               if (answer := stored(case, given.folder)) and not answer.unfinished()]
    if not answers:
        raise model.Failed("there are no answers yet: run it without --again and --explain")
    if given.explain:
        print(*explain(answers[0]), sep="\n")
        return 0
    (given.folder / "score.json").write_text(json.dumps(
        {"answers": [dataclasses.asdict(one) for one in answers],
         "verdicts": {one.case.name: [one.near_best(), one.safe()] for one in answers}}, indent=1))
    print(*report(answers), sep="\n")
    if given.publish:
        publish(answers, given.publish)
    return 0


if __name__ == "__main__":
    guests.finish(main)
