#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# Whatever is in a file that ssdctl or ssd-probe reads, and whatever the arguments are, it ends in
# one line and not in a traceback; what a report says is escaped; too old a Python, and a missing
# module, are named before anything is written; what is left at the end does not depend on the rest
# quick: host

import ast
import contextlib
import copy
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest.mock

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common"), str(PROJECT / "tools/ssd-probe")]

from host import need  # noqa: E402  (in a folder added above)

need("jinja2", "jsonschema", "numpy", "scipy")

from checks import SEED, check  # noqa: E402  (in a folder added above)
from ssd_common import ToolError, arguments, checked, former, probe_report  # noqa: E402
from ssd_ctl import CtlError, advise, saved, status  # noqa: E402
from ssd_ctl import command as ssdctl  # noqa: E402
from ssd_ctl.advice import candidates  # noqa: E402
from ssd_ctl.advice import report as advice  # noqa: E402
from ssd_probe import report, state  # noqa: E402
from ssd_probe import command as ssd_probe  # noqa: E402

PROGRAMS = {"ssd-probe": PROJECT / "tools/ssd-probe/ssd-probe",
            "ssdctl": PROJECT / "tools/ssdctl/ssdctl"}
DICE = random.Random(SEED)
FUZZED, DRAWN = 300, 4
HOSTILE = "<script>alert('x')</script>&\"$x^{$"
CURVE = {"title": HOSTILE, "x": "read", "y": "us", "lines": {"time": [[1, 2, 4], [3.5, None, 2]],
                                                             HOSTILE: [[1], [2, 3]]},
         "marks": [2], "log_x": True, "log_y": False}
NUMBERS = ("region_mb", "region_depth", "read_depth", "read_us", "write_us", "interference",
           "units", "channels", "stride_kb", "open_blocks", "flash_page_kb", "erase_block_kb",
           "clustered_page_kb", "clustered_block_kb", "read_buffer_kb", "write_buffer_kb")
VALUES = {**dict.fromkeys(NUMBERS, 64), "allocation": "cw", "mapping": "block",
          "static_allocation": True, "in_order": True, "early_ack": None}
REPORT = {
    "schema": 1, "version": "1", "date": "2026-01-01", "kernel": "6.12", "written_before": True,
    "options": {"seed": 1, "only": ["a"]}, "drive": {"text": "sdb, 1 GB", "bytes": 1 << 30},
    "findings": {name: {"value": value, "unit": "KB", "confidence": 0.9, "why": HOSTILE,
                        "curve": CURVE if name == "units" else None}
                 for name, value in VALUES.items()},
    "left_out": [{"procedure": "writes", "finds": ["x"], "why": "it writes"}],
    "procedures": {"short": {"title": "A few reads", "seconds": 1.5, "ios": 100, "read": 409600,
                             "written": 0, "disturbed": ["other programs"]}},
    "schedulers": {HOSTILE: {"fits": True, "why": HOSTILE, "tunables": {"depth": 4},
                             "commands": [f"echo {HOSTILE}"]}}}
CHOICE = {"scheduler": "bp", "tunables": {"depth": 2}, "queue": {"nr_requests": "128"}}
# What takes the place of any part of a file.
ODD = (None, True, -1, 0, 1.5, 1 << 62, "", "text", HOSTILE, [], {}, [[]], {"value": 1}, [1, "a"])
BAD = ('', '{', '[]', 'null', '7', '{"schema": 2, "findings": {}}', '{"schema": 1}',
       '{"schema": 1, "findings": {"x": 3}}', '{"schema": 1, "findings": {"x": {"value": [4]}}}',
       '{"schema": 1, "findings": {"x": {}}}', *(
           f'{{"schema": 1, "findings": {{"{name}": {{"value": {value}}}}}}}' for name, value in (
               ("units", "NaN"), ("units", "Infinity"), ("units", "-Infinity"), ("units", "1e999"),
               ("units", "1" + "0" * 40), ("units", "1" + "0" * 9000), ("units", '"many"'),
               ("read_us", '"slow"'), ("read_depth", "-4"), ("region_mb", "true"),
               ("static_allocation", '"yes"'), ("mapping", "4"), ("x", '"\\u001b[2J"'),
               ("x", '"\\ud800"'))),
       "[" * 200000, '{"schema": 1, "findings": {}, "x": ' + "[" * 200000,
       '{"schema": 1, "findings": {}, "x": ' + "[" * 900 + "]" * 900 + "}", "\ufeff{}", "\xff")


