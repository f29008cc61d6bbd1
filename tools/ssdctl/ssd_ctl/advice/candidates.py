# SPDX-License-Identifier: GPL-2.0
"""The schedulers that are measured, and how one is selected on the drive."""
import collections.abc
import dataclasses

from ssd_common import probe_report, settings
from ssd_common.drive import Drive, read
from ssd_ctl import CtlError, schedulers
from ssd_ctl.choice import Choice
from ssd_ctl.schedulers import NONE, WBT


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A choice with a name for tables."""
    name: str
    choice: Choice


def probed_tunables(path: str | None) -> dict[str, dict[str, int | str]]:
    """Return the tunables of our schedulers by a report of ssd-probe."""
    return settings.tunables(probe_report.values(probe_report.read_json(path))) if path else {}


def candidates(available: list[str], probed: dict[str, dict]) -> list[Candidate]:
    """Return what is measured, the simplest first: none, the kernel's, ours with their defaults,
    ours with @probed tunables. @available: the schedulers that the kernel has."""
    defaults = [Candidate(name, Choice.recommended(name)) for name in available]
    return defaults + [
        Candidate(f"{name} (probed)", Choice.recommended(name, probed[name]))
        for name in available if probed.get(name)]


class Selector:
    """Selects candidates on a drive, each with the settings that it has after a boot. Writeback
    throttling stays as the user has it, but for candidates that have it otherwise."""

    def __init__(self, drive: Drive):
        self.drive = drive
        # Without a scheduler; "" if the kernel has none.
        self.throttling = schedulers.throttling(NONE, schedulers.present(drive),
                                                read(drive.queue / WBT))

    def select(self, candidate: Candidate):
        """Select a candidate. Its scheduler starts anew."""
        choice, queue = candidate.choice, dict(candidate.choice.queue)
        if not self.throttling:
            queue.pop(WBT, None)
        elif WBT not in queue:
            queue[WBT] = schedulers.throttling(choice.scheduler, NONE, self.throttling)
        schedulers.change(self.drive, dataclasses.replace(choice, queue=queue))
        if queue.get(WBT) == schedulers.USUAL:
            self.throttling = read(self.drive.queue / WBT)


def selectable(drive: Drive, found: list[Candidate],
               left_out: collections.abc.Callable[[str], None]) -> list[Candidate]:
    """Return those candidates that the kernel selects; the drive has the last one then. @left_out:
    is called with why another one is left out."""
    selector, made = Selector(drive), []
    for candidate in found:
        try:
            selector.select(candidate)
            made.append(candidate)
        except CtlError as error:
            if candidate.choice.scheduler == NONE or not drive.exists():
                raise
            left_out(f"without {candidate.name}: {error}")
    if all(candidate.choice.scheduler == NONE for candidate in made):
        raise CtlError(f"the kernel selects no scheduler on {drive.path}: there is nothing to "
                       "compare")
    return made
