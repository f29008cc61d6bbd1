#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl advise: its test errs as rarely as it says, also where runs differ by their start, are
# alike because they follow each other, or the drive changes; it recommends what is known to be
# better and nothing that lost, and nothing if it is undecided; reads job files and logs; on an
# emulated SSD it finds the scheduler that gains and that none does, refuses what is in use, removes
# its file, restores the drive when interrupted; on a partition it writes to nothing else, and
# applies what it recommends
# timeout: 2400
"""The host runs the tests of units, then a simulated guest, which runs this program again."""

import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import types

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]
SIMULATED = os.environ.get("LAB_SIMULATED") == "1"
if not SIMULATED:
    from host import need
    need("jinja2", "jsonschema", "numpy", "scipy")

# The matrices are small: threads cost more than they save.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy  # noqa: E402

import advise_races  # noqa: E402  (in a folder added above)
from checks import check, run, wait_for  # noqa: E402  (in a folder added above)
from advise_races import Kind  # noqa: E402
from ssd_ctl import CtlError, apply, command, persist, saved, schedulers, status  # noqa: E402
from ssd_ctl.advice import (  # noqa: E402
    candidates, engine, report, rounds, sequential, workload)
from ssdctl import State  # noqa: E402
from terminal import Terminal  # noqa: E402

PACKAGES = ("fio", "python3-jinja2", "python3-jsonschema", "python3-matplotlib", "python3-numpy",
            "python3-scipy")
RANDOM = numpy.random.default_rng(1)
RACES, MOST_WRONG = 100, 10
LEAST = 0.5
NAMES = ["none", "mq-deadline", "kyber", "bfq", "pass", "bp"]
MOST = math.log(1.02)
FIO = "fio --clocksource=clock_gettime"
STATE = pathlib.Path("/var/lib/ssd-iosched/advice")


# Units

def sample(values, lag=0.0):
    """The sample of differences of two candidates, one a round."""
    made, factor = sequential.whitened(values, lag)
    weight = float(factor @ factor)
    mean = float(made @ factor) / weight
    return sequential.Sample(len(values), weight, mean, float(((made - mean * factor) ** 2).sum()))


def coverage():
    """The confidence sequence holds at all times at once as often as it says; an interval for one
    look does not."""
    error, races, length = 0.1, 400, 60
    outside = {bounds: 0 for bounds in (sequential.sequence, sequential.student)}
    for _ in range(races):
        values = RANDOM.normal(0.3, 1, length)
        for bounds in outside:
            outside[bounds] += any(
                abs(found.mean - 0.3) > found.half
                for found in (bounds(sample(values[:count]), error)
                              for count in range(2, length, 2)))
    shares = {bounds.__name__: count / races for bounds, count in outside.items()}
    check(shares["sequence"] <= error, f"outside at any time: {shares}, allowed {error}")
    check(shares["student"] > 2 * error, "one look's interval is not for many looks")
    small = sequential.sequence(sample(numpy.full(4, 0.5)), 0.01)
    check(small.half < 0.05, "four equal differences are enough")


def true_means():
    """Return the true scores of NAMES: equal ones, near ones, or far ones."""
    kind = RANDOM.integers(3)
    others = [RANDOM.choice([0, 0, -0.3, 0.01, 0.05], len(NAMES) - 1),
              RANDOM.normal(0, 0.05, len(NAMES) - 1), RANDOM.normal(0, 0.5, len(NAMES) - 1)][kind]
    return dict(zip(NAMES, [0.0, *map(float, others)], strict=True))


def noise():
    """Return a function that returns noise: normal, or with long tails."""
    size = float(RANDOM.choice([0.005, 0.03, 0.06]))
    if RANDOM.random() < 0.5:
        return lambda: RANDOM.normal(0, size)
    return lambda: size * RANDOM.standard_t(4) / math.sqrt(2)


def served(score):
    """Return a run of one round with one part, of a score."""
    return numpy.array([[[math.exp(score), 1.0]]])


def raced(means, error, most=40):
    """Let candidates race; return the outcome and the race."""
    race = sequential.Race(NAMES, numpy.ones(1))
    for number in range(most):
        common = RANDOM.normal(0, 0.3)
        race.add({name: served(means[name] + common + error()) for name in race.left})
        if number > 2:
            race.drop()
            outcome = race.decided()
            if outcome:
                return outcome, race
    return race.last(), race


def errors():
    """In races with a known truth a decided outcome is within 2 % of the best, or a tenth of its
    gain and 10 %, and no outcome is worse than none, but for one in twenty."""
    far = worse = decided = dropped = 0
    for _ in range(RACES):
        means = true_means()
        outcome, race = raced(means, noise())
        best = max(means.values())
        decided += outcome.sure
        gain = means[outcome.name]
        far += outcome.sure and best - gain > max(MOST, min(0.1 * gain, math.log(1.1)))
        worse += means[outcome.name] < 0
        check_lost(outcome, race)
        dropped += any(means[name] == best for name in set(NAMES) - set(race.left)
                       if best > MOST)
    print(f"{RACES} races, {decided} decided, {far} not the best, {worse} worse than none, "
          f"{dropped} in which the best one had lost")
    check(decided > RACES / 3, "many races are decided")
    check(far <= 0.05 * RACES and worse <= 0.05 * RACES, "errors are as rare as allowed")
    check(dropped <= 0.05 * RACES, "the best one is rarely left out")


