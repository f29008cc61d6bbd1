# SPDX-License-Identifier: GPL-2.0
"""Say at once which scheduler suits a drive, by what the drive and its driver show, with the
evidence; nothing is measured or changed. Without a drive: for all."""
import argparse
import dataclasses
import json

from ssd_common import ToolError, probe_report, settings
from ssd_common.drive import Drive, read
from ssd_ctl import CtlError, drives, evidence, hwdb, kinds, saved, schedulers
from ssd_ctl.choice import Choice
from ssd_ctl.said import add_option

OK = 0
KEEP = "keep what it has"
PAGE = "Documentation/results/kinds.md"
# {fact: file below the drive's folder in sysfs}.
FACTS = {"rotational": "queue/rotational", "zoned": "queue/zoned", "removable": "removable",
         "tags": "mq/0/nr_tags", "queue_depth": "device/queue_depth", "card": "device/type",
         "command_queue": "device/cmdq_en", "preferred_erase_size": kinds.ERASE_SIZE}
SURE = {kinds.MEASURED: "measured on this drive by ssdctl advise",
        kinds.MODEL: "measured on a drive of this model, by the hardware database",
        kinds.EMULATED: "measured on an emulated drive of this kind, not on a real one",
        kinds.ALIKE: "measured on an emulated drive that is like it, not on a real one",
        kinds.NOTHING: "no gain is known for most uses"}
# Figures of a recommendation, and of another choice, that are shown; JSON has all.
SHOWN, SHOWN_OF_OTHER = 3, 2


@dataclasses.dataclass(frozen=True)
class Other:
    """Another choice, for a @trouble, or by @trouble of ssd-probe."""
    trouble: str
    choice: Choice
    gains: list[evidence.Figure] = dataclasses.field(default_factory=list)
    costs: list[evidence.Figure] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        figures = [*self.gains, *self.costs]
        bare = self.choice.settings() and any(each.source == evidence.SELECTED for each in figures)
        return f"{self.choice}, {self.trouble}" + (
            " (figures: with nothing else set)" if bare else "")

    def as_json(self) -> dict:
        """Return it for json.dump()."""
        return {"trouble": self.trouble, "choice": self.choice.as_json(),
                "gains": [each.as_json() for each in self.gains],
                "costs": [each.as_json() for each in self.costs]}


@dataclasses.dataclass
class Recommendation:
    """What is recommended for a drive. @choice: None: keep what it has; @strength: how sure, one of
    SURE; @why: the reason; @gains, @costs: what is published; @others: choices for other needs;
    @facts: what the drive shows; @notes: what else is to be said; @present: the drive's scheduler,
    with which it is compared, too."""
    kind: kinds.Kind
    choice: Choice | None
    strength: str
    why: str
    facts: dict[str, str]
    gains: list[evidence.Figure] = dataclasses.field(default_factory=list)
    costs: list[evidence.Figure] = dataclasses.field(default_factory=list)
    others: list[Other] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    present: str = ""

    def as_json(self) -> dict:
        """Return it for json.dump()."""
        return {"kind": self.kind.name, "title": self.kind.title,
                "choice": self.choice and self.choice.as_json(), "strength": self.strength,
                "why": self.why, "facts": self.facts, "present": self.present,
                "gains": [each.as_json() for each in self.gains],
                "costs": [each.as_json() for each in self.costs],
                "others": [each.as_json() for each in self.others], "notes": self.notes}


def add_options(parser: argparse.ArgumentParser):
    """Add the options of the command."""
    parser.add_argument("device", nargs="?", metavar="DEVICE",
                        help="only for this drive, as in /dev/sdb (default: for all)")
    parser.add_argument("--probe", metavar="FILE",
                        help="a report of ssd-probe of the drive, as JSON: what fits it, too")
    add_option(parser)


def facts_of(drive: Drive) -> dict[str, str]:
    """Return what a drive and its driver show."""
    found = {name: read(drive.sysfs / file) for name, file in FACTS.items()}
    found["hardware_queues"] = str(sum(path.is_dir() for path in drive.sysfs.glob("mq/*")))
    return {"bus": drives.kind(drive), "driver": drive.driver(),
            **{name: value for name, value in found.items() if value}}


def by_kind(drive: Drive, kind: kinds.Kind) -> Recommendation:
    """Return what is recommended for a drive of a kind."""
    made = Recommendation(kind, kinds.choice_of(kind), kind.strength, kind.why, facts_of(drive),
                          present=schedulers.present(drive))
    if kind.scheduler:
        made.gains, made.costs = evidence.of(kind.drive, kind.scheduler, kind.usual, made.present)
    made.others = [Other(f"if {each.trouble}", kinds.instead_for(each, drive),
                         *evidence.of(each.drive, each.scheduler, kind.usual, made.present))
                   for each in kind.instead]
    as_it_is(made)
    return made


