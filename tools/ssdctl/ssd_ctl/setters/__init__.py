# SPDX-License-Identifier: GPL-2.0
"""What else sets the scheduler of a drive, or the settings that go with it: rules of udev, and what
sets them when the machine boots or later. Only files are read."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Setter:
    """A line that sets a file below queue/. @place: FILE:LINE; @value: "" if it is not known;
    @sure: false if it may do so, or for this drive, only under a condition that the line does not
    tell; @on_change: it may do so in a change event of udev; @by_action: what it does may depend on
    the action, so that a change event does not show what it does in others."""
    place: str
    file: str
    value: str = ""
    sure: bool = True
    when: str = "afterwards"
    on_change: bool = False
    by_action: bool = False

    def __str__(self) -> str:
        return (f"{self.place} {'sets' if self.sure else 'may set'} "
                f"{self.file.removeprefix('iosched/')} to {self.value or 'another value'} "
                f"{self.when}")
