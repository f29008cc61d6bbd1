# SPDX-License-Identifier: GPL-2.0
"""What advise has found: a table and sentences for eyes, a dictionary for JSON, and one HTML file.

The dictionary: "version", "drive" (its identity), "date", "kernel", "workload", "on", "sure" (false
if it is not known which is best), "recommended" (the name of the best one, null if that is not
known), "choice" (what the drive should have: of the best one, or what it has, "had";
ssd_ctl.choice), "leading" (what is known of the best one, or of the one that leads: "name",
"choice", "gain_low", "gain_high", "gain": over none, factors, with the bounds first), "confidence",
"rivals", "minutes", "runs" (of the load, since the drive has changed last), "changes" (how often it
did), "rounds", "window_s", "settle_s", "waits_s" (the longest mean latency that a job has under a
candidate), "unsettled" (this is longer than a candidate settles), "uneven" (jobs whose rate not all
candidates keep), "unlogged" (jobs that wait for flushes of the page cache, which does not count),
"phases" (the names of the jobs that ran together, in the order of the phases), "disturbed", "had"
(the choice that the drive had before, and has again), "left_out" (lines that say which candidates
the kernel does not select, and why), and "candidates": of each "name", "choice", "gain", "low",
"high", "runs" and "rounds" (windows), "left" (it has not dropped out), "aside", "verdict", "score"
(each run's share, whose mean is the score), "flushes" (of the drive by the kernel's count: "iops"
and "mean_ms"; empty without), and "jobs": of each job "name" and by direction "mbps", "iops",
"mean_ms" and "p99_ms", in its phase.
"""
import datetime
import math
import os
import pathlib
import statistics

from ssd_common import pages
from ssd_common.drive import Drive
from ssd_common.figures import NO_FIGURES, address, drawing, literal
from ssd_common.lines import duration
from ssd_common.version import VERSION
from ssd_ctl.advice.figures import summed
from ssd_ctl.advice.rounds import Measured, Rounds
from ssd_ctl.advice.sequential import NONE
from ssd_ctl.advice.target import Target
from ssd_ctl.advice.workload import NAMED, READ, WAYS
from ssd_ctl.choice import Choice

# Warn if the p99 of reads under the recommended one is so many times that under none.
LONG_TAIL = 2.0
TEMPLATES = pathlib.Path(__file__).resolve().parents[1] / "templates"
# A factor is not shown in percent from here on.
LARGE = 4
# Phases of the load that are listed, and jobs of one.
MOST_PHASES = 6
# Confidence is not shown beyond.
MOST_SURE = 0.99


def job_figures(measured: list[Measured], number: int) -> dict[str, dict[str, float]]:
    """Return the figures of a job, by direction: means over the windows, and the median p99."""
    seconds = sum(one.window.seconds for one in measured)
    made = {}
    for way, name in WAYS.items():
        parts = [one.jobs[number][way] for one in measured if way in one.jobs[number]]
        ios = sum(part.ios for part in parts)
        if ios:
            made[name] = {
                "mbps": sum(part.bytes for part in parts) / seconds / 1e6, "iops": ios / seconds,
                "mean_ms": sum(part.mean * part.ios for part in parts) / ios,
                "p99_ms": statistics.median(part.p99 for part in parts)}
    return made


def flush_figures(measured: list[Measured]) -> dict[str, float]:
    """Return the figures of the drive's flushes in some windows: how many a second, and their mean
    latency."""
    flushes, spent_ms = (sum(each) for each in zip(*(one.window.flushes for one in measured),
                                                   strict=True)) if measured else (0, 0)
    return {"iops": flushes / sum(one.window.seconds for one in measured),
            "mean_ms": spent_ms / flushes} if flushes else {}


def candidate(rounds: Rounds, name: str) -> dict:
    """Return what is known of a candidate."""
    gain, low, high = rounds.gain(name)
    measured = [one for one in rounds.measured if one.window.candidate == name]
    return {"name": name, "choice": rounds.candidates[name].choice.as_json(), "gain": gain,
            "low": low, "high": high,
            "runs": len(rounds.race.served[name]),
            "rounds": len(measured) // len(rounds.load.phases),
            "left": name in rounds.race.left,
            "aside": name in rounds.race.aside, "verdict": verdict(rounds, name),
            "score": [round(float(score), 5) for score in rounds.race.scores_of(name)],
            "flushes": flush_figures(measured),
            "jobs": [{"name": job.name, **job_figures(rounds.of(name, number), number)}
                     for number, job in enumerate(rounds.load.jobs)]}


