# SPDX-License-Identifier: GPL-2.0
"""A run of the command on a drive: what it says before, what it changes and restores, and what it
leaves."""
import argparse
import datetime
import importlib
import os

from ssd_common import ToolError, asking, former, load, output, probe_report
from ssd_common.drive import Drive, amount
from ssd_common.holding import Held
from ssd_common.lines import duration
from ssd_common.signals import Interrupted, interruptible
from ssd_common.version import VERSION
from ssd_probe import engine, probe, report, run, state
from ssd_probe.engine import awake_cpus
from ssd_probe.run import name_of

# Modules that register procedures, in the order of the table.
MODULES = ("reads", "units", "regions", "writes", "slc", "clusters", "write_buffer", "blocks",
           "strides")
# Bytes that procedures may write unless the user says otherwise: so many times the range, and
# an amount for small ranges.
RANGES_WRITTEN, LEAST_WRITTEN = 2, 8 << 30
QUICK_RANGE = 32 << 30
# What is measured with, beside none as the scheduler and requests of MAX_KB; each if the kernel
# has it.
MEASURING = {"nomerges": "2", "wbt_lat_usec": "0", "iostats": "1", "rq_affinity": "2"}
MAX_KB = 4096
# Seconds of the look at the machine before a run.
LOOK_S = 1


def procedures() -> list[probe.Procedure]:
    """Return all procedures."""
    for module in MODULES:
        importlib.import_module(f"ssd_probe.{module}")
    return list(probe.PROCEDURES)


def selected(only: list[str]) -> list[probe.Procedure]:
    """Return the procedures that --only names, all if it is empty."""
    every = procedures()
    wanted = {name for names in only for name in names.replace(",", " ").split()}
    known = {name for item in every for name in (name_of(item), *item.gives)}
    if wanted - known:
        raise ToolError(f"nothing is named {' '.join(sorted(wanted - known))} (ssd-probe --list)")
    return [item for item in every if not wanted or wanted & {name_of(item), *item.gives}]


def show_list():
    """Print the procedures."""
    for item in procedures():
        print(f"{name_of(item)}{' (--destroy)' if item.destroys else ''}: {item.title}")
        print(f"    finds {', '.join(item.gives)}" +
              (f"; uses {', '.join(item.needs)}" if item.needs else ""))


def say(text: str):
    """Print a line on stderr."""
    output.say(f"ssd-probe: {text}")


