# SPDX-License-Identifier: GPL-2.0
"""What a run has found: a table for eyes, JSON, and one HTML file with the figures.

A report is a dictionary of JSON's types, the one that report.json holds: SCHEMA is the version of
its form. "findings" is {name: {value, unit, confidence, why, curve}}; a value of null means "cannot
tell". A curve is {title, x, y, lines: {name: [x values, y values]}, marks, log_x, log_y}.
"""
import argparse
import base64
import contextlib
import html
import importlib.util
import io
import json
import os
import pathlib
import textwrap

from ssd_probe import ProbeError, output, settings

SCHEMA = 1
# What it has beside the findings.
WHOLE = ("version", "date", "kernel", "options", "drive", "written_before", "left_out",
         "procedures", "schedulers")
OF_FINDING = ("unit", "confidence", "why", "curve")
# What the value of a finding may be.
PLAIN = (str, int, float, bool, type(None))
WIDTH = 100


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


def values(report: dict) -> dict:
    """Return {name: value} of a report, as settings.tunables() takes it."""
    return {name: finding["value"] for name, finding in report["findings"].items()}


def read_json(path: str) -> dict:
    """Return the report in a file."""
    try:
        report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ProbeError(f"{path}: {error.strerror}") from None
    except ValueError:
        report = None
    findings = report.get("findings") if isinstance(report, dict) else None
    if (not isinstance(findings, dict) or report.get("schema") != SCHEMA or
            not all(isinstance(found, dict) and isinstance(found.get("value", ()), PLAIN)
                    for found in findings.values())):
        raise ProbeError(f"{path} is no report of ssd-probe of version {SCHEMA}")
    return report


def read_whole(path: str) -> dict:
    """Return the report in a file, which has all that is shown."""
    report = read_json(path)
    missing = [name for name in WHOLE if name not in report]
    missing += [f"{name} of {finding}" for finding, found in report["findings"].items()
                for name in OF_FINDING if name not in found]
    if missing:
        raise ProbeError(f"{path} is no whole report of ssd-probe: it has no {' '.join(missing)}")
    return report