def verdict(rounds: Rounds, name: str) -> str:
    """Return what became of a candidate, in a few words."""
    if name == rounds.outcome.name:
        return "recommended" if rounds.outcome.sure else "leads"
    if name not in rounds.race.left or (name == NONE and rounds.outcome.sure):
        return "lost"
    if name in rounds.race.aside:
        return "set aside"
    if name in rounds.outcome.rivals:
        return "undecided"
    return "no better" if rounds.outcome.name == NONE else "not ahead"


def leading(rounds: Rounds) -> dict:
    """Return what is known of the best candidate, or of the one that leads."""
    name = rounds.outcome.name
    gain, low, high = rounds.gain(name)
    return {"name": name, "choice": rounds.candidates[name].choice.as_json(), "gain_low": low,
            "gain_high": high, "gain": gain}


def made_of(rounds: Rounds, drive: Drive, target: Target, disturbed: list[str],
            had: Choice) -> dict:
    """Return the report of a measurement that has ended. @had: the drive's choice before."""
    best, race = rounds.outcome, rounds.race
    return {
        "version": VERSION, "drive": {"text": drive.describe(), **drive.identity()},
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "kernel": os.uname().release, "workload": rounds.load.name, "on": target.describe(),
        "sure": best.sure, "recommended": best.name if best.sure else None,
        "choice": (rounds.candidates[best.name].choice if best.sure else had).as_json(),
        "leading": leading(rounds),
        "confidence": round(min(race.confidence(best.name), MOST_SURE), 3),
        "rivals": best.rivals, "minutes": round(rounds.passed() / 60, 2), "runs": race.runs,
        "changes": race.starts - 1, "rounds": rounds.round,
        "window_s": round(rounds.window_s, 3), "settle_s": round(rounds.settle_s, 3),
        "waits_s": round(rounds.waits_s(), 3), "unsettled": rounds.unsettled(),
        "uneven": rounds.uneven(), "unlogged": rounds.load.unlogged(),
        "phases": [[rounds.load.jobs[number].name for number in phase]
                   for phase in rounds.load.phases],
        "disturbed": disturbed, "had": had.as_json(),
        "candidates": [candidate(rounds, name) for name in race.names]}


def signed(factor: float | None) -> str:
    """Return a factor as a change in percent, a large one as it is."""
    if factor is None:
        return "?"
    if factor >= LARGE:
        return f"x {factor:.1f}"
    return f"{100 * (factor - 1):+.1f} %"