def made_up():
    """Races in which runs differ by their start, or are alike because they follow each other, or in
    which the drive's cache is full after some rounds: decided and wrong in 5 % at most. Of 100
    races with an error of 5 % one in 90 has more than MOST_WRONG that are wrong; with one of 38 %,
    as by a rule whose observations are rounds, one in 10^9 has not."""
    for kind, least in (
            (Kind(start=0.05, deviation=0.02, rounds=40), 0), (Kind(lag=0.8, rounds=40), 0),
            (Kind(math.log(1.1), start=0.025, lag=0.5, cliff=8, rounds=40), 0),
            (Kind(math.log(1.1), rounds=40), 0.9), (Kind(math.log(1.1), cliff=3, rounds=40), 0.6)):
        ended = [advise_races.race(kind, seed) for seed in range(RACES // (4 if least else 1))]
        wrong, right = (sum(each) / len(ended) for each in zip(
            *((one.wrong(kind), one.right(kind)) for one in ended), strict=True))
        check(wrong * RACES <= MOST_WRONG and right >= least,
              f"{kind}: decided and wrong {wrong:.0%}, right {right:.0%}")


def alike():
    """The lag is found, and with it bounds hold that are too narrow without."""
    error, length, lag, outside, lags = 0.1, 30, 0.8, [0, 0], []
    for _ in range(RACES):
        noise = RANDOM.normal(0, 1, (8, length))
        noise[:, 1:] *= math.sqrt(1 - lag ** 2)
        for at in range(1, length):
            noise[:, at] += lag * noise[:, at - 1]
        lags.append(sequential.largest_lag(noise))
        for number, taken in enumerate((0.0, lags[-1])):
            found = sequential.student(sample(noise[0] - noise[1], taken), error)
            outside[number] += not found.low <= 0 <= found.high
    check(outside[1] <= 0.17 * RACES < 0.4 * RACES < outside[0],
          f"with a lag of {lag}: outside {outside[0]} of {RACES}, whitened {outside[1]}")
    check(abs(numpy.median(lags) - lag) <= 0.1, f"lags found: {numpy.median(lags):.2f}")
    white = [sequential.largest_lag(RANDOM.normal(0, 1, (8, length))) for _ in range(RACES)]
    check(numpy.median(white) <= 0.1, f"without: {numpy.median(white):.2f}")


def changes():
    """The race starts again where the level of all changes, and only there: not because one
    candidate does. Those that had lost return."""
    def raced(level, runs=8, effect=lambda number: 0.0):
        race = sequential.Race(NAMES, numpy.ones(1))
        for number in range(runs):
            race.add({name: served(level(number) + (name == "bp") * effect(number) +
                                   RANDOM.normal(0, 0.02)) for name in race.left})
        return race

    race = raced(lambda number: -3.0 * (number >= 5), effect=lambda number: -0.2 * (number < 5))
    check(race.restart() and race.runs == 3 and race.starts == 2, f"{race.runs} runs are left")
    check(abs(race.bounds("bp", "none").mean) < 0.1, "what was before does not count")
    check(not race.restart(), "once for each change")
    race = raced(lambda number: 0.0, effect=lambda number: -0.5 * (number >= 5))
    check(not race.restart() and race.runs == 8, "one candidate alone does not decide it")
    check(not any(raced(lambda number: RANDOM.normal(0, 0.3), 12).restart()
                  for _ in range(RACES // 4)), "a level that varies is no change")
    race = raced(lambda number: 0.0, 5)
    race.left = NAMES[:2]
    for _ in range(4):
        race.add({name: served(-3.0) for name in race.left})
    error = race.error
    check(race.restart() and race.left == NAMES and not race.runs and race.error == error / 4,
          "all return, without what only some have; the share of the error is less")
    outcome = race.last()
    check(outcome.name == "none" and not outcome.sure, "nothing is known then")


def hopeless():
    """A race that the rest of the time does not decide ends undecided; others go on."""
    def after(size, more):
        race = sequential.Race(NAMES, numpy.ones(1))
        for _ in range(8):
            race.add({name: served(RANDOM.normal(0, size)) for name in NAMES})
        return race, race.after(0.6, False, more)

    race, outcome = after(0.5, 1)
    check(outcome and not outcome.sure and race.chance(4) < 0.01, f"hopeless: {outcome}")
    check(after(0.03, 200)[1] is None, "there is time enough")
    # Two that are alike, each run with much noise, and much better than none.
    race = sequential.Race(NAMES, numpy.ones(1))
    noise = numpy.random.default_rng(1)
    ends = []
    while not ends or ends[-1] is None and race.runs < 60:
        race.add({name: served((4 if name in ("pass", "bp") else 0) + noise.normal())
                  for name in race.running()})
        if race.runs >= sequential.LEAST_RUNS:
            if not ends:
                check(race.chance(10) < sequential.HOPELESS and not race.gains(race.ahead()),
                      "hardly decided, and not known to be better")
            ends.append(race.after(0.6, False, 5))
    check(len(ends) > 1 and ends[-1] and not ends[-1].sure and race.gains(ends[-1].name),
          f"it ends when they are known to be better than none: {race.runs} runs, {ends[-1]}")
    race, _ = after(0.03, 200)
    check(race.chance(20) < race.chance(100) < race.chance(1000), "the more runs the likelier")


def check_lost(outcome, race):
    """What lost is not recommended."""
    if outcome.name not in race.left:
        check(False, f"{outcome.name} has lost and is recommended")


def undecided(mean, spread):
    """Return the end of a race in which bp is better by @mean, in eight rounds more or less."""
    race = sequential.Race(NAMES, numpy.ones(1))
    for number in range(8):
        noise = {name: served(RANDOM.normal(0, 1e-4)) for name in NAMES}
        race.add(noise | {"bp": served(mean + spread * (-1) ** number)})
    return race.last(), race


def rules():
    """None among equals; the simpler one among equals; the best one if it is better."""
    def ended(size=0.01, **means):
        values = {name: means.get(name.replace("-", "_"), 0.0) for name in NAMES}
        return raced(values, lambda: RANDOM.normal(0, size))

    check(ended()[0] == sequential.Outcome("none", True, []), "equal: none")
    check(ended(0.004, bp=0.012)[0].name == "none", "1.2 % better: none")
    outcome, race = ended(bp=0.3, **{"pass": -0.2})
    check(outcome.name == "bp" and outcome.sure and "pass" not in race.left, "30 % better: bp")
    check(0.95 <= race.confidence("bp") < 1, f"confidence {race.confidence('bp')}")
    race.left = ["none"]
    check(race.confidence("none") == 0, "one that has left the race counts")
    simple = ended(0.0002, bp=0.3, mq_deadline=0.3)[0]
    check(simple.name == "mq-deadline", "the simpler of two equals")
    equals = ended(0.1, **{"pass": 4.0, "bp": 4.0})[0]
    check(equals.sure and equals.name in ("pass", "bp"), f"both gain 55 times: {equals}")
    likely, race = undecided(0.08, 0.08)
    check(likely.name == "bp" and not likely.sure and race.bounds("bp", "none").low < 0,
          f"probably better: {likely}")
    check(undecided(0.03, 0.2)[0].name == "none", "as good, but perhaps much worse: none")
    noisy = undecided(0.01, 0.5)[0]
    check(noisy.name == "none" and not noisy.sure and noisy.rivals, f"undecided: {noisy}")


def set_aside():
    """Those that are probably worse than the best one, and no rivals of it, have no more runs; none
    has. They are not recommended."""
    race = sequential.Race(NAMES, numpy.ones(1))
    means = dict.fromkeys(NAMES, 0.0) | {"bp": 0.10, "pass": 0.09, "kyber": -0.5}
    for number in range(6):
        noise = {"pass": -0.04, "bfq": 0.08}
        race.add({name: served(means[name] + noise.get(name, 0.04) * (-1) ** number)
                  for name in NAMES})
    race.set_aside()
    check(race.running() == ["none", "bfq", "pass", "bp"] and race.left == NAMES and
          race.ahead() == "bp", f"set aside, but not bfq, which may be the best: {race.aside}")
    for _ in range(6):
        race.add({name: served({"pass": -0.2, "bp": -0.2}.get(name, 0)) for name in race.running()})
    race.bounds_by = sequential.student
    outcome = race.last()
    check(outcome.name == "none" and not {*outcome.rivals} & {"mq-deadline", "kyber"},
          f"afterwards: {outcome}")
    race = sequential.Race(NAMES, numpy.ones(1))
    for number in range(4):
        race.add({name: served(0.1 * (name == "bp") + 0.02 * (-1) ** number) for name in NAMES})
    race.set_aside()
    check(not race.aside, "the best one is ahead of all: they stay")
    race = sequential.Race(NAMES, numpy.ones(1))
    means = {"bp": 0.5, "pass": 0.47, "bfq": 0.49}
    for number in range(6):
        race.add({name: served(means.get(name, 0) + 0.03 * (name in means and name != "bp") *
                               (-1) ** number) for name in NAMES})
    check(race.bounds("bp", "pass", 2 * sequential.ERROR, sequential.student).low > 0,
          "a rival is probably worse")
    race.set_aside()
    check(race.running() == ["none", "bfq", "pass", "bp"],
          f"bp is better than none: its rivals stay, set aside: {race.aside}")


JOB = """; a user's job file
[global]
ioengine=libaio   ; as always
direct=1
size=4g
runtime=30

[reader]
rw=randread
filename=/dev/sdz
# weight=2
offset=10%
numjobs=3
[writer]
rw=write
bs=128k
rate=10m
write_bw_log=x
"""


def job_files():
    """A job file is taken as it is, but for place, size and time; what cannot run is refused."""
    load = workload.Workload("user", JOB, "user.fio")
    check([(job.name, job.weight, load.paced(job)) for job in load.jobs] ==
          [("reader", 2.0, False), ("writer", 1.0, True)], "jobs, weights and limits")
    made = load.job_file("/mnt/x", 1 << 30, "/logs", 7)
    reader, writer = (dict(line.split("=") for line in part.splitlines()[1:])
                      for part in made.split("[")[1:])
    check(reader["filename"] == "/mnt/x" and reader["offset"] == str(102 << 20) and
          reader["size"] == str(922 << 20) and reader["numjobs"] == "3" and
          reader["direct"] == "1" and reader["ioengine"] == "libaio" and
          reader["runtime"] == "1000000", "the reader's options")
    load = workload.Workload("user", "[global-x]\nrw=read\nopendir=/home\nfile_append=1\n"
                             "verify=crc32c\nverify_pattern=0xdead\nverify_only\n[a]\n", "user.fio")
    made = load.job_file("/mnt/x", 1 << 30, "/logs", 7)
    check([job.name for job in load.jobs] == ["a"] and load.options(load.jobs[0])["rw"] == "read",
          "fio takes any name that begins with global")
    check("opendir" not in made and "file_append" not in made, "no other file is written to")
    check("verify" not in made, "nothing is verified")
    check(writer["rate"] == "10m" and writer["bs"] == "128k" and "write_bw_log" not in writer and
          writer["write_lat_log"] == "/logs/1", "the writer's options")
    for text, because in (("[a]\nzonemode=zbd\n", "zonemode=zbd in [a]"),
                          ("rw=read\n", "in no section"), ("[global]\nrw=read\n", "has no job"),
                          ("include x\n", "include"),
                          ("[global]\nio_submit_mode=offload\n[a]\n", "offload in [global]")):
        try:
            workload.Workload("bad", text, "bad.fio")
            check(False, f"{because}: not refused")
        except CtlError as error:
            check(because in str(error), f"refused: {error}")
    for name in workload.NAMED:
        check(len(workload.load(name).jobs) > 1, f"the load {name}")
    inside(STREAMS, 200 << 20, {"size": 50 << 20, "offset_increment": 50 << 20})
    inside("[a]\nrw=read\nsize=100%\nnumjobs=4\noffset_increment=25%\n", 256 << 20,
           {"size": 64 << 20, "offset_increment": 64 << 20})
    inside("[a]\nrw=read\nfileoffset=50%\n", 64 << 20, {"size": 32 << 20, "offset": 32 << 20})
    inside("[a]\nrw=read\nfileoffset=50m\n", 64 << 20, {"size": 64 << 20})
    inside("[a]\nrw=read\nsize=0.1%\noffset=99%\n", 64 << 20, {"size": 1 << 20, "offset": 63 << 20})
    try:
        inside("[a]\nrw=read\noffset=100%\n", 64 << 20, {})
        check(False, "an offset at the end: not refused")
    except CtlError as error:
        check("leaves nothing" in str(error), f"refused: {error}")


def inside(text, size, meant):
    """Check where a job does I/O in the first @size bytes."""
    load = workload.Workload("user", text, "user.fio")
    found = load.parts_of(load.jobs[0], size)
    check(found == meant, f"in {size >> 20} MiB: {found}")


def logs():
    """Windows are cut out of logs, and scored."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"0_lat.{number}.log") for number in (1, 2)]
        paths[0].write_text("".join(f"{at}, 2000000, 0, 4096, 0\n" for at in range(100, 400)))
        paths[1].write_text("150, 8000000, 1, 8192, 0\n")
        log = engine.log_of([*map(str, paths)])
    found = workload.figures(log, 100, 200)
    check(found[0].ios == 100 and found[0].bytes == 409600 and found[0].mean == 2 and
          found[1].ios == 1 and found[1].p99 == 8, "a window of 100 ms")
    load = workload.Workload("user", JOB, "user.fio")
    check(load.parts() == [(0, None, 2 / 3), (1, workload.WRITE, 1 / 3)], f"{load.parts()}")
    made = load.served([found, found], 0.1)
    check(made.tolist() == [[100 + 2, 0.1], [1, 8]], "a rate in blocks, a latency in ms")
    check(load.served([{}, {}], 0.1).tolist() == [[0, 0.1], [0, 100]], "a window without I/O")
    twice, once = (score_of([load.served([found, found], seconds)], load) for seconds in (0.1, 0.2))
    check(math.isclose(twice - once, 2 / 3 * math.log(2)),
          "half the rate of a job counts by its weight")
    nothing = score_of([load.served([{}, {}], 0.1)], load)
    check(nothing < twice - 3, "a job that does nothing counts")
    for options, ways in (
            ("rw=randrw\nrwmixread=70", [0, 1]), ("rw=rw:8", [0, 1]), ("bs=4k", [0]),
            ("rw=randrw\nrwmixwrite=100", [1]), ("rw=randwrite:2", [1])):
        job = workload.Workload("x", f"[x]\nrate_iops=5\n{options}\n", "x")
        check([part[1:] for part in job.parts()] == [(way, 1 / len(ways)) for way in ways],
              f"directions of {options.split()}")


def score_of(made, load):
    """Return the score of rounds."""
    return float(sequential.scores(numpy.array(made), load.weights(), LEAST).mean())


def by_fits():
    """A job that is served by fits and starts is worth what it gets in all: not less in short
    windows, in which it may get nothing. The intervals know how uncertain that is."""
    def scores(rates):
        return sequential.scores(numpy.stack([rates, numpy.ones(len(rates))], 1)[:, None],
                                 numpy.ones(1), LEAST)

    rates = RANDOM.exponential(1, 400) * RANDOM.binomial(1, 0.5, 400)
    short, longer = scores(rates), scores(rates.reshape(200, 2).mean(1))
    check(math.isclose(short.mean(), longer.mean()) and
          math.isclose(short.mean(), math.log(rates.mean())), "in windows twice as long the same")
    wrong = 0
    for _ in range(3 * RACES):
        fits = RANDOM.binomial(1, 0.5, 12) * 2
        found = sequential.student(sample(
            scores(fits) - scores(RANDOM.normal(1, 0.1, 12))), 0.05)
        wrong += found.low > 0 or found.high < 0
    check(wrong < 0.36 * RACES, f"served in half of the windows: {wrong} of {3 * RACES} outside")
    fewer = sample(scores(numpy.zeros(6)) - scores(numpy.full(6, 20.0)))
    check(sequential.student(fewer, 0.05).high < 0,
          "nothing in six windows is less than 20 in each")


def rare():
    """A single I/O, or a single long wait, of candidates that are equal decides nothing."""
    def raced(count, served, equal=True):
        race = sequential.Race(NAMES[:2], numpy.ones(1))
        for number in range(count):
            race.add({name: numpy.array([[served(name, number)]]) for name in race.names})
            race.drop()
        check(not equal or not race.decided() and race.left == race.names, "not decided")
        return race.last()

    for at in range(4):
        outcome = raced(4, lambda name, number, at=at: (name != "none" and number == at, 1.0))
        check(outcome.name == "none", f"an I/O in round {at}: {outcome}")
    outcome = raced(16, lambda name, number: (
        33, 33 + RANDOM.normal(0, 1) + 10000 * (name == "none" and number == 5)))
    check(outcome.name == "none", f"a wait of 10 s: {outcome}")
    outcome = raced(16, lambda name, number: (20 if name == "none" else number == 5, 1.0), False)
    check(outcome.name == "none", f"one I/O instead of 320: {outcome}")
    # A part that does not count.
    race = sequential.Race(NAMES[:2], numpy.array([1.0, 0.0]))
    for number in range(16):
        race.add({name: numpy.array([[[100 + 50 * (name != "none") + number % 2, 1.0],
                                      [number == 5, 1.0]]]) for name in race.names})
    check(race.decided() == sequential.Outcome(NAMES[1], True, []), "an I/O of weight 0")
    wrong = dropped = 0
    for _ in range(RACES // 3):
        race = sequential.Race(NAMES, numpy.ones(1))
        for number in range(1, 19):
            race.add({name: numpy.array([[[RANDOM.poisson(0.2), 1.0]]]) for name in race.left})
            if number in (4, 8, 12, 18):
                race.drop()
        wrong += race.last().name != "none"
        dropped += len(race.left) < len(NAMES)
    # Each of five is tested alone.
    check(dropped <= 0.05 * RACES / 3 and wrong <= 5 * 0.05 * RACES / 3,
          f"an I/O in five windows, equal candidates: {dropped} times one lost, {wrong} wrong")


def slow():
    """I/Os that wait longer than candidates settle are seen."""
    load = workload.Workload("x", "[x]\nrw=write\n", "x")
    found = candidates.candidates(["none", "kyber", "bp"], {})

    class Made(rounds.Rounds):
        """Rounds of made-up windows."""
        def __init__(self, wait_ms):
            # pylint: disable=super-init-not-called
            self.load, self.settle_s, self.measured = load, 1.0, []
            self.race = sequential.Race([one.name for one in found], load.weights())
            for number in range(8):
                done = [{workload.WRITE: workload.Figures(100, 409600, wait_ms, wait_ms)}]
                windows = [engine.Window(name, number, 0, 2000) for name in self.race.names]
                self.measured += [rounds.Measured(window, done) for window in windows]
                self.race.add({name: load.served(done, 2.0)[None] for name in self.race.names})

    for wait_ms in (10, 3000):
        made = Made(wait_ms)
        check(math.isclose(made.waits_s(), wait_ms / 1e3), "the mean wait")
        check(made.unsettled() == (wait_ms > 1000), f"waits of {wait_ms} ms")
    made.outcome = made.race.last()
    check(made.outcome == sequential.Outcome("none", True, []), f"all equal: {made.outcome}")
    made.race.aside.append("kyber")
    check(report.verdict(made, "kyber") == "set aside", "a verdict")
    made.outcome = sequential.Outcome("bp", False, [])
    check(report.verdict(made, "bp") == "leads", "nothing is recommended if it is undecided")
    made.measured = [dataclasses.replace(one, jobs=[{}]) if one.window.candidate == "bp" else one
                     for one in made.measured]
    check(made.waits_s() == 16, "no I/O in eight windows of 2 s is a wait of 16 s")


def turns():
    """All runs are equal, and in each a candidate has its windows in an order and its reverse."""
    made = rounds.Rounds.__new__(rounds.Rounds)
    made.load = workload.Workload("x", "[x]\nrw=read\n", "x")
    made.race = sequential.Race(NAMES, made.load.weights())
    made.plan, made.random, made.told = rounds.Plan(), random.Random(1), lambda _: None
    made.measured, made.lines_s, made.orders = [], 0.0, []
    done = workload.Figures(100, 409600, 1, 1)

    def one_round(_, order, phase):
        made.orders.append(list(order))
        made.round += 1
        return [engine.Window(name, made.round, 0, 1000, phase=phase) for name in order]

    made.one_round, made.fio, made.round = one_round, lambda _: contextlib.nullcontext(
        types.SimpleNamespace(check=lambda: None, logs=lambda: [numpy.empty((0, 4))])), 0
    figures, workload.figures = workload.figures, lambda *_: {workload.READ: done}
    for _ in range(6):
        made.take(made.one_run())
    workload.figures = figures
    check(made.race.lengths == [rounds.RUN] * 6, f"runs of {made.race.lengths} rounds")
    pairs = list(zip(made.orders[::2], made.orders[1::2], strict=True))
    check(all(first == second[::-1] for first, second in pairs) and
          len({tuple(first) for first, _ in pairs}) > 3, "random orders and their reverse")


def rates():
    """Jobs are named whose rate not all candidates keep, and whose flushes do not count; reads that
    the drive did not serve are counted."""
    load = workload.Workload("x", "[x]\nrw=rw\nrate_iops=100\nfsync=1\n[y]\nrw=read\n"
                             "thinktime=1s\n[z]\nrw=write\nfsync=1\n", "x")
    check(load.unlogged() == ["x"], f"of the page cache: {load.unlogged()}")
    made = rounds.Rounds.__new__(rounds.Rounds)
    made.load, made.race = load, sequential.Race(["none", "bp"], load.weights())
    for done, named_ones in (((200, 200), []), ((198, 206), []), ((180, 220), ["x"])):
        made.measured = []
        for number in range(16):
            read = workload.Figures(done[number % 2], 4096 * done[number % 2], 1, 1)
            window = engine.Window(("none", "bp")[number % 2], number // 2, 0, 2000,
                                   (3 * read.bytes, 0))
            jobs = [{workload.READ: read}, {workload.READ: read}, {}]
            made.measured.append(rounds.Measured(window, jobs))
        check(made.uneven() == named_ones, f"{done} I/Os: {made.uneven()}")
        check(made.cached() == 0, "all reads reach the drive")
    for one in made.measured:
        one.window.kernel = (one.window.kernel[0] // 3, 0)
    check(math.isclose(made.cached(), 0.5), "half of the reads do not")


def sentences():
    """The lower bound of a gain comes first, what is not known is said, and nothing else."""
    leading = {"name": "bp", "gain": 1.13, "gain_low": 1.08, "gain_high": 1.2}
    known = {"leading": leading, "confidence": 0.9, "sure": True, "rivals": [], "unsettled": False,
             "had": {"scheduler": "kyber"}}
    text = report.sentence(known)
    check(text.startswith("Use bp: at least +8.0 % against none for this load (estimate +13.0 %, "
                          "at most +20.0 %;"), text)
    known |= {"sure": False, "leading": leading | {"gain_low": 0.98}}
    text = report.sentence(known)
    check(text.startswith("Undecided: keep the present scheduler (kyber). bp leads, between -2.0 % "
                          "and +20.0 % against none") and "whether it is better than none." in text,
          text)
    check(not report.commands(known), "no command follows")
    text = report.sentence(known | {"leading": leading, "rivals": ["pass", "piq"]})
    check("whether pass or piq is better still." in text and "is better than none" not in text,
          text)
    text = report.sentence(known | {"rivals": ["none", "pass"]})
    check("whether it is better than none and whether pass is better still." in text, text)
    text = report.sentence(known | {"leading": leading | {"name": "none"}, "rivals": ["pass"]})
    check("Undecided: keep the present" in text and "but pass may be" in text, text)
    huge = types.SimpleNamespace(low=99.0, high=999.0, mean=99.0)
    measured = types.SimpleNamespace(race=types.SimpleNamespace(bounds=lambda *_: huge))
    check(max(rounds.Rounds.gain(measured, "bp")) < 1 << 63, "a gain can be read again")
    check(report.between(None, 1.2) == "by at most +20.0 %" and
          report.between(1.1, None) == "at least +10.0 %", "one bound")


def undecided_advice():
    """Undecided advice is marked, and taken only if that is wanted; advice that does not say that
    it is sure is undecided, as is all of former versions."""
    choice, had = ({"scheduler": name, "tunables": {}, "queue": {}} for name in ("bp", "kyber"))
    drive = types.SimpleNamespace(path="/dev/x", name="x", describe=lambda: "x",
                                  instance=lambda: "1", exists=lambda: True)
    leading = {"name": "bp", "choice": choice, "gain_low": 0.98, "gain_high": 1.2, "gain": 1.1}
    new = {"sure": False, "choice": had, "leading": leading, "had": had}
    kept = {}
    stored, saved.advice = saved.advice, lambda _: kept
    holds, schedulers.holds = schedulers.holds, lambda *_: True
    for made in (new, {"sure": False, "choice": choice, "had": had}, {"choice": choice},
                 {"sure": True, "choice": choice, "had": had}):
        kept.clear()
        kept.update(made)
        check(saved.advised(drive).choice.scheduler == "bp" and not saved.advised(drive).sure,
              "what leads is stored, and marked")
        shown = status.advice(drive)
        check(shown["advice"] is None and shown["undecided"]["scheduler"] == "bp" and
              status.advice_word(shown) == "undecided", f"status: {shown}")
        try:
            apply.advised(drive, False)
            check(False, "undecided advice is not taken")
        except CtlError as error:
            check("undecided (bp leads)" in str(error) and "--even-unsure" in str(error),
                  str(error))
        check(apply.advised(drive, True).scheduler == "bp", "--even-unsure takes what leads")
    kept.update(new)
    check(status.advice(drive)["undecided"]["gain_low"] == 0.98, "status has the bounds")
    check(not persist.advised(drive).sure, "persist sees that it is undecided")
    kept.update(sure=True, choice=choice)
    check(apply.advised(drive, False).scheduler == "bp" and
          status.advice_word(status.advice(drive)) == "bp", "decided advice is taken")
    saved.advice, schedulers.holds = stored, holds


def named():
    """Candidates: ours twice if the probe says something, the simplest first."""
    found = candidates.candidates(["none", "kyber", "bp"], {"bp": {"block_size_kb": 512},
                                                            "piq": {"channels": 2}})
    check([one.name for one in found] == ["none", "kyber", "bp", "bp (probed)"],
          "candidates in order")
    check(found[3].choice.tunables == {"block_size_kb": 512}, "the probe's tunables")


# In the guest

# Decided or not.
ANSWERED = (0, 3)


def advise(*words, status=ANSWERED, typed=""):
    """Call ssdctl advise in this process; check its status, return (output, errors)."""
    out, said = io.StringIO(), io.StringIO()
    sys.argv = ["ssdctl", "advise", "--fio-program", FIO, *map(str, words)]
    sys.stdin = io.StringIO(typed)
    sys.stdin.isatty = lambda: False
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            ended = command.main()
        except SystemExit as error:
            ended = error.code
    print(f"$ ssdctl advise {' '.join(map(str, words))}\n{out.getvalue()}{said.getvalue()}",
          flush=True)
    check(ended in (status if isinstance(status, tuple) else (status,)),
          f"status {ended}, expected {status}")
    return out.getvalue(), said.getvalue()


def refused(because, *words, **how):
    """Check that a call is refused in one line."""
    out, said = advise(*words, status=how.pop("status", 1), **how)
    lines = [line for line in said.splitlines() if because in line]
    check(not out and len(lines) == 1 and "Traceback" not in said, f"refused: {because}")


def job(text):
    """Return a job file with this text."""
    path = pathlib.Path("/tmp/job.fio")
    path.write_text(text)
    return path


def probed(**values):
    """Return a report of ssd-probe with these findings."""
    path = pathlib.Path("/tmp/probe.json")
    path.write_text(json.dumps({"schema": 1, "findings": {
        name: {"value": value} for name, value in values.items()}}))
    return path


READS = """[reads]
rw=randread
bs=4k
direct=1
ioengine=psync
"""
STREAMS = """[streams]
rw=write
bs=16k
direct=1
ioengine=libaio
iodepth=8
numjobs=4
size=25%
offset_increment=25%
"""
BLOCKS = {"capacity_mb": 256, "mapping": "block", "channels": 2, "chips": 2, "open_blocks": 1,
          "queue_depth": 1, "device_sched": "fifo", "write_buffer_kb": 0, "program_ns": 200000,
          "erase_ns": 1000000, "read_ns": 20000, "gc_copyback": 1, "fill": 100}


def nothing_gains(dev):
    """One reader without a backlog: none."""
    before = State(dev.name)
    out, _ = advise(f"/dev/{dev.name}", "--destroy", "--workload", job(READS), "--size", "64M",
                    "--minutes", "1", "--json=/tmp/advice.json", "--html", "/tmp/advice.html",
                    status=0, typed=f"{dev.name}\n")
    made = json.loads(pathlib.Path("/tmp/advice.json").read_text())
    check(made["recommended"] == "none" and made["sure"] and made["runs"] >= 3 and
          made["rounds"] >= rounds.RUN * made["runs"],
          "none is recommended")
    check("Use none: no scheduler is better" in out and f"ssdctl apply /dev/{dev.name} none" in out,
          "a sentence and commands")
    stored = [json.loads(path.read_text()) for path in STATE.glob("*.json")]
    check([one["choice"]["scheduler"] for one in stored] == ["none"], "the advice is stored")
    page = pathlib.Path("/tmp/advice.html").read_text()
    check(page.count("<img") == 3 and "src='http" not in page, "one HTML file with three plots")
    before.same("the drive's settings")


def one_gains(dev):
    """Streams on a drive that maps blocks: bp is better than none, with the drive's block or
    without; whether one of them is better than the other need not be known in time."""
    out, _ = advise(dev.path, "--destroy", "--workload", job(STREAMS), "--size", "200M",
                    "--minutes", "3", "--json=/tmp/advice.json", "--probe",
                    probed(erase_block_kb=1024, mapping="block", open_blocks=1),
                    status=(0, 3), typed=f"{dev.name}\n")
    made = json.loads(pathlib.Path("/tmp/advice.json").read_text())
    leading = made["leading"]
    check(leading["name"].startswith("bp") and leading["gain_low"] > 1.05,
          f"bp is better than none: {leading}")
    check(made["sure"] or "bp leads" in out or "bp (probed) leads" in out,
          f"which of them is known, or said not to be: {made['sure']}")


def counts_agree(dev):
    """fio's logs hold what the kernel counts, window by window."""
    from ssd_ctl.advice import rounds, target
    from ssd_common.drive import Drive
    # A whole ms, which logs have, is 0.5 % of a window.
    plan = rounds.Plan(least_s=0.2, limit_s=8, enough=20)
    found = candidates.candidates(["none", "kyber"], {})
    drive = Drive(dev.path)
    with target.held(None, drive, 64 << 20, True) as where:
        measured = rounds.Rounds(drive, where, workload.Workload("x", READS, "x"), found, plan,
                                 FIO.split())
        measured.run()
    worst = max(abs(sum(way.bytes for way in one.jobs[0].values()) / sum(one.window.kernel) - 1)
                for one in measured.measured)
    check(len(measured.measured) >= 8 and worst < 0.01, f"fio and the kernel differ by {worst:.2%}")
    check(measured.foreign() < 0.01, "nothing else was moved")
    for one in measured.measured:
        one.window.kernel = tuple(2 * moved for moved in one.window.kernel)
    check(abs(measured.foreign() - 0.5) < 0.01, "half of the bytes are others'")


def refuses(dev, mount):
    """What is in use, exists or cannot be meant is refused, and nothing is written."""
    before = dev.stats()["write_count"]
    refused("--on FILE", dev.path, typed=f"{dev.name}\n", status=2)
    refused("is mounted on", dev.path, "--destroy", typed=f"{dev.name}\n")
    existing = mount / "precious"
    existing.write_text("data")
    refused("exists", dev.path, "--on", existing)
    check(existing.read_text() == "data", "the file is as it was")
    refused("not on", dev.path, "--on", "/tmp/new")
    refused("is no partition of", dev.path, "--on", dev.path)
    refused("No such file", dev.path, "--on", mount / "new", "--workload", "/nothing.fio")
    refused("is no report", dev.path, "--on", mount / "new", "--probe", job(READS))
    refused("is missing", dev.path, "--on", mount / "new", "--fio-program", "nofio")
    refused("tells no model", dev.path, "--on", mount / "new", "--contribute", "/tmp/result")
    refused("is a drive", dev.path, "--on", mount / "new", f"--json={dev.path}")
    refused("has to be above 0", dev.path, "--on", mount / "new", "--minutes", "0", status=2)
    os.sync()
    check(dev.stats()["write_count"] - before < 50, "nothing was written")


def fails(dev, mount):
    """A job of fio that fails ends it, while others go on."""
    before = State(dev.name)
    where = dev.path, "--on", mount / "new", "--size", "64M"
    refused("fio's job [many] failed", *where, "--workload", job(
        f"{READS}[many]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=999999\n"))
    before.same("the drive's settings")
    check(not list(pathlib.Path("/dev/shm").glob("ssdctl-*")), "fio's files are removed")


def from_the_cache(dev, mount):
    """Reads that the page cache serves are named. What a process that was killed has left is
    removed."""
    left = pathlib.Path("/dev/shm/ssdctl-999999-left")
    left.mkdir()
    text = "[reads]\nrw=randread\nioengine=psync\nsize=2%\nnorandommap=1\nthinktime=1ms\n"
    out, _ = advise(dev.path, "--on", mount / "new", "--size", "64M", "--minutes", "0.1",
                    "--workload", job(text))
    check("of what fio read came from the page cache" in out and not left.exists(), "it says so")


def on_a_file(dev, mount):
    """A file is made and removed, and the drive restored, also after SIGINT and without the
    terminal."""
    dev.scheduler("mq-deadline")
    dev.queue("iosched/read_expire", 77)
    dev.queue("iostats", 0)
    before = State(dev.name)
    file, free = mount / "measured", space(mount)
    out, _ = advise(dev.path, "--on", file, "--size", "64M", "--workload", job(READS), "--minutes",
                    "0.1")
    check(("Use " in out or "Undecided: keep" in out) and space(mount) == free,
          "the file is removed")
    before.same("the drive's settings")
    command_line = [PROJECT / "tools/ssdctl/ssdctl", "advise", dev.path, "--on", file, "--size",
                    "64M", "--workload", "copy", "--fio-program", FIO]
    with subprocess.Popen(command_line, stderr=subprocess.PIPE, text=True) as running:
        wait_for(lambda: "[pass]" in queue_file(dev), "the first candidate")
        check(not list(mount.glob("*measured*")) and space(mount) < free - (60 << 20),
              "the file is there meanwhile, without a name")
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
    check(running.returncode == 130 and "interrupted" in said, f"interrupted: {said}")
    check(space(mount) == free, "the file is removed")
    before.same("the drive's settings")
    for number in (signal.SIGQUIT, signal.SIGKILL):
        with subprocess.Popen(command_line, stderr=subprocess.PIPE, text=True) as running:
            wait_for(lambda: "[pass]" in queue_file(dev), "the first candidate")
            running.send_signal(number)
            running.communicate()
        if number == signal.SIGKILL:
            check("[mq-deadline]" not in queue_file(dev), "SIGKILL leaves a candidate")
            sys.argv = ["ssdctl", "revert", dev.name]
            check(command.main() == 0, "revert")
        before.same(f"the drive's settings after {number}")
    terminal = Terminal(command_line)
    wait_for(lambda: "[pass]" in queue_file(dev), "the first candidate")
    terminal.until(rb"round", "the progress")
    terminal.hang_up()
    status = terminal.child.wait(60)
    check(status == 128 + signal.SIGHUP and space(mount) == free, f"without a terminal: {status}")
    before.same("the drive's settings")
    check(subprocess.run(["pgrep", "fio"], check=False).returncode == 1, "fio has ended")


def space(mount):
    """Return the free bytes of a file system, once what was removed is."""
    os.sync()
    found = os.statvfs(mount)
    return found.f_bfree * found.f_frsize


def one_is_refused(dev, mount):
    """A scheduler that the kernel does not select is left out, the others are measured."""
    known = schedulers.select

    def select(drive, name):
        if name == "bp":
            raise CtlError("bp is not signed")
        known(drive, name)

    schedulers.select = select
    before = State(dev.name)
    _, said = advise(dev.path, "--on", mount / "measured", "--size", "64M", "--workload",
                     job(READS), "--minutes", "0.1", "--json=/tmp/advice.json")
    schedulers.select = known
    names = [one["name"] for one in json.loads(pathlib.Path("/tmp/advice.json").read_text())
             ["candidates"]]
    check("without bp: bp is not signed" in said and "bp" not in names and "pass" in names,
          f"without bp: {' '.join(names)}")
    before.same("the drive's settings")


def on_a_partition(dev):
    """The named loads on a partition; what is around it stays, and the advice is applied. A
    partition with a file system is refused."""
    first, size = 64 << 20, 128 << 20
    part = f"{dev.path}p1"
    run("addpart", dev.path, "1", str(first // 512), str(size // 512))
    wait_for(lambda: os.path.exists(part), "the partition")
    end = int(pathlib.Path("/sys/block", dev.name, "size").read_text()) * 512
    around = [(0, first), (first + size, end - first - size)]
    before = [part_of(dev, *place) for place in around]
    run("mkfs.ext4", "-q", part)
    refused("ext4", dev.path, "--destroy", "--on", part)
    run("wipefs", "-q", "-a", part)
    typed = f"{dev.name}p1\n"
    refused("--on FILE", dev.path, "--on", part, typed=typed, status=2)
    out, said = advise(dev.path, "--destroy", "--on", part, status=1, typed=f"{dev.name}\n")
    check(f"lost: all data on {part}" in said and "something else was typed" in said and not out,
          "the partition's name is asked for")
    rest = (first + (64 << 20), 64 << 20)
    kept = part_of(dev, *rest)
    out, _ = advise(dev.path, "--destroy", "--on", part, "--workload", "copy", "--minutes", "0.1",
                    "--size", "64M", "--json", typed=typed)
    check("choice" in json.loads(out), "--json without a file is JSON on stdout")
    check(part_of(dev, *rest) == kept, "nothing beyond --size was written to")
    for load in ("desktop", "database"):
        # Without --apply, the drive would have this one again.
        dev.scheduler("mq-deadline")
        out, said = advise(dev.path, "--destroy", "--on", part, "--workload", load, "--minutes",
                           "0.2", "--apply", "--even-unsure", "--json=/tmp/advice.json",
                           typed=typed)
        made = json.loads(pathlib.Path("/tmp/advice.json").read_text())
        chosen = made["leading"]["choice"]["scheduler"]
        check(chosen != "mq-deadline" and f"[{chosen}]" in queue_file(dev) and
              "until the next boot" in said, f"{load}: {chosen} is applied")
        check(made["rounds"] >= 2 and "estimate" in out, f"{load}: {made['rounds']} rounds")
    too_short(dev, part, typed)
    check([part_of(dev, *place) for place in around] == before, "nothing else was written to")
    run("delpart", dev.path, "1")


def too_short(dev, part, typed):
    """One run of the load decides nothing: the drive keeps its scheduler, also with --apply."""
    dev.scheduler("mq-deadline")
    out, said = advise(dev.path, "--destroy", "--on", part, "--minutes", "0.01", "--size", "64M",
                       "--apply", status=3, typed=typed)
    check("Undecided: keep the present scheduler (mq-deadline)" in out and
          "--even-unsure selects" in said and "[mq-deadline]" in queue_file(dev),
          "undecided: it stays")


def part_of(dev, offset, size):
    """Return a digest of a part of a drive."""
    with open(dev.path, "rb") as file:
        file.seek(offset)
        return hashlib.sha256(file.read(size)).hexdigest()


def queue_file(dev):
    """Return what the kernel says of the drive's schedulers."""
    return pathlib.Path("/sys/block", dev.name, "queue/scheduler").read_text()


def guest():
    """The tests in the guest."""
    from iosched import remove_all
    from ssd import Device
    with Device("small", capacity_mb=128, fill=100, read_ns=400000) as dev:
        counts_agree(dev)
        nothing_gains(dev)
    with Device("small", **BLOCKS) as dev:
        one_gains(dev)
    mount = pathlib.Path("/mnt/advised")
    mount.mkdir()
    with Device("small", capacity_mb=384, memory_backed=1, read_ns=400000) as dev:
        run("mkfs.ext4", "-q", dev.path)
        run("mount", dev.path, mount)
        refuses(dev, mount)
        fails(dev, mount)
        from_the_cache(dev, mount)
        on_a_file(dev, mount)
        one_is_refused(dev, mount)
        run("umount", mount)
    with Device("small", capacity_mb=256, memory_backed=1, read_ns=400000) as dev:
        on_a_partition(dev)
    remove_all()


def start_guest():
    """Run this program in a guest, in place of this process."""
    os.chdir(PROJECT)
    lab = [PROJECT / "scripts/lab", "--quiet", "--simulate", "--memory=2G",
           *(f"--package={name}" for name in PACKAGES)]
    os.execv(lab[0], [*map(str, lab), "--", "python3", "tests/host/ssdctl-advise.py"])


def main():
    if SIMULATED:
        guest()
        return
    coverage()
    errors()
    rules()
    set_aside()
    made_up()
    alike()
    changes()
    hopeless()
    job_files()
    logs()
    by_fits()
    rare()
    slow()
    turns()
    rates()
    sentences()
    undecided_advice()
    named()
    start_guest()


if __name__ == "__main__":
    main()