def write_file(path: pathlib.Path, content: str):
    """Write a file of the report."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ProbeError(f"{path}: {error.strerror}") from None


def asked(args: argparse.Namespace) -> dict[str, pathlib.Path]:
    """Return the files that the options name, by kind."""
    files = {"json": args.json, "html": args.html}
    return {kind: pathlib.Path(path) for kind, path in files.items() if path}


def outputs(args: argparse.Namespace, name: str) -> dict[str, pathlib.Path]:
    """Return the files to write by kind, in folders that exist. @name: of the drive."""
    files = asked(args)
    if not files:
        folder = pathlib.Path(args.output or ".")
        if args.output:
            with contextlib.suppress(OSError):
                folder.mkdir()
        files = {kind: folder / f"ssd-probe-{name}.{kind}" for kind in ("json", "html")}
    for file in files.values():
        if not os.access(file.parent, os.W_OK):
            raise ProbeError(f"{file.parent} is not a folder that can be written to")
        if file.is_dir():
            raise ProbeError(f"{file} is a folder: name a file")
    return files


def show(report: dict, files: dict[str, pathlib.Path]):
    """Print a report and write its files."""
    if "json" in files:
        write_file(files["json"], json.dumps(report, indent=1) + "\n")
    if "html" in files:
        write_file(files["html"], page(report))
        if not importlib.util.find_spec("matplotlib"):
            output.say(f"ssd-probe: {NO_FIGURES}")
    print(text(report))
    if files:
        print("\nWritten: " + " ".join(map(str, files.values())))


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
           "None of pass, piq, bp and pai is known to fit this drive.")
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


STYLE = """body{font:15px/1.4 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;
border-bottom:1px solid #ccc}pre{background:#f2f2f2;padding:.7em;overflow:auto}img{max-width:100%}
figure{display:inline-block;margin:.5em}.number{text-align:right}"""


def row(cells: list[str], kind: str = "td") -> str:
    """Return a row of a table in HTML."""
    return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"


def pairs(facts: dict[str, str]) -> str:
    """Return a table of facts by name in HTML."""
    return f"<table>{''.join(row([key, value]) for key, value in facts.items())}</table>"


def document(title: str, body: str) -> str:
    """Return an HTML file that needs no other. @body: in HTML."""
    title = html.escape(title)
    return (f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>{body}</body></html>\n")


def findings_html(report: dict) -> str:
    """Return the table of findings in HTML."""
    rows = [row(["parameter", "value", "confidence", "why"], "th")]
    for name, finding in report["findings"].items():
        sure = sure_text(finding)
        rows.append(row([name, value_text(finding), sure, finding["why"]]))
    return f"<table>{''.join(rows)}</table>"


def procedures_html(report: dict) -> str:
    """Return what each procedure did, in HTML."""
    rows = [row(["procedure", "seconds", "I/Os", "MB read", "MB written"], "th")]
    for name, record in report["procedures"].items():
        amounts = (record["seconds"], record["ios"], record["read"] / 1e6, record["written"] / 1e6)
        rows.append(row([f"{name}: {record['title']}", *(f"{each:,.1f}" for each in amounts)]))
    return f"<table>{''.join(rows)}</table>"


def schedulers_html(report: dict) -> str:
    """Return which scheduler fits and what to set, in HTML."""
    parts = [f"<p>{html.escape(advice_text(report).splitlines()[0])}</p>"]
    for name, said in report["schedulers"].items():
        parts.append(f"<h3>{name}</h3><p>{'Fits' if said['fits'] else 'Does not fit'}: "
                     f"{html.escape(said['why'])}.</p>")
        if said["tunables"]:
            lines = html.escape("\n".join(said["commands"]))
            parts.append(f"<pre>{lines}</pre>")
    return "".join(parts)


def facts_html(report: dict) -> str:
    """Return what was measured where and how, in HTML."""
    facts = {"program": f"ssd-probe {report['version']}", "date": report["date"],
             "kernel": report["kernel"],
             "options": json.dumps(report["options"]), "drive": report["drive"]["text"]}
    return pairs(facts)


def curves(report: dict) -> dict[str, tuple[dict, list[str]]]:
    """Return {key: (curve, names of the findings that rest on it)}, each curve once."""
    found: dict[str, tuple[dict, list[str]]] = {}
    for name, finding in report["findings"].items():
        if finding["curve"]:
            key = json.dumps({**finding["curve"], "marks": []}, sort_keys=True)
            found.setdefault(key, (finding["curve"], []))[1].append(name)
    return found


def address(drawn, pyplot, form: str, **how) -> str:
    """Return a figure as an image's address that holds the image itself. @form: svg or png."""
    image = io.BytesIO()
    drawn.savefig(image, format=form, **how)
    pyplot.close(drawn)
    kind = "svg+xml" if form == "svg" else form
    return f"data:image/{kind};base64,{base64.b64encode(image.getvalue()).decode()}"


def figure(curve: dict, pyplot) -> str:
    """Return a curve as an image's address."""
    drawn, axes = pyplot.subplots(figsize=(6, 3.8), layout="constrained")
    for name, (xs, ys) in curve["lines"].items():
        axes.plot(xs, ys, marker=".", markersize=4, linewidth=1, label=name)
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
    axes.set(title=curve["title"], xlabel=curve["x"], ylabel=curve["y"])
    axes.title.set_fontsize(10)
    if len(curve["lines"]) > 1:
        axes.legend(fontsize=8)
    return address(drawn, pyplot, "svg", metadata={"Date": None})


def drawing():
    """Return pyplot, which opens no window; None if matplotlib is missing."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        # The same report makes the same file.
        matplotlib.rcParams["svg.hashsalt"] = "ssd-probe"
        from matplotlib import pyplot
    except ImportError:
        return None
    return pyplot


def figures_html(report: dict) -> str:
    """Return all figures in HTML; without matplotlib, what is missing."""
    pyplot = drawing()
    if not pyplot:
        return f"<p>{NO_FIGURES}</p>"
    parts = []
    for curve, names in curves(report).values():
        caption = html.escape(", ".join(
            f"{name}: {value_text(report['findings'][name])}" for name in names))
        parts.append(f"<figure><img src='{figure(curve, pyplot)}' "
                     f"alt='{html.escape(curve['title'], quote=True)}'>"
                     f"<figcaption>{caption}</figcaption></figure>")
    return "".join(parts)


NO_FIGURES = "no figures: matplotlib is missing (install python3-matplotlib)"


def page(report: dict) -> str:
    """Return a report as one HTML file that needs no other."""
    said = "".join(f"<p>{html.escape(note)}</p>" for note in notes(report))
    return document(f"ssd-probe: {report['drive']['text']}",
                    f"{facts_html(report)}{said}"
                    f"<h2>What was found</h2>{findings_html(report)}"
                    f"<h2>Schedulers</h2>{schedulers_html(report)}"
                    f"<h2>Figures</h2>{figures_html(report)}"
                    f"<h2>Procedures</h2>{procedures_html(report)}")