class Session:
    """A run of procedures on a drive, as the options ask for. All I/O uses @descriptor, which is
    open for direct I/O; of a drive that is written to, it is that of the hold, @held."""

    def __init__(self, args: argparse.Namespace, drive: Drive, descriptor: int,
                 held: Held | None = None):
        self.args, self.drive, self.descriptor, self.held = args, drive, descriptor, held
        self.files = report.outputs(args, drive.name)
        self.program = engine.find_program()
        asked = selected(args.only)
        self.chosen = [item for item in asked if args.destroy or not item.destroys]
        self.left_out = [item for item in asked if item not in self.chosen]
        if not self.chosen:
            raise ToolError("all of these procedures write: they need --destroy")
        # Of whole 4 KB, so that no aligned I/O exceeds it.
        self.size = min(self.range(), drive.size) // 4096 * 4096
        if self.size < 1 << 20:
            raise ToolError(f"{drive.path}: less than 1 MB is too small")
        self.most_written = self.allowed() if args.destroy else 0
        key = {"version": VERSION, "drive": drive.key(), "options": self.options()}
        self.state = state.State(key, drive.identity()["model"] or drive.name)

    def range(self) -> int:
        """Return the bytes from the drive's start that are used at most."""
        if self.args.range:
            return self.args.range
        return QUICK_RANGE if self.args.quick and self.args.destroy else self.drive.size

    def allowed(self) -> int:
        """Return the bytes that are written at most."""
        most = self.args.max_write or self.size * (1 + RANGES_WRITTEN) + LEAST_WRITTEN
        if most < self.size:
            raise ToolError("--max-write is less than the range, which is written once: use "
                            "--range")
        return most

    def options(self) -> dict:
        """Return the options that results depend on."""
        return {"destroy": self.args.destroy, "quick": self.args.quick, "seed": self.args.seed,
                "only": sorted(self.args.only), "range": self.size,
                "max_write": self.most_written}

    def look(self):
        """Warn if the machine is busy."""
        for reason in load.watch(self.drive, LOOK_S):
            say(f"do not trust this run: {reason}")

    def resume(self):
        """Go on with what an interrupted run has left, unless the drive has lost what that run
        wrote in advance: reads of what is not written say nothing."""
        if not self.state.load():
            return
        if self.drive.has_zeros(self.descriptor, self.state.data["filled"], self.args.seed):
            say(f"begins anew: {self.drive.path} was discarded, or overwritten with zeros, after "
                "the run that was interrupted")
            self.state.clear()
            return
        say(f"goes on with {self.state.path} (--fresh: begin anew)")

    def bench(self, player: run.MeteredEngine) -> probe.Bench:
        """Return what procedures measure with."""
        tags = min(self.drive.tags, player.max_depth)
        most = min(self.drive.max_bytes or engine.MAX_BYTES, engine.MAX_BYTES)
        return probe.Bench(player, self.size, self.drive.block, tags, most, self.args.quick,
                           self.args.seed)

    def announce(self) -> run.Estimate:
        """Say what will happen. Reads for a moment to tell how long it takes, and returns that."""
        data = self.state.data
        filled = self.size - data["filled"] if self.args.destroy else 0
        left = [item for item in self.chosen if name_of(item) not in data["procedures"]]
        with run.MeteredEngine(self.descriptor, False, self.program) as player:
            will = run.estimate(self.bench(player), filled)
        takes = duration(will.filling + will.each * len(left))
        if not self.args.destroy:
            say(f"{self.drive.describe()}: reads only; takes about {takes}")
            return will
        say(f"{self.drive.describe()}: writes at most "
            f"{amount(self.most_written - data['written'])}, {amount(filled)} of them in "
            f"ascending order; takes {takes} or more, so much if it writes as fast as it reads "
            f"({will.mbps:.0f} MB/s)")
        return will

    def measuring(self) -> former.Settings:
        """Return the settings of the drive's queue to measure with."""
        most = self.drive.number_of("max_hw_sectors_kb")
        return MEASURING | ({"max_sectors_kb": str(min(most, MAX_KB))} if most else {})

    def measure(self, each: float) -> run.Runner:
        """Run all procedures. @each: seconds that one is expected to take."""
        data = self.state.data
        with awake_cpus(), run.MeteredEngine(self.descriptor, self.args.destroy, self.program,
                                             self.most_written - data["written"]) as player:
            progress = run.Progress(len(self.chosen) + self.args.destroy, each, self.args.quiet)
            runner = run.Runner(self.drive, self.bench(player), self.state, self.args.seed,
                                progress)
            try:
                if self.args.destroy:
                    runner.fill()
                for item in run.ordered(self.chosen):
                    if self.held:
                        self.held.still()
                    runner.run(item)
            finally:
                progress.clear()
                if self.state.worth():
                    runner.save()
            return runner

    def report(self, found: dict[str, probe.Finding]) -> dict:
        """Return the report."""
        order = [name for item in self.chosen for name in item.gives if name in found]
        findings = {name: state.stored(found[name]) for name in order}
        values = {name: finding["value"] for name, finding in findings.items()}
        return state.plain({
            "schema": probe_report.SCHEMA, "version": VERSION,
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "kernel": os.uname().release, "options": self.options(),
            "drive": {"text": self.drive.describe(), **self.drive.identity()},
            "written_before": self.args.destroy, "findings": findings,
            "left_out": [{"procedure": name_of(item), "finds": list(item.gives),
                          "why": "it writes: needs --destroy"} for item in self.left_out],
            "procedures": {name: {key: value for key, value in record.items()
                                  if key != "findings"}
                           for name, record in self.state.data["procedures"].items()},
            "schedulers": report.schedulers(values, self.drive.name)})

    def hint(self) -> str:
        """Return how to go on, "" if there is nothing to go on with."""
        kept = self.state.worth() and self.state.path.exists()
        return f" (run it again to go on with {self.state.path})" if kept else ""

    def go(self) -> int:
        """Do all of it; return the exit status."""
        try:
            with interruptible():
                if not self.args.fresh:
                    self.resume()
                will = self.announce()
                if self.held and not asking.confirmed(self.drive, "ssd-probe"):
                    raise ToolError("something else was typed: nothing was written")
                with self.drive.locked():
                    # Again: the answer may have taken long.
                    if self.held:
                        self.held.refuse()
                    self.look()
                    with former.changed(self.drive, self.measuring(), say):
                        runner = self.measure(will.each)
        except Interrupted as signalled:
            say(f"interrupted{self.hint()}")
            return 128 + signalled.number
        except ToolError as error:
            raise ToolError(f"{self.drive.explained(error)}{self.hint()}") from None
        report.show(self.report(runner.found), self.files)
        if runner.failed:
            return 1
        self.state.remove()
        return 0
