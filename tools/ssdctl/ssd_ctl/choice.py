# SPDX-License-Identifier: GPL-2.0
"""A choice: a scheduler, its tunables, and settings of the queue that go with it; as words of a
command and as JSON."""
import dataclasses
import mmap
import re

from ssd_common.settings import echo_lines
from ssd_ctl import CtlError

# Settings of the queue that are part of a choice. The kernel takes some values silently and makes
# others of them, so these are refused: {name: (the least, the greatest, a divisor)}, None: any.
QUEUE = {"nr_requests": (4, None, 1), "wbt_lat_usec": (-1, None, 1),
         "read_ahead_kb": (0, None, mmap.PAGESIZE // 1024),
         "max_sectors_kb": (mmap.PAGESIZE // 1024, None, 1), "nomerges": (0, 2, 1),
         "rq_affinity": (0, 2, 1), "add_random": (0, 1, 1)}
NUMBER = re.compile(r"-?\d{1,9}")
SCHEDULER_NAME = re.compile(r"[a-z][a-z0-9_-]*")
TUNABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")
VALUE = re.compile(r"[A-Za-z0-9_+.-]+")
# The kernel takes this name, too, and shows the other one.
ALIASES = {"deadline": "mq-deadline"}
# Schedulers of kernels before 5.0 that manuals still name.
FORMER = {"noop": "noop is called none since Linux 5.0",
          "cfq": "cfq is gone since Linux 5.0: bfq has taken its place"}


@dataclasses.dataclass
class Choice:
    """A scheduler with settings. @tunables: files in queue/iosched, @queue: files in queue."""
    scheduler: str
    tunables: dict[str, int | str] = dataclasses.field(default_factory=dict)
    queue: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        """Refuse what could mean something else in a shell or in a rule."""
        check(SCHEDULER_NAME, self.scheduler, "name of a scheduler")
        for name, value in self.settings().items():
            check(TUNABLE_NAME, name.removeprefix("iosched/"), "name of a tunable")
            check(VALUE, str(value), f"value of {name.removeprefix('iosched/')}")

    @classmethod
    def recommended(cls, scheduler: str, tunables: dict[str, int | str] | None = None):
        """Return a scheduler with tunables and with the queue settings that it needs."""
        check(SCHEDULER_NAME, scheduler, "name of a scheduler")
        lines = (line.split() for line in echo_lines("X", scheduler, {}))
        needed = {file.rpartition("/")[2]: value for _, value, _, file in lines}
        del needed["scheduler"]
        return cls(scheduler, dict(tunables or {}), needed)

    def settings(self) -> dict[str, str]:
        """Return {file below queue/: value} of all but the scheduler, in the order of writing:
        nr_requests changes async_depth of mq-deadline."""
        found = {name: str(value) for name, value in self.queue.items()}
        return found | {f"iosched/{name}": str(value) for name, value in self.tunables.items()}

    def as_words(self) -> list[str]:
        """Return the arguments of ssdctl apply that mean it."""
        return [self.scheduler, *(f"{name}={value}"
                                  for name, value in (self.tunables | self.queue).items())]

    def as_json(self) -> dict:
        """Return it for json.dump()."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, made: dict):
        """Return a choice that as_json() has made."""
        try:
            return cls(made["scheduler"], dict(made.get("tunables", {})),
                       dict(made.get("queue", {})))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CtlError("the file holds no choice of a scheduler") from None

    def __str__(self) -> str:
        return " ".join(self.as_words())


def check(pattern: re.Pattern, text: str, what: str):
    """Raise CtlError unless @text has the form of @pattern."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise CtlError(f"{text!r} is no {what}")


def check_queue(name: str, value: str):
    """Raise CtlError unless a setting of the queue takes a value."""
    least, most, step = QUEUE[name]
    number = int(value) if NUMBER.fullmatch(value) else None
    if number is None or number < least or number % step or most is not None and number > most:
        takes = f"from {least} to {most}" if most is not None else f"from {least} on" + (
            f", a multiple of {step}" if step > 1 else "")
        raise CtlError(f"{name} does not take {value}: it takes numbers {takes}")


def canonical(scheduler: str) -> str:
    """Return the name by which the kernel shows a scheduler."""
    return ALIASES.get(scheduler, scheduler)


def parse(words: list[str]) -> Choice:
    """Return the choice that words such as bp block_size_kb=4096 mean, with what goes with it."""
    if words[0] in FORMER:
        raise CtlError(FORMER[words[0]])
    choice = Choice.recommended(canonical(words[0]))
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise CtlError(f"{word} is not NAME=VALUE")
        if name in QUEUE:
            check_queue(name, value)
        (choice.queue if name in QUEUE else choice.tunables)[name] = value
    return Choice(choice.scheduler, choice.tunables, choice.queue)
