#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Write what probe-score.py has found into Documentation/results/probe.md, and draw its pictures.

    tests/bench/probe-publish.py [FOLDER]      (default: build/probe-score/)

FOLDER holds score.json and papers.json, the results of a run with and one without --papers.
"""
import argparse
import importlib
import json
import pathlib

import charts
import guests
import judging
import model

score = importlib.import_module("probe-score")

PAGE = model.PROJECT / "Documentation/results/probe.md"
PICTURES = model.PROJECT / "Documentation/pictures"
END = "<!-- end -->\n"
COLOURS = {"right": "#2e7d32", "cannot tell": "#b8c0c8", "wrong": "#c2571a"}
# The drive and the findings of the second picture.
SHOWN = {"pai-a": ("clustered_page_kb", "read_buffer_kb", "write_buffer_kb")}


def begin(name: str) -> str:
    """Return the line at which a part of the page begins."""
    return f"<!-- {name}: tests/bench/probe-publish.py -->\n"


def put(page: str, name: str, lines: list[str]) -> str:
    """Return the text of the page with one part replaced."""
    before, found, rest = page.partition(begin(name))
    if not found:
        raise model.Failed(f"{PAGE} has no part '{name}'")
    return before + found + "\n".join(["", *lines, ""]) + "\n" + END + rest.partition(END)[2]


def read(path: pathlib.Path) -> list:
    """Return the drives in a file of probe-score.py, with their answers."""
    try:
        kept = json.loads(path.read_text())
    except FileNotFoundError:
        raise model.Failed(f"{path} is missing: tests/bench/probe-score.py") from None
    return [score.Probed.restored(drive) for drive in kept["drives"]]


def summary(probed: list) -> list[str]:
    """Return the sentence above the table."""
    verdicts = score.counted(probed)["all"]
    beside = sum(bool(one.drive.beside) for one in probed)
    number = verdicts.total()
    parts = ", ".join(f"{judging.share(verdicts[name], number)} % {name}"
                      for name in score.VERDICTS)
    return [f"Of {number} answers on {len(probed)} drives, {beside} of them with other I/O beside "
            f"the probe: {parts} (in brackets the 95 % interval).", ""]


def save(figure, name: str):
    """Write a picture. The same figures give the same file."""
    pyplot = charts.plotting()
    with pyplot.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(PICTURES / f"{name}.svg", facecolor="white", metadata={"Date": None})
    pyplot.close(figure)


def draw_score(probed: list):
    """Draw the verdicts on each finding as bars."""
    pyplot = charts.plotting()
    counts = {name: each for name, each in score.counted(probed).items() if name != "all"}
    figure, axes = pyplot.subplots(figsize=(7.5, 0.24 * len(counts) + 0.9), layout="constrained")
    left = [0.0] * len(counts)
    for verdict, colour in COLOURS.items():
        parts = [100 * each[verdict] / each.total() for each in counts.values()]
        axes.barh(list(counts), parts, left=left, color=colour, label=verdict, height=0.7)
        left = [before + part for before, part in zip(left, parts, strict=True)]
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"% of {len(probed)} drives", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, fontsize=8, frameon=False)
    save(figure, "probe-score")


def draw_curve(axes, name: str, found: dict, paper):
    """Draw the evidence of the finding @name, its value and that of the paper."""
    curve = found["curve"]
    for x, y in curve["lines"].values():
        axes.plot(x, y, ".-", markersize=3, linewidth=0.8)
    axes.axvline(found["value"], color=COLOURS["right"], linewidth=0.8)
    axes.set_xscale("log" if curve["log_x"] else "linear")
    axes.set_yscale("log" if curve["log_y"] else "linear")
    axes.set_title(f"{name}: {found['value']:g} (paper: {paper:g})", fontsize=8, loc="left")
    axes.set_xlabel(f"{curve['title']}: {curve['x']}", fontsize=7)
    axes.set_ylabel(curve["y"], fontsize=7)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def draw_papers(probed: list):
    """Draw evidence beside what a paper says."""
    pyplot = charts.plotting()
    for name, findings in SHOWN.items():
        one = next(one for one in probed if one.drive.name == name)
        shown = [each for each in findings if one.found.get(each, {}).get("curve")
                 and one.found[each]["value"] is not None]
        figure, axes = pyplot.subplots(1, len(shown), figsize=(3.3 * len(shown), 2.4),
                                       layout="constrained", squeeze=False)
        for panel, each in zip(axes[0], shown, strict=True):
            draw_curve(panel, each, one.found[each], score.probe_papers.VALUES[name][each])
        save(figure, f"probe-{name}")


def main() -> int:
    """Write the page and its pictures; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=score.FOLDER)
    folder = parser.parse_args().folder
    probed, papers = read(folder / "score.json"), read(folder / "papers.json")
    page = put(PAGE.read_text(), "score", summary(probed) + score.table(probed))
    PAGE.write_text(put(page, "papers", score.papers(papers)))
    draw_score(probed)
    draw_papers(papers)
    return 0


if __name__ == "__main__":
    guests.finish(main)