def counted(number: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def measured(report: dict) -> str:
    """Return how much was measured."""
    return (f"{counted(report['runs'], 'run')} of the load, "
            f"{counted(report['rounds'], 'round')} of {report['window_s']:.2g} s each")


def between(low: float | None, high: float | None) -> str:
    """Return the bounds of a gain in words."""
    if low is None and high is None:
        return "by an unknown factor"
    if low is None:
        return f"by at most {signed(high)}"
    return f"at least {signed(low)}" if high is None else (
        f"between {signed(low)} and {signed(high)}")


def interval(found: dict) -> str:
    """Return the bounds of a candidate's gain."""
    if found["name"] == NONE or found["low"] is None and found["high"] is None:
        return ""
    return f"{signed(found['low'])} to {signed(found['high'])}"


HEAD = ["candidate", "against none", "estimate",
        *(title for way in WAYS.values() for title in (f"{way} MB/s", "mean ms", "p99 ms")),
        "flushes/s", "mean ms", "verdict"]


def rows(report: dict) -> list[list[str]]:
    """Return the rows of the table below HEAD, the best first."""
    made = []
    for found in sorted(report["candidates"], key=lambda found: -found["gain"]):
        cells = [found["name"], interval(found),
                 "" if found["name"] == NONE else signed(found["gain"])]
        for figures, keys in (*((summed(found, way), ("mbps", "mean_ms", "p99_ms"))
                                for way in WAYS.values()),
                              (found["flushes"], ("iops", "mean_ms"))):
            cells += [f"{figures[key]:.3g}" if figures else "" for key in keys]
        made.append([*cells, found["verdict"]])
    return made


def columns_of(report: dict) -> list[list[str]]:
    """Return the columns of the table with their heads, without those that are empty throughout."""
    columns = [list(column) for column in zip(HEAD, *rows(report), strict=True)]
    return [column for column in columns if any(column[1:])]


def table(report: dict) -> str:
    """Return the table for eyes."""
    columns = columns_of(report)
    widths = [max(map(len, column)) for column in columns]
    words = (0, len(columns) - 1)
    lines = []
    for cells in zip(*columns, strict=True):
        lines.append("  ".join(f"{cell:<{width}}" if at in words else f"{cell:>{width}}"
                               for at, (cell, width) in enumerate(zip(cells, widths, strict=True)))
                     .rstrip())
    return "\n".join(lines)


def sentence(report: dict) -> str:
    """Return the recommendation; of a gain its lower bound first."""
    best, sure = report["leading"], f"confidence {report['confidence']:.0%}"
    if not report["sure"]:
        return undecided(report)
    if best["name"] == NONE:
        return f"Use none: no scheduler is better by more than 2 % for this load ({sure})."
    most = "" if best["gain_high"] is None else f", at most {signed(best['gain_high'])}"
    return (f"Use {best['name']}: at least {signed(best['gain_low'])} against none for this load "
            f"(estimate {signed(best['gain'])}{most}; {sure}).")


def undecided(report: dict) -> str:
    """Return what is said if it is not known which is best."""
    best, had = report["leading"], report["had"]["scheduler"]
    names = [name for name in report["rivals"] if name != NONE]
    rivals = " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    keep = f"Undecided: keep the present scheduler ({had})."
    why = ("The drive is too slow for this load and so little time." if report["unsettled"] else
           "More --minutes may tell.")
    if best["name"] == NONE:
        return (f"{keep} Nothing is known to be better than none, but {rivals or 'another one'} "
                f"may be. {why}")
    unknown = [] if (best["gain_low"] or 0) > 1 else ["it is better than none"]
    unknown += [f"{rivals} is better still"] if rivals else []
    return (f"{keep} {best['name']} leads, {between(best['gain_low'], best['gain_high'])} against "
            f"none for this load; it is not known whether {' and whether '.join(unknown)}. "
            f"{why}")


def listed(jobs: list[str]) -> str:
    """Return the names of jobs as a job file has them."""
    return ", ".join(f"[{name}]" for name in jobs)


def at_once(jobs: list[str]) -> str:
    """Return the jobs that run together in words, the first ones."""
    more = len(jobs) - MOST_PHASES
    return listed(jobs[:MOST_PHASES]) + (f" and {counted(more, 'job')} more" if more > 0 else "")


def in_order(phases: list[list[str]]) -> str:
    """Return the jobs by phase in words, the first ones."""
    more = len(phases) - MOST_PHASES
    return ", then ".join(map(at_once, phases[:MOST_PHASES])) + (
        f", and {counted(more, 'phase')} more" if more > 0 else "")


def notes(report: dict) -> list[str]:
    """Return what the reader has to know beside the recommendation."""
    said = [f"Disturbed: {reason}." for reason in report["disturbed"]]
    said += [f"{line[0].upper()}{line[1:]}." for line in report.get("left_out", ())]
    if report["unsettled"]:
        said.append(f"I/Os of a job wait {report['waits_s']:.2g} s on average, longer than a "
                    f"scheduler settles ({report['settle_s']:.2g} s): windows show in part what "
                    "the one before has left. Longer windows need more --minutes.")
    if report["uneven"]:
        said.append(f"Not all keep the rate of {listed(report['uneven'])}: what one leaves undone, "
                    "the next ones have to do. Give a lower rate.")
    if report["unlogged"]:
        said.append(f"The latencies of {listed(report['unlogged'])} are those of the page cache; "
                    "that it waits for fsync does not count. With direct=1 or sync=dsync it does.")
    if len(report["phases"]) > 1:
        said.append("The jobs ran after each other, as stonewall and wait_for say, each phase "
                    f"alone under each candidate: {in_order(report['phases'])}. MB/s are the sum "
                    "of all phases.")
    elif len(report["phases"][0]) > 1 and report["workload"] not in NAMED:
        said.append(f"The jobs ran at once, as in fio without stonewall: "
                    f"{at_once(report['phases'][0])}.")
    if report["changes"]:
        said.append(f"The drive became slower or faster {counted(report['changes'], 'time')} (its "
                    "cache is full?): what it did before does not count.")
    aside = [f"{found['name']} {found['runs']}" for found in report["candidates"]
             if found["aside"]]
    if aside:
        said.append("Set aside for the sake of those that may be the best, with fewer runs: "
                    f"{', '.join(aside)}.")
    best_name = report["leading"]["name"]
    by_name = {found["name"]: found for found in report["candidates"]}
    best, none = (summed(by_name[name], WAYS[READ]) for name in (best_name, NONE))
    if best and none and best["p99_ms"] > LONG_TAIL * none["p99_ms"]:
        said.append(f"The slowest reads take longer with {best_name}: p99 "
                    f"{best['p99_ms']:.3g} ms instead of {none['p99_ms']:.3g}.")
    return said


def commands(report: dict) -> list[str]:
    """Return the commands that follow the recommendation; there are none if it is undecided."""
    if not report["sure"]:
        return []
    device = f"/dev/{report['drive']['name'].replace('!', '/')}"
    words = " ".join(Choice.from_json(report["choice"]).as_words())
    return [f"ssdctl apply {device} {words}", f"ssdctl persist {device} {words}"]


def text(report: dict) -> str:
    """Return the report for eyes."""
    head = (f"{report['drive']['text']}: {report['workload']} on {report['on']}, "
            f"{measured(report)} in {duration(report['minutes'] * 60)}")
    return "\n\n".join(filter(None, [head, table(report), "\n".join(notes(report)),
                                     sentence(report), "\n".join(
                                         f"    {line}" for line in commands(report))]))


# HTML

def image(drawn, pyplot) -> str:
    """Return a figure as an image's address."""
    return address(drawn, pyplot, "png", dpi=110)


def gains_figure(report: dict, pyplot) -> str:
    """Return the gains with their intervals."""
    shown = sorted(report["candidates"], key=lambda found: found["gain"])
    drawn, axes = pyplot.subplots(figsize=(6, 0.5 + 0.4 * len(shown)), layout="constrained")
    for at, found in enumerate(shown):
        low, high = (found[key] or found["gain"] for key in ("low", "high"))
        bounds = [100 * (low - 1), 100 * (min(high, 3 * found["gain"]) - 1)]
        colour = "C2" if found["name"] == report["leading"]["name"] else (
            "C0" if found["left"] else "grey")
        axes.plot(bounds, [at, at], color=colour)
        axes.plot([100 * (found["gain"] - 1)], [at], "o", color=colour)
    axes.axvline(0, color="grey", linewidth=1)
    axes.set_yticks(range(len(shown)), [literal(found["name"]) for found in shown])
    axes.set_xlabel("against none, %")
    return image(drawn, pyplot)


def rounds_figure(report: dict, pyplot) -> str:
    """Return each run's share of the scores, against none's score."""
    drawn, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
    none = next(found for found in report["candidates"] if found["name"] == NONE)
    # There is none if the drive has just changed.
    middle = statistics.fmean(none["score"] or [0.0])
    for found in report["candidates"]:
        axes.plot(range(1, len(found["score"]) + 1),
                  [100 * (score - middle) for score in found["score"]],
                  marker=".", linewidth=1, label=literal(found["name"]))
    axes.set(xlabel="run", ylabel="share of the score against none's, %")
    axes.legend(fontsize=7)
    return image(drawn, pyplot)


def latency_figure(report: dict, pyplot) -> str:
    """Return mean and p99 of each direction."""
    drawn, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
    names = [literal(found["name"]) for found in report["candidates"]]
    for way, key, marker in (("read", "mean_ms", "o"), ("read", "p99_ms", "^"),
                             ("write", "mean_ms", "s"), ("write", "p99_ms", "v")):
        values = [summed(found, way).get(key, math.nan) for found in report["candidates"]]
        if not all(map(math.isnan, values)):
            axes.plot(names, values, marker, label=f"{way} {key.removesuffix('_ms')}")
    axes.set_yscale("log")
    axes.set_ylabel("latency, ms")
    axes.tick_params(axis="x", rotation=45)
    axes.legend(fontsize=8)
    return image(drawn, pyplot)


def figures(report: dict) -> list[str]:
    """Return all figures; none without matplotlib."""
    pyplot = drawing()
    return [make(report, pyplot) for make in (gains_figure, rounds_figure, latency_figure)
            ] if pyplot else []


def page(report: dict) -> str:
    """Return a report as one HTML file that needs no other."""
    head, *shown = zip(*columns_of(report), strict=True)
    return pages.render("advice.html", TEMPLATES, report=report, head=head, rows=shown,
                        said=[sentence(report), *notes(report)], commands=commands(report),
                        figures=figures(report), no_figures=NO_FIGURES, measured=measured(report))
