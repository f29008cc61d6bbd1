# SPDX-License-Identifier: GPL-2.0
"""Find out what is inside an SSD by the times that its I/O takes.

    ssd-probe [options] DEVICE

Without --destroy it only reads. See ssd-probe(8).
"""
import argparse
import contextlib
import datetime
import importlib
import importlib.util
import os
import pathlib
import re
import signal
import sys

from ssd_probe import ProbeError

VERSION = "1.0"
# Modules that register procedures, in the order of the table.
MODULES = ("reads", "units", "regions", "writes", "blocks")
PACKAGES = {"numpy": "python3-numpy", "scipy": "python3-scipy"}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Bytes that procedures may write unless the user says otherwise: so many times the range, and
# an amount for small ranges.
RANGES_WRITTEN, LEAST_WRITTEN = 2, 8 << 30
QUICK_RANGE = 32 << 30
# Seconds of --load, and of the look at the machine before a run.
LOAD_S, LOOK_S = 5, 1
OK, FAILED, USAGE = 0, 1, 2


def parse_size(text: str) -> int:
    """Return the bytes of a size as in 512M, 1.5G or 4096."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text)
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text} is not a size as in 512M or 1.5G")
    return int(float(match[1]) * (1 << 10 * " KMGT".index(match[2] or " ")))


class Parser(argparse.ArgumentParser):
    """Report an error in one line, without the usage."""

    def error(self, message):
        print(f"ssd-probe: {message} (ssd-probe --help)", file=sys.stderr)
        sys.exit(USAGE)


def option_parser() -> Parser:
    """Return the parser of the options."""
    parser = Parser(prog="ssd-probe", description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("device", nargs="?", metavar="DEVICE", help="the drive, as in /dev/sdb")
    add("--destroy", action="store_true",
        help="write, too; all data on the drive are lost. Asks for the drive's name")
    add("--quick", action="store_true", help="fewer repetitions: less sure")
    add("--only", action="append", default=[], metavar="NAMES",
        help="only procedures or findings of these names, separated by commas")
    add("--list", action="store_true", help="list the procedures and what they find, then end")
    add("--load", action="store_true",
        help=f"say in {LOAD_S} s whether the machine is too busy to trust a measurement, then "
             "end: status 0 if not, 1 if so")
    add("--seed", type=int, default=1, metavar="N", help="of random numbers (default: 1)")
    add("--range", type=parse_size, metavar="SIZE",
        help="use only so many bytes from the drive's start (default: all; with --quick and "
             "--destroy 32G)")
    add("--max-write", type=parse_size, metavar="SIZE",
        help="write no more than so many bytes in all (default: 3 times the range and 8G)")
    add("--fresh", action="store_true", help="do not go on with an interrupted run")
    add("--output", metavar="DIR", help="folder of the report's files (default: this folder)")
    add("--json", metavar="FILE", help="write the report as JSON, and HTML only if told to")
    add("--html", metavar="FILE", help="write the report as HTML, and JSON only if told to")
    add("--from", dest="source", metavar="FILE",
        help="measure nothing; show the report in this JSON file, and write it as --html")
    add("-q", "--quiet", action="store_true", help="no progress")
    add("--version", action="version", version=f"ssd-probe {VERSION}")
    return parser


def check_options(parser: Parser, args: argparse.Namespace):
    """Report an error if options do not go together."""
    if not (args.device or args.list or args.source):
        parser.error("name a drive, as in /dev/sdb")
    if args.device and args.source:
        parser.error("--from needs no drive")
    if args.output and (args.json or args.html):
        parser.error("--output goes with neither --json nor --html")
    if args.max_write and not args.destroy:
        parser.error("--max-write needs --destroy")
    if args.seed < 0:
        parser.error("--seed is below 0")


def check_packages():
    """Raise ProbeError if a library is missing."""
    for module, package in PACKAGES.items():
        if not importlib.util.find_spec(module):
            raise ProbeError(f"{module} is missing: install {package}")


def procedures() -> list:
    """Return all procedures."""
    from ssd_probe import probe
    for module in MODULES:
        if importlib.util.find_spec(f"ssd_probe.{module}"):
            importlib.import_module(f"ssd_probe.{module}")
    return list(probe.PROCEDURES)


def selected(every: list, only: list[str]) -> list:
    """Return the procedures that --only names, all if it is empty."""
    from ssd_probe.run import name_of
    wanted = {name for names in only for name in names.replace(",", " ").split()}
    known = {name for item in every for name in (name_of(item), *item.gives)}
    if wanted - known:
        raise ProbeError(f"nothing is named {' '.join(sorted(wanted - known))} (ssd-probe --list)")
    return [item for item in every if not wanted or wanted & {name_of(item), *item.gives}]


def show_list(every: list):
    """Print the procedures."""
    from ssd_probe.run import name_of
    for item in every:
        print(f"{name_of(item)}{' (--destroy)' if item.destroys else ''}: {item.title}")
        print(f"    finds {', '.join(item.gives)}" +
              (f"; uses {', '.join(item.needs)}" if item.needs else ""))


def outputs(args: argparse.Namespace, name: str) -> dict[str, pathlib.Path]:
    """Return the files to write by kind, in folders that exist."""
    if args.json or args.html:
        asked = {"json": args.json, "html": args.html}
        files = {kind: pathlib.Path(path) for kind, path in asked.items() if path}
    else:
        folder = pathlib.Path(args.output or ".")
        if args.output:
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
        files = {kind: folder / f"ssd-probe-{name}.{kind}" for kind in ("json", "html")}
    for file in files.values():
        if not os.access(file.parent, os.W_OK):
            raise ProbeError(f"{file.parent} is not a folder that can be written to")
    return files


def show(report: dict, files: dict[str, pathlib.Path]):
    """Print a report and write its files."""
    from ssd_probe import report as reports
    if "json" in files:
        reports.write_json(report, files["json"])
    if "html" in files:
        reports.write_file(files["html"], reports.page(report))
        if not importlib.util.find_spec("matplotlib"):
            print(f"ssd-probe: {reports.NO_FIGURES}", file=sys.stderr)
    print(reports.text(report))
    if files:
        print("\nWritten: " + " ".join(map(str, files.values())))


def show_again(args: argparse.Namespace) -> int:
    """Show the report in a file."""
    from ssd_probe import report as reports
    report = reports.read_json(args.source)
    asked = {"json": args.json, "html": args.html}
    show(report, {kind: pathlib.Path(path) for kind, path in asked.items() if path})
    return OK


def on_signals(action):
    """Handle all signals that ask the program to end."""
    for number in SIGNALS:
        signal.signal(number, action)


def interrupt(number, _):
    """Handle the first signal. No other one may interrupt what it leads to."""
    from ssd_probe.run import Interrupted
    on_signals(signal.SIG_IGN)
    raise Interrupted(number)


@contextlib.contextmanager
def interruptible():
    """Raise Interrupted in the block if a signal asks the program to end."""
    on_signals(interrupt)
    try:
        yield
    finally:
        on_signals(signal.SIG_DFL)


def confirmed(name: str) -> bool:
    """Ask for the drive's name."""
    print(f"Type the drive's name ({name}) to destroy all data on it: ", end="", file=sys.stderr,
          flush=True)
    typed = sys.stdin.readline().strip()
    if not sys.stdin.isatty():
        print(file=sys.stderr)
    return typed in (name, f"/dev/{name}")


