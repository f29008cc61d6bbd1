# SPDX-License-Identifier: GPL-2.0
"""Run procedures on a drive: in which order, how often, within which bounds, and with what
progress."""
import dataclasses
import time
import zlib

import numpy

from ssd_common import ToolError, load
from ssd_common.drive import Drive, amount
from ssd_common.lines import Line, duration
from ssd_common.output import say
from ssd_probe import engine, state
from ssd_probe.probe import Bench, Finding, Procedure
from ssd_probe.report import value_text

# Writes in advance: seconds between two notes in the state, requests in flight, seconds that
# the drive then has to empty its buffers.
NOTE_S, FILL_DEPTH, SETTLE_S = 30, 8, 5
# I/Os of a procedure, for an estimate before any has run.
TYPICAL_IOS = 3000
SEQUENTIAL = 64


class BudgetSpent(ToolError):
    """More bytes would be written than the user has agreed to."""


class MeteredEngine(engine.Engine):
    """An engine that writes no more than @most_written bytes, and counts."""

    def __init__(self, device: int, writable: bool, program: str, most_written: int = 0):
        super().__init__(device, writable, program)
        self.most_written = most_written
        self.count = 0

    def play(self, listed, depth=1, limit_s=0.0):
        """As Engine.play(); raise BudgetSpent before too much is written."""
        wanted = int(listed["length"][listed["op"] == engine.WRITE].sum(dtype="u8"))
        if self.bytes[engine.WRITE] + wanted > self.most_written and wanted:
            raise BudgetSpent(f"it would have written more than {amount(self.most_written)} in all "
                              "(--max-write)")
        done = super().play(listed, depth, limit_s)
        self.count += len(done)
        return done

    def moved(self) -> int:
        """Return the bytes read and written so far."""
        return sum(self.bytes.values())


def ordered(procedures: list[Procedure]) -> list[Procedure]:
    """Return the procedures so that each comes after those that give what it needs; those that
    write come last, because they change what reads find."""
    left, done = list(procedures), []
    while left:
        promised = {name for procedure in left for name in procedure.gives}
        ready = [item for item in left
                 if not promised.difference(item.gives).intersection(item.needs)]
        if not ready:
            raise ToolError("procedures need each other: " + " ".join(map(name_of, left)))
        first = min(ready, key=lambda item: item.destroys)
        left.remove(first)
        done.append(first)
    return done


def name_of(procedure: Procedure) -> str:
    """Return the name by which the user knows a procedure."""
    return procedure.function.__name__


class Progress(Line):
    """Lines on stderr: what runs now, and how long all of it will take."""

    def __init__(self, steps: int, each: float, quiet: bool = False):
        """@steps: number of them, @each: seconds that one is expected to take."""
        super().__init__(quiet)
        self.steps, self.done = steps, 0
        # Seconds of the steps that are alike, with one of the expected length among them.
        self.alike, self.seconds = 1, each
        self.began, self.title, self.shown = 0.0, "", 0.0

    def begin(self, title: str):
        """Note the begin of a step."""
        self.title, self.began = title, time.monotonic()
        self.show(0.0, line=True)

    def end(self, text: str, alike: bool = True):
        """Note the end of a step and what it has led to. @alike: others will take about as long."""
        seconds = time.monotonic() - self.began
        self.done += 1
        if alike:
            self.alike += 1
            self.seconds += seconds
        if not self.quiet:
            self.put(f"[{self.done}/{self.steps}] {self.title}: {text} ({seconds:.0f} s)", "\n")

    def show(self, part: float, line: bool = False):
        """Show that a @part of the step is done. Is called often."""
        now = time.monotonic()
        if self.quiet or not (line or (self.terminal and now - self.shown > self.AGAIN_S)):
            return
        self.shown = now
        text = f"[{self.done + 1}/{self.steps}] {self.title} {part:4.0%}{self.left(part)}"
        if self.terminal:
            self.put(self.fitted(text), "")
        else:
            self.put(text, "\n")

    def left(self, part: float) -> str:
        """Return about how long the rest takes, if a @part of this step is done."""
        passed, mean = time.monotonic() - self.began, self.seconds / self.alike
        rest = passed / part - passed if part > 0.05 else max(0.0, mean - passed)
        return f", about {duration(rest + mean * (self.steps - self.done - 1))} left"


@dataclasses.dataclass
class Estimate:
    """What a run will take, as far as reads can tell. @filling: seconds of writes in advance, if
    the drive writes as fast as it reads, @each: of a procedure, @mbps: at which the drive reads."""
    filling: float
    each: float
    mbps: float


