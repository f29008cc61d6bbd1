# SPDX-License-Identifier: GPL-2.0
"""What a run has found: a table for eyes, JSON, and one HTML file with the figures. probe_report.py
describes a report."""
import argparse
import importlib.util
import json
import os
import pathlib
import textwrap

from ssd_common import ToolError, files, output, pages, policies, settings
from ssd_common.figures import NO_FIGURES, address, drawing, literal
from ssd_common.output import as_json
from ssd_common.probe_report import read_json

# What it has beside the findings.
WHOLE = ("version", "date", "kernel", "options", "drive", "written_before", "left_out",
         "procedures", "schedulers")
OF_FINDING = ("unit", "confidence", "why", "curve")
WIDTH = 100
TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"


def value_text(finding: dict) -> str:
    """Return the value of a stored finding with its unit."""
    value = finding["value"]
    if value is None:
        return "cannot tell"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,.4g}" if isinstance(value, float) and value < 1e4 else (
        f"{value:,.0f}" if isinstance(value, int | float) else str(value))
    return f"{text} {finding['unit']}".strip()


def sure_text(finding: dict) -> str:
    """Return the confidence of a stored finding, rounded down: nothing is quite sure."""
    return "" if finding["value"] is None else f"{min(99, int(finding['confidence'] * 100))}%"


def read_whole(path: str) -> dict:
    """Return the report in a file, which has all that is shown."""
    report = read_json(path)
    missing = [name for name in WHOLE if name not in report]
    missing += [f"{name} of {finding}" for finding, found in report["findings"].items()
                for name in OF_FINDING if name not in found]
    if missing:
        raise ToolError(f"{path} is no whole report of ssd-probe: it has no {' '.join(missing)}")
    return report


def asked(args: argparse.Namespace) -> dict[str, str]:
    """Return the files that the options name, by kind. Raises ToolError if one cannot be
    written."""
    named = {kind: path for kind, path in (("json", args.json), ("html", args.html)) if path}
    check_files(named)
    return named


def check_files(named: dict[str, str]):
    """Raise ToolError if a file of a report, by kind, cannot be made."""
    for path in named.values():
        files.check_named(path)
    if "html" in named:
        pages.need()


def outputs(args: argparse.Namespace, name: str) -> dict[str, str]:
    """Return the files to write by kind, in folders that exist. @name: of the drive."""
    named = asked(args)
    if not named:
        if args.output:
            files.make_folder(args.output)
        named = {kind: os.path.join(args.output or "", f"ssd-probe-{name}.{kind}")
                 for kind in ("json", "html")}
        check_files(named)
    return named


def show(report: dict, named: dict[str, str]):
    """Print a report and write its files; one that goes to stdout is printed instead."""
    for kind, made in (("json", as_json), ("html", page)):
        if kind in named:
            files.write_named(named[kind], made(report))
    if "html" in named and not importlib.util.find_spec("matplotlib"):
        output.say(f"ssd-probe: {NO_FIGURES}")
    written = [path for path in named.values() if files.opened(path) is None]
    if len(written) < len(named):
        return
    print(text(report))
    if written:
        print("\nWritten: " + " ".join(written))


def schedulers(found: dict, name: str) -> dict:
    """Return what a report says of the schedulers. @found: {name of a finding: value}, @name: of
    the drive."""
    chosen, made = settings.tunables(found), {}
    for scheduler, (fits, why) in settings.advice(found).items():
        tunables = chosen.get(scheduler, {})
        made[scheduler] = {"fits": fits, "why": why, "tunables": tunables,
                           "commands": settings.echo_lines(name, scheduler, tunables)}
    return made


def recommended(report: dict) -> str:
    """Return the name of the scheduler to use, "none" if no one of ours fits."""
    return next((name for name, said in report["schedulers"].items() if said["fits"]), "none")


def wrapped(text: str, indent: int) -> list[str]:
    """Return the lines of a text beside a column of @indent characters."""
    return textwrap.wrap(text, WIDTH - indent) or [""]