class Run:
    """A run of procedures on a drive, as the options ask for."""

    def __init__(self, args: argparse.Namespace, every: list):
        from ssd_probe import drive, engine, state
        self.args = args
        self.drive = drive.Drive(args.device)
        self.files = outputs(args, self.drive.name)
        self.program = engine.find_program()
        chosen = selected(every, args.only)
        self.chosen = [item for item in chosen if args.destroy or not item.destroys]
        self.left_out = [item for item in chosen if item not in self.chosen]
        if not self.chosen:
            raise ProbeError("all of these procedures write: they need --destroy")
        # Of whole 4 KB, so that no aligned I/O exceeds it.
        self.size = min(self.range(), self.drive.size) // 4096 * 4096
        self.most_written = self.allowed() if args.destroy else 0
        if args.destroy and self.most_written < self.size:
            raise ProbeError("--max-write is less than the range, which is written once: use "
                             "--range")
        key = {"version": VERSION, "drive": self.drive.key(), "options": self.options()}
        self.state = state.State(key, self.drive.identity()["model"] or self.drive.name)

    def range(self) -> int:
        """Return the bytes from the drive's start that are used at most."""
        if self.args.range:
            return self.args.range
        return QUICK_RANGE if self.args.quick and self.args.destroy else self.drive.size

    def allowed(self) -> int:
        """Return the bytes that are written at most."""
        default = self.size * (1 + RANGES_WRITTEN) + LEAST_WRITTEN
        return self.args.max_write or default

    def options(self) -> dict:
        """Return the options that results depend on."""
        return {"destroy": self.args.destroy, "quick": self.args.quick, "seed": self.args.seed,
                "only": sorted(self.args.only), "range": self.size,
                "max_write": self.most_written}

    def refuse(self):
        """Raise ProbeError if the drive must not be written to."""
        from ssd_probe import drive
        reasons = drive.refusals(self.drive) if self.args.destroy else []
        if reasons:
            raise ProbeError(f"{self.drive.path} is not written to: {'; '.join(reasons)}")
        if self.size < 1 << 20:
            raise ProbeError(f"{self.drive.path}: less than 1 MB is too small")

    def look(self):
        """Warn if the machine is busy."""
        from ssd_probe import load
        for reason in load.watch(self.drive, LOOK_S):
            print(f"ssd-probe: do not trust this run: {reason}", file=sys.stderr)

    def bench(self, player):
        """Return what procedures measure with."""
        from ssd_probe import engine, probe
        tags = min(self.drive.tags, player.max_depth)
        most = min(self.drive.max_bytes or engine.MAX_BYTES, engine.MAX_BYTES)
        return probe.Bench(player, self.size, self.drive.block, tags, most, self.args.quick,
                           self.args.seed)

    def agree(self) -> bool:
        """Say what will happen. With --destroy, ask; return false if the user does not agree."""
        from ssd_probe import run
        from ssd_probe.drive import amount
        with run.MeteredEngine(self.drive.path, False, self.program) as player:
            filled = self.size - self.state.data["filled"] if self.args.destroy else 0
            left = [item for item in self.chosen
                    if run.name_of(item) not in self.state.data["procedures"]]
            will = run.estimate(self.bench(player), left, self.most_written, filled)
        say = [self.drive.describe()]
        if self.args.destroy:
            say.append(f"will write at most {amount(will.bytes)}, {amount(filled)} of them in "
                       f"ascending order; takes {run.duration(will.seconds)} or more: so much if "
                       f"it writes as fast as it reads ({will.mbps:.0f} MB/s)")
        else:
            say.append(f"reads only; takes about {run.duration(will.seconds)}")
        print(f"ssd-probe: {': '.join(say)}", file=sys.stderr)
        return not self.args.destroy or confirmed(self.drive.name)

    def keep_settings(self, saved: dict):
        """Note in the state what has to be restored."""
        from ssd_probe.drive import BOOT_ID, read
        self.state.data["settings"] = {"boot": read(BOOT_ID), "name": self.drive.name, **saved}
        self.state.save()

    def settings(self):
        """Return the settings of the drive's queue, those of a run that was killed if its state
        says so."""
        from ssd_probe import drive
        saved = self.state.data["settings"]
        mine = saved and (saved["boot"], saved["name"]) == (drive.read(drive.BOOT_ID),
                                                            self.drive.name)
        return drive.QueueSettings(
            self.drive, {key: saved[key] for key in ("under", "bare")} if mine else None)

    @contextlib.contextmanager
    def prepared(self):
        """Change the drive's settings, and restore them whatever happens."""
        settings = self.settings()
        try:
            settings.change(self.keep_settings)
            yield
        finally:
            self.restore(settings)

    def restore(self, settings):
        """Restore the drive's settings; no signal interrupts that."""
        on_signals(signal.SIG_IGN)
        if not self.drive.exists():
            return
        with contextlib.suppress(ProbeError):
            differ = settings.restore()
            if differ:
                print(f"ssd-probe: not restored: {' '.join(differ)}", file=sys.stderr)
                return
        self.state.data["settings"] = None
        with contextlib.suppress(ProbeError):
            self.state.save()

    def measure(self):
        """Run all procedures; return the report and the names of those that failed."""
        from ssd_probe import drive, engine, run
        left = self.most_written - self.state.data["written"]
        with drive.awake_cpus(), run.MeteredEngine(
                self.drive.path, self.args.destroy, self.program, left) as player:
            bench = self.bench(player)
            steps = len(self.chosen) + self.args.destroy
            progress = run.Progress(steps, self.args.quiet)
            runner = run.Runner(self.drive, bench, self.state, self.args.seed, progress)
            try:
                if self.args.destroy:
                    runner.fill()
                for item in run.ordered(self.chosen):
                    runner.run(item)
            finally:
                progress.clear()
                self.state.data["written"] += player.bytes[engine.WRITE]
            return self.report(runner), runner.failed

    def report(self, runner) -> dict:
        """Return the report."""
        from ssd_probe import report as reports
        from ssd_probe import state
        from ssd_probe.run import name_of
        order = [name for item in self.chosen for name in item.gives]
        found = {name: state.stored(runner.found[name]) for name in order if name in runner.found}
        why = "it writes: needs --destroy"
        report = {
            "schema": reports.SCHEMA, "version": VERSION,
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "kernel": os.uname().release,
            "options": self.options(),
            "drive": {"text": self.drive.describe(), **self.drive.identity()},
            "written_before": self.args.destroy, "findings": found,
            "left_out": [{"procedure": name_of(item), "finds": list(item.gives), "why": why}
                         for item in self.left_out],
            "procedures": {name: {key: value for key, value in record.items()
                                  if key != "findings"}
                           for name, record in self.state.data["procedures"].items()}}
        report["schedulers"] = reports.schedulers(reports.values(report), self.drive.name)
        return state.plain(report)

    def go(self) -> int:
        """Do all of it; return the exit status."""
        from ssd_probe import run
        self.refuse()
        if not self.args.fresh and self.state.load():
            print(f"ssd-probe: goes on with {self.state.path} (--fresh: begin anew)",
                  file=sys.stderr)
        try:
            with interruptible():
                if not self.agree():
                    raise ProbeError("another name was typed: nothing was written")
                with self.drive.locked():
                    # Again: the answer may have taken long.
                    self.refuse()
                    self.look()
                    with self.prepared():
                        report, failed = self.measure()
        except run.Interrupted as signalled:
            print(f"ssd-probe: interrupted; run it again to go on ({self.state.path})",
                  file=sys.stderr)
            return 128 + signalled.number
        except ProbeError as error:
            error = self.drive.explained(error)
            if self.state.data["procedures"] or self.state.data["filled"]:
                raise ProbeError(f"{error} (run it again to go on with {self.state.path})"
                                 ) from None
            raise error from None
        show(report, self.files)
        if failed:
            return FAILED
        self.state.remove()
        return OK


def check_load(path: str) -> int:
    """Say whether the machine is too busy; return the exit status."""
    from ssd_probe import drive, load
    reasons = load.watch(drive.Drive(path), LOAD_S)
    for reason in reasons:
        print(f"too busy to trust a measurement: {reason}")
    if not reasons:
        print("quiet enough")
    return FAILED if reasons else OK


def probe(args: argparse.Namespace) -> int:
    """Do what the options ask for; return the exit status."""
    check_packages()
    if args.source:
        return show_again(args)
    every = procedures()
    if args.list:
        show_list(every)
        return OK
    if os.geteuid():
        raise ProbeError("must be run as root")
    if args.load:
        return check_load(args.device)
    return Run(args, every).go()


def main() -> int:
    """Run the command; return its exit status."""
    parser = option_parser()
    args = parser.parse_args()
    check_options(parser, args)
    try:
        return probe(args)
    except ProbeError as error:
        print(f"ssd-probe: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