def as_it_is(made: Recommendation):
    """Keep what a drive has if what is recommended for its kind is worse under a load; that is
    another choice then."""
    why = made.choice and evidence.better(made.kind.drive, made.present, made.choice)
    if not why:
        return
    made.why = why
    made.others.insert(0, Other("if that matters less", made.choice, made.gains, made.costs))
    made.choice, made.gains, made.costs = None, [], []


def advised(drive: Drive, made: Recommendation):
    """Take the advice of ssdctl advise on the drive if it is decided; note it otherwise."""
    try:
        advice = saved.advised(drive)
    except (CtlError, ToolError) as error:
        made.notes.append(f"stored advice is left aside: {error}")
        return
    if not advice:
        return
    gain = "" if advice.low is None else f", at least {advice.low:.3g} times as good as none"
    if advice.sure:
        made.choice, made.strength = advice.choice, kinds.MEASURED
        made.why, made.gains, made.costs = f"ssdctl advise has measured it{gain}", [], []
    else:
        made.notes.append(f"ssdctl advise is undecided, {advice.choice} leads")


def by_model(known: dict[str, str], made: Recommendation):
    """Take what the hardware database says of the model."""
    try:
        choice = hwdb.choice_in(known)
    except CtlError as error:
        made.notes.append(f"the model's entry in the hardware database is wrong: {error}")
        return
    if choice:
        made.choice, made.strength, made.gains, made.costs = choice, kinds.MODEL, [], []
        made.why = "the hardware database has an entry for its model"


def probed(path: str, made: Recommendation):
    """Add what a report of ssd-probe says of the drive."""
    values = probe_report.values(probe_report.read_json(path))
    tunables = settings.tunables(values)
    made.others += [
        Other(f"by ssd-probe, {why}", Choice.recommended(name, tunables.get(name)))
        for name, (fits, why) in settings.advice(values).items() if fits]


def of(drive: Drive, probe: str | None = None) -> Recommendation:
    """Return what is recommended for a drive. @probe: the file of a report of ssd-probe."""
    known = kinds.properties(drive)
    made = by_kind(drive, kinds.of(drive, known))
    by_model(known, made)
    advised(drive, made)
    if probe:
        probed(probe, made)
    name = made.choice.scheduler if made.choice else ""
    if name and name not in schedulers.available(drive):
        made.notes.append(f"the running kernel has no {name}" + (
            f": {remedy}" if (remedy := schedulers.remedy(name)) else ""))
    return made


def lines(drive: Drive, made: Recommendation) -> list[str]:
    """Return a recommendation for eyes."""
    shown = " ".join(f"{name}={value}".replace(" ", "_") for name, value in made.facts.items())
    found = [f"{drive.name}: {made.choice or KEEP}", f"    kind:   {made.kind.title}",
             f"    shows:  {shown}", f"    why:    {made.why}",
             f"    sure:   {made.strength}: {SURE[made.strength]}"]
    usual = made.kind.usual
    found += [f"    gains:  {each}" for each in evidence.telling(made.gains, usual)[:SHOWN]]
    found += [f"    costs:  {each}"
              for each in evidence.worst(made.costs, "none", usual, made.present)
              [:SHOWN]]
    peer = made.choice.scheduler if made.choice else made.present or usual
    for other in made.others:
        found.append(f"    or:     {other}")
        figures = evidence.telling([*other.gains, *other.costs], peer)
        found += [f"            {way} {each.against(peer)}"
                  for way, better in (("gains", True), ("costs", False))
                  for each in [one for one in figures if one.better(peer) == better]
                  [:SHOWN_OF_OTHER]]
    found += [f"    note:   {each}" for each in made.notes]
    if made.choice:
        found.append(f"    keep:   ssdctl persist {drive.path} --recommended")
    return found


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.probe and not args.device:
        raise CtlError("--probe is the report of one drive: name it")
    found = [drives.find(args.device)] if args.device else drives.every()
    made = [(drive, of(drive, args.probe)) for drive in found]
    if args.json:
        print(json.dumps({"drives": [{"name": drive.name, "path": drive.path, **each.as_json()}
                                     for drive, each in made]}, indent=1))
        return OK
    for drive, each in made:
        print("\n".join(lines(drive, each)))
    if not made:
        print("there are no drives")
    if any(each.gains or each.others for _, each in made):
        print(f"\nfigures: means of emulated drives, with nothing set but the scheduler where no "
              f"page is named; more of them: {PAGE}")
    return OK