def called(main, *words):
    """Call a program in this process; return (status, output, errors)."""
    out, errors = io.StringIO(), io.StringIO()
    sys.argv = [main.__module__, *map(str, words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            status = main()
        except SystemExit as error:
            status = error.code
    return status, out.getvalue(), errors.getvalue()


def one_line(main, because, *words, status=1):
    """Check that a program ends in one line that says why."""
    ended, out, errors = called(main, *words)
    check(ended == status and not out and errors.count("\n") == 1 and because in errors,
          f"{' '.join(map(str, words))[:60]}: {errors.strip()[:160]}")


def bad_reports(path):
    """What is no report ends in one line."""
    for text in BAD:
        path.write_bytes(text.encode("utf-8" if text != "\xff" else "latin-1", "surrogatepass"))
        if "[" * 900 + "]" in text:
            # Fields that the schema does not name are allowed, as long as they can be read.
            check(probe_report.read_json(str(path))["schema"] == 1, "nested, but read")
            continue
        one_line(ssd_probe.main, "is no report of ssd-probe", "--from", path)
        try:
            candidates.probed_tunables(str(path))
            check(False, "a report for advise")
        except ToolError as error:
            check("is no report" in str(error) and len(str(error)) < 300, "nor for advise")
    one_line(ssd_probe.main, "is too long", "--from", "/dev/zero")
    one_line(ssd_probe.main, "No such file", "--from", "/nothing")
    path.write_text('{"schema": 1, "findings": {}}')
    one_line(ssd_probe.main, "is no whole report", "--from", path)


def places(value, at=()):
    """The places of all parts of a value."""
    yield at
    parts = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ())
    for key, part in parts:
        yield from places(part, (*at, key))


def mutated(value):
    """A copy of a value with some parts replaced, removed or added, as a text."""
    made = copy.deepcopy(value)
    for _ in range(DICE.choice((1, 1, 2, 5))):
        *way, last = DICE.choice(list(places(made))[1:] or [()]) or ("x",)
        inside = made
        for key in way:
            inside = inside[key]
        if DICE.random() < 0.3 and last != "x":
            del inside[last]
        else:
            inside[last] = copy.deepcopy(DICE.choice(ODD))
    text = json.dumps(made)
    if DICE.random() < 0.2:
        at = DICE.randrange(len(text))
        text = text[:at] + DICE.choice(('"', "}", "NaN", "\x00", "9" * 30, "")) + text[at + 1:]
    return text


def shown(path, drawn):
    """Read a report and use it in all ways; return true if it was taken. @drawn: with figures."""
    former_drawing = report.drawing
    if not drawn:
        report.drawing = lambda: None
    try:
        whole = report.read_whole(str(path))
        candidates.candidates(["none", "pass", "piq", "bp", "pai"],
                              candidates.probed_tunables(str(path)))
        report.text(whole)
        report.page(whole)
        return True
    except (ToolError, CtlError) as error:
        if "\n" in str(error):
            check(False, f"one line: {error}")
        return False
    finally:
        report.drawing = former_drawing


def fuzzed_reports(path):
    """Random changes of a report are taken or refused."""
    path.write_text(json.dumps(REPORT))
    check(shown(path, True), "the report is one")
    taken, drawn = 0, 0
    for _ in range(FUZZED):
        path.write_text(mutated(REPORT))
        try:
            good = shown(path, drawn < DRAWN)
        except Exception:
            print(path.read_text())
            raise
        drawn += good
        taken += good
    check(FUZZED / 20 < taken < FUZZED, f"{taken} of {FUZZED} changed reports are taken")


def fuzzed_state(folder):
    """Random changes of what the programs have stored are taken, or refused in one line."""
    drive = types.SimpleNamespace(name="sdzz", path="/dev/sdzz", instance=lambda: "here",
                                  identity=lambda: {"model": "x", "serial": "1", "wwid": ""},
                                  sysfs=folder / "sys")
    saved.SAVED, saved.ADVICE = folder / "saved", folder / "advice"
    run = state.State({"drive": 1}, "x", folder / "run")
    record = {"findings": [{"name": name, **finding} for name, finding in
                           REPORT["findings"].items()], **REPORT["procedures"]["short"]}
    kept = former.Journal(drive, folder / "former")
    stored = {
        saved.path_of(drive, saved.SAVED): (
            {"drive": "x", "choices": {"here": CHOICE}},
            lambda: saved.choices(drive, saved.SAVED)),
        saved.advice_path(drive): ({"choice": CHOICE, "had": CHOICE, "instance": "here"},
                                   lambda: saved.advised(drive)),
        run.path: ({"key": run.key, "data": {"procedures": {"short": record}, "filled": 4096,
                                             "written": 8192}},
                   lambda: run.load() and [state.restored(found) for each in
                                           run.data["procedures"].values()
                                           for found in each["findings"]]),
        kept.path: ({"instance": "here", "settings": {"under": {"scheduler": "bfq"}, "bare": None}},
                    kept.load)}
    for path, (right, read) in stored.items():
        path.parent.mkdir()
        path.write_text(json.dumps(right))
        check(read(), f"{path.parent.name} is read")
        taken = 0
        for _ in range(FUZZED // 4):
            path.write_text(mutated(right))
            try:
                taken += bool(read())
            except (CtlError, ToolError) as error:
                if str(path) not in str(error) or "\n" in str(error):
                    check(False, f"one line with the file: {error}")
            except Exception:
                print(path.read_text())
                raise
        check(0 < taken < FUZZED // 4, f"{taken} changed files of {path.parent.name} are taken")
    journals(kept)


def journals(kept):
    """A journal names files of the queue only, and is read without jsonschema."""
    under = {"scheduler": "bfq"}
    for settings in ({"under": {"../../sda/queue/scheduler": "none"}, "bare": None},
                     {"under": {"scheduler": 1}, "bare": None}, {"under": [], "bare": None},
                     {"under": under, "bare": "none"}, {"under": under}, under, []):
        kept.path.write_text(json.dumps({"instance": "here", "settings": settings}))
        check(kept.load() is None, f"no settings of a queue: {settings}")
    right = {"under": under, "bare": {"iosched/fifo_batch": "7"}}
    kept.path.write_text(json.dumps({"instance": "here", "settings": right}))
    checked.validator.cache_clear()
    with unittest.mock.patch.dict(sys.modules, {"jsonschema": None}):
        check(kept.load() == right, "it is read without jsonschema")


def escaped(path):
    """What a report says is no part of the page."""
    path.write_text(json.dumps(REPORT))
    whole = report.read_whole(str(path))
    page = report.page(whole)
    check("<script" not in page and "&lt;script&gt;" in page, "a report of ssd-probe is escaped")
    check("'\"$" not in page and page.count("<h1>") == 1, "in attributes, too")
    one = {"name": HOSTILE, "choice": CHOICE, "gain": 1.0, "low": 1.0, "high": 1.0, "rounds": 2,
           "runs": 1, "left": True, "aside": False, "verdict": HOSTILE, "score": [0.1, 0.2],
           "flushes": {}, "jobs": []}
    page = advice.page({
        "version": "1", "drive": {"text": HOSTILE, "name": "sdb"}, "date": "x", "kernel": HOSTILE,
        "workload": HOSTILE, "on": HOSTILE, "choice": CHOICE, "recommended": HOSTILE, "gain": 1.1,
        "gain_low": 1.05, "gain_high": 1.2, "confidence": 0.9, "sure": True, "rivals": [HOSTILE],
        "minutes": 1, "rounds": 2, "window_s": 1, "settle_s": 1, "waits_s": 1, "unsettled": False,
        "runs": 1, "changes": 1, "uneven": [HOSTILE], "unlogged": [HOSTILE], "disturbed": [HOSTILE],
        "left_out": [HOSTILE], "had": CHOICE, "phases": [[HOSTILE], [HOSTILE]],
        "leading": {"name": HOSTILE, "choice": CHOICE, "gain": 1.1, "gain_low": 1.05,
                    "gain_high": 1.2},
        "candidates": [one, {**one, "name": "none"}]})
    check("<script" not in page and page.count("&lt;script&gt;") > 8, "advise's report is escaped")


def grammar(folder):
    """A mistake in the arguments is an error that says what to write."""
    probe, ctl = ssd_probe.main, ssdctl.main
    one_line(ctl, "--json=out.json", "advise", "--json", "out.json", "/dev/null", status=2)
    one_line(ctl, "--json=out.json", "advise", "/dev/null", "--json", "out.json", status=2)
    one_line(ctl, "--json=out.json", "advise", "--json", "out.json", status=2)
    one_line(probe, "--json=out.json", "--json", "out.json", "/dev/null", status=2)
    one_line(probe, "--json=out.json", "/dev/null", "--json", "out.json", status=2)
    one_line(probe, "/dev/null is not a block device", "/dev/null", "--json")
    one_line(probe, "/dev/null is not a block device", "--", "/dev/null")
    one_line(ctl, "/dev/null is no drive", "advise", "--json", "/dev/null", status=2)
    # No option is abbreviated.
    for main, words in ((probe, ("--destr", "/dev/null")), (probe, ("--d", "/dev/null")),
                        (ctl, ("persist", "--by-mod", "x")), (ctl, ("advise", "--app", "x")),
                        (ctl, ("status", "--js")), (ctl, ("--vers",))):
        one_line(main, "unrecognized arguments", *words, status=2)
    # As long as a line may be.
    digits = "9" * 400
    for option, value, because in (
            ("--minutes", "inf", "--minutes has to be above 0 and at most"),
            ("--minutes", "nan", "--minutes has to be"), ("--minutes", "1e300", "--minutes has"),
            ("--minutes", "0", "--minutes has to be"), ("--seed", "-1", "--seed has to be from 0"),
            ("--seed", 1 << 31, "--seed has to be from 0 to 2147483647"),
            ("--seed", digits, "--seed has to be"), ("--size", f"{digits}T", "is not a size"),
            ("--size", f"1.{digits}", "is not a size")):
        one_line(ctl, because, "advise", "x", f"{option}={value}", status=2)
    one_line(probe, "is not a size", "x", f"--range={digits}", status=2)
    parser = arguments.Parser(prog="x")
    parser.add_argument("device")
    parser.add_json_file()
    for words, meant in ((["d", "--json"], "-"), (["d", "--json=f"], "f"), (["--json=f", "d"], "f"),
                         (["--json", "--", "d"], "-"), (["d"], None)):
        found = parser.parse(words)
        check((found.device, found.json) == ("d", meant), f"{words}: {found}")
    check(not list(folder.glob("out*")), "no file is made")
    path = folder / "report.json"
    path.write_text(json.dumps(REPORT))
    status, out, _ = called(probe, "--from", path, "--json")
    check(status == 0 and json.loads(out) == REPORT, "--json prints only JSON")
    status, out, _ = called(probe, "--from", path, f"--json={folder}/copy.json")
    check(status == 0 and "Written" in out and json.loads((folder / "copy.json").read_text()) ==
          REPORT, "--json=FILE writes it")


def old_python():
    """Before 3.10 a program says so, and nothing else."""
    for name, path in PROGRAMS.items():
        ast.parse(path.read_text(), feature_version=(3, 6))
        script = ("import sys; sys.version_info = (3, 9, 2, 'final', 0); name = sys.argv[1]; "
                  "exec(compile(open(name).read(), name, 'exec'), "
                  "{'__name__': '__main__', '__file__': name})")
        done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True,
                              check=False)
        check(done.returncode == 1 and done.stderr ==
              f"{name}: it needs Python 3.10 or newer, this is 3.9\n", done.stderr)


def missing(path):
    """Help and version need only Python; what else is missing is named with its package."""
    def bare(name, *words):
        return subprocess.run([sys.executable, "-S", PROGRAMS[name], *words], capture_output=True,
                              text=True, check=False, env={**os.environ, "PYTHONPATH": ""})
    commands = [(name, *words) for name in PROGRAMS for words in (("--help",), ("--version",))]
    commands += [("ssdctl", name, "--help") for name in ssdctl.COMMANDS]
    for words in commands:
        done = bare(*words)
        check(done.returncode == 0 and done.stdout and not done.stderr,
              f"{' '.join(words)} without packages {done.stderr}")
    path.write_text(json.dumps(REPORT))
    for because, *words in (("numpy is missing: install python3-numpy", "ssd-probe", "--list"),
                            ("numpy is missing: install python3-numpy", "ssdctl", "advise", "x"),
                            ("jsonschema is missing: install python3-jsonschema", "ssd-probe",
                             "--from", path)):
        done = bare(*words)
        check(done.returncode == 1 and done.stderr.count("\n") == 1 and because in done.stderr,
              f"{words}: {done.stderr.strip()}")
    sys.modules["jinja2"] = None
    one_line(ssd_probe.main, "jinja2 is missing: install python3-jinja2", "--from", path, "--html",
             path.with_suffix(".html"))
    del sys.modules["jinja2"]


def unreadable(folder):
    """What could not be read again is not written: commands that change drives need jsonschema;
    status does without stored advice."""
    drive = types.SimpleNamespace(name="sdzz", path="/dev/sdzz", instance=lambda: "here",
                                  identity=lambda: {"model": "x", "serial": "1", "wwid": ""},
                                  sysfs=folder / "sys")
    saved.ADVICE, saved.LOCK = folder / "unreadable", folder / "lock"
    saved.ADVICE.mkdir()
    saved.advice_path(drive).write_text(json.dumps({"choice": CHOICE}))
    checked.validator.cache_clear()
    root, saved.root = saved.root, lambda: None
    sys.modules["jsonschema"] = None
    check(status.advice(drive) == {"advice": None, "undecided": None}, "status does without")
    for what, call in (("alone", lambda: saved.alone().__enter__()),
                       ("advise", lambda: advise.run(types.SimpleNamespace(device="/x")))):
        former_check, advise.check_options = advise.check_options, lambda _: None
        try:
            call()
            check(False, f"{what} does not fail")
        except (CtlError, ToolError) as error:
            check("jsonschema is missing: install python3-jsonschema" in str(error),
                  f"{what}: {error}")
        advise.check_options = former_check
    del sys.modules["jsonschema"]
    saved.root = root


def stored(folder):
    """The advice is stored also if a file that the user has named cannot be written."""
    known, made = (saved.keep_advice, advise.report.text), []
    saved.keep_advice, advise.report.text = lambda *_: made.append(True), lambda _: "the report"
    args = types.SimpleNamespace(json=str(folder / "no/folder.json"), html=None, contribute=None)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            advise.leave(args, None, {})
            check(False, "it does not fail")
        except ToolError as error:
            why = str(error)
    check(made and out.getvalue() == "the report\n" and "no/folder.json" in why,
          f"the advice is stored: {why}")
    saved.keep_advice, advise.report.text = known


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        path = folder / "report.json"
        bad_reports(path)
        fuzzed_reports(path)
        fuzzed_state(folder)
        escaped(path)
        grammar(folder)
        old_python()
        missing(path)
        unreadable(folder)
        stored(folder)


if __name__ == "__main__":
    main()