def estimate(bench: Bench, filled: int) -> Estimate:
    """Return the estimate for a run that writes @filled bytes in advance."""
    sizes = min(bench.max_bytes, bench.size // SEQUENTIAL // 4096 * 4096)
    offsets = numpy.arange(SEQUENTIAL) * sizes
    per_second = bench.rate(offsets, sizes, depth=min(8, bench.tags)) * sizes
    small = bench.latencies(bench.places(SEQUENTIAL, 4096), 4096).mean() / 1e9
    return Estimate(filled / per_second + SETTLE_S * (filled > 0), TYPICAL_IOS * small,
                    per_second / 1e6)


class Runner:
    """Runs procedures. @saved: the state that is kept."""

    def __init__(self, drive: Drive, bench: Bench, saved: state.State, seed: int,
                 progress: Progress):
        self.drive, self.bench, self.saved, self.seed = drive, bench, saved, seed
        self.progress, self.before = progress, saved.data["written"]
        bench.progress = progress.show
        self.found: dict[str, Finding] = {}
        # Those that ended with an error which is not the drive's.
        self.failed: list[str] = []
        # Another try has a chance to be undisturbed.
        self.patient = True
        # No attempt to save the state has failed.
        self.saving = True

    def save(self):
        """Save the state, with the bytes that are written so far. A run that cannot save it goes
        on: only an interrupted one has a use for it."""
        self.saved.data["written"] = self.before + self.bench.engine.bytes[engine.WRITE]
        try:
            self.saved.save()
        except ToolError as error:
            if self.saving:
                self.progress.clear()
                say(f"ssd-probe: {error}: if this run is interrupted, the next one begins anew")
            self.saving = False

    def fill(self):
        """Write the whole range in ascending order, so that later reads are of written pages."""
        bench, data, noted = self.bench, self.saved.data, time.monotonic()
        step = bench.max_bytes * FILL_DEPTH * 4
        self.progress.begin("write the drive in ascending order")
        while data["filled"] < bench.size:
            low = data["filled"]
            high = min(low + step, bench.size)
            offsets = numpy.arange(low, high, bench.max_bytes)
            lengths = numpy.minimum(bench.max_bytes, high - offsets)
            bench.engine.play(engine.ios(offsets, lengths, engine.WRITE),
                              min(FILL_DEPTH, bench.tags))
            data["filled"] = high
            if time.monotonic() - noted > NOTE_S:
                noted = time.monotonic()
                self.save()
            self.progress.show(high / bench.size)
        bench.engine.play(engine.ios([0], 0, engine.FLUSH))
        time.sleep(SETTLE_S)
        self.progress.end(amount(bench.size), alike=False)
        self.save()

    def run(self, procedure: Procedure):
        """Run a procedure, or take what a run before has found."""
        name = name_of(procedure)
        record = self.saved.data["procedures"].get(name)
        if record:
            self.progress.steps -= 1
        else:
            record = self.measured(procedure)
            if name not in self.failed:
                self.saved.data["procedures"][name] = record
                self.save()
        for data in record["findings"]:
            self.found[data["name"]] = state.restored(data)

    def measured(self, procedure: Procedure) -> dict:
        """Run a procedure, again if something disturbed it; return its record."""
        self.progress.begin(procedure.title)
        record = self.once(procedure)
        if record["disturbed"] and self.patient:
            record = self.once(procedure)
        self.patient = not record["disturbed"]
        texts = [f"{item['name']} {value_text(item)}" for item in record["findings"]]
        texts += [f"disturbed: {reason}" for reason in record["disturbed"]]
        self.progress.end(", ".join(texts))
        return record

    def once(self, procedure: Procedure) -> dict:
        """Run a procedure once; return its record."""
        player, name = self.bench.engine, name_of(procedure)
        # Its numbers do not depend on which procedures ran before.
        self.bench.random = numpy.random.default_rng([self.seed, zlib.crc32(name.encode())])
        bytes_before, count = player.moved(), player.count
        written = player.bytes[engine.WRITE]
        before = load.sample(self.drive)
        findings = self.findings(procedure)
        after = load.sample(self.drive)
        moved = player.moved() - bytes_before
        written = player.bytes[engine.WRITE] - written
        return {"title": procedure.title, "seconds": round(after.clock - before.clock, 3),
                "ios": player.count - count, "read": moved - written, "written": written,
                "disturbed": load.disturbances(before, after, moved, player.count - count),
                "findings": [state.stored(finding) for finding in findings]}

    def findings(self, procedure: Procedure) -> list[Finding]:
        """Return the findings of a procedure: one for each that it promises."""
        made, why = [], "the procedure said nothing of it"
        try:
            made = list(procedure.function(self.bench, self.found) or ())
        except BudgetSpent as error:
            why = str(error)
        except ToolError:
            raise
        except Exception as error:  # pylint: disable=broad-except
            # A defect of one procedure must not lose what the others find.
            self.failed.append(name_of(procedure))
            why = f"the procedure failed: {type(error).__name__}: {error}"
            self.progress.clear()
            say(f"ssd-probe: {name_of(procedure)}: {why}")
        names = {finding.name for finding in made}
        return made + [Finding(name, None, why=why) for name in procedure.gives
                       if name not in names]