def table(report: dict) -> str:
    """Return the findings as a table."""
    names = report["findings"]
    if not names:
        return ""
    first = max(map(len, names))
    second = max(len(value_text(finding)) for finding in names.values())
    lines = []
    for name, finding in names.items():
        sure = sure_text(finding)
        why = wrapped(finding["why"], first + second + 8)
        lines.append(f"{name:{first}}  {value_text(finding):{second}}  {sure:>4}  {why[0]}")
        lines += [" " * (first + second + 8) + line for line in why[1:]]
    return "\n".join(line.rstrip() for line in lines)


def advice_text(report: dict) -> str:
    """Return which scheduler fits and what to set."""
    best, lines = recommended(report), []
    for name, said in report["schedulers"].items():
        fits = "fits" if said["fits"] else "does not fit"
        lines += ["", *textwrap.wrap(f"{name} {fits}: {said['why']}.", WIDTH)]
        if said["tunables"]:
            lines += [f"    {line}" for line in said["commands"]]
    use = (f"Use {best}." if best != "none" else
           f"None of {policies.listed('and')} is known to fit this drive.")
    return "\n".join([use, *lines])


def notes(report: dict) -> list[str]:
    """Return what the reader has to know about the findings."""
    said = []
    if report["left_out"]:
        said.append("Left out: " + "; ".join(f"{item['procedure']} ({item['why']})"
                                             for item in report["left_out"]) + ".")
    if not report["written_before"]:
        said.append("What was read may never have been written: many drives answer such reads "
                    "without their flash. Only --destroy writes the drive before it reads.")
    for name, record in report["procedures"].items():
        said += [f"{name} was disturbed: {reason}." for reason in record["disturbed"]]
    return said


def text(report: dict) -> str:
    """Return a report for eyes."""
    said = ["\n".join(textwrap.wrap(note, WIDTH)) for note in notes(report)]
    return "\n\n".join(filter(None, [report["drive"]["text"], table(report), *said,
                                     advice_text(report)]))


def curves(report: dict) -> dict[str, tuple[dict, list[str]]]:
    """Return {key: (curve, names of the findings that rest on it)}, each curve once."""
    found: dict[str, tuple[dict, list[str]]] = {}
    for name, finding in report["findings"].items():
        if finding["curve"]:
            key = json.dumps({**finding["curve"], "marks": []}, sort_keys=True)
            found.setdefault(key, (finding["curve"], []))[1].append(name)
    return found


def figure(curve: dict, pyplot) -> str:
    """Return a curve as an image's address."""
    drawn, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
    for name, (xs, ys) in curve["lines"].items():
        count = min(len(xs), len(ys))
        axes.plot(xs[:count], ys[:count], marker=".", markersize=4, linewidth=1,
                  label=literal(name))
    for mark in curve["marks"]:
        axes.axvline(mark, color="grey", linestyle="--", linewidth=1)
    positive = all(x and x > 0 for xs, _ in curve["lines"].values() for x in xs)
    if curve["log_x"] and positive:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    if curve["log_y"]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set(title=literal(curve["title"]), xlabel=literal(curve["x"]),
             ylabel=literal(curve["y"]))
    axes.title.set_fontsize(10)
    if len(curve["lines"]) > 1:
        axes.legend(fontsize=8)
    return address(drawn, pyplot, "svg", metadata={"Date": None})


def figures(report: dict) -> list[dict[str, str]]:
    """Return all figures as images' addresses, with what they show; none without matplotlib."""
    pyplot = drawing()
    if not pyplot:
        return []
    return [{"address": figure(curve, pyplot), "title": curve["title"],
             "caption": ", ".join(f"{name}: {value_text(report['findings'][name])}"
                                  for name in names)}
            for curve, names in curves(report).values()]


def amounts(record: dict) -> list[str]:
    """Return what a procedure did: seconds, I/Os, MB read and written."""
    found = (record["seconds"], record["ios"], record["read"] / 1e6, record["written"] / 1e6)
    return [f"{each:,.1f}" for each in found]


def page(report: dict) -> str:
    """Return a report as one HTML file that needs no other."""
    return pages.render(
        "report.html", TEMPLATES, report=report, notes=notes(report),
        use=advice_text(report).splitlines()[0], options=json.dumps(report["options"]),
        value=value_text, sure=sure_text, amounts=amounts, figures=figures(report),
        no_figures=NO_FIGURES)
