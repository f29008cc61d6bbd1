# SPDX-License-Identifier: GPL-2.0
"""Random cases that `ssdctl advise` is judged on: drives as probe_draw.py draws them, full, and
loads as job files of fio, from the distribution that this file states.

{value: weight} is a choice; a range is spread evenly by its logarithm.
"""
import dataclasses

import probe_draw

WORKLOADS = 5


@dataclasses.dataclass(frozen=True)
class Case:
    """A drive and a load on it. @keys: of the emulator, in place of those of the @preset, @job: the
    text of fio's job file, @seed: of the drive, @number: of the load."""
    seed: int
    number: int
    preset: str
    keys: dict[str, int | str]
    job: str

    @property
    def name(self) -> str:
        """Its name in tables and files."""
        return f"{self.seed}-{self.number}"


def way_of(dice: probe_draw.Dice) -> dict:
    """Return direction and pattern."""
    way = dice.one_of({"randread": 30, "read": 15, "randwrite": 20, "write": 15, "randrw": 20})
    return {"rw": way} | ({"rwmixread": dice.one_of({30: 1, 50: 1, 70: 2, 90: 1})}
                          if way == "randrw" else {})


def depth_of(dice: probe_draw.Dice) -> dict:
    """Return how many I/Os are outstanding: of threads that wait in each, or asynchronous ones."""
    if dice.happens(0.4):
        return {"ioengine": "psync", "numjobs": dice.one_of({1: 40, 2: 20, 4: 20, 8: 20})}
    return {"ioengine": "libaio", "iodepth": dice.one_of({2: 15, 4: 20, 8: 20, 16: 20, 32: 15,
                                                          64: 10})}


def place_of(dice: probe_draw.Dice) -> dict:
    """Return the part of the drive, in percent."""
    low = dice.one_of({0: 60, dice.random.randint(1, 60): 40})
    return {"offset": f"{low}%", "size": f"{dice.random.randint(10, 100 - low)}%"}


def block_of(dice: probe_draw.Dice, way: str) -> str:
    """Return the size of an I/O. The kernel makes large ones of a stream."""
    return dice.one_of({"64k": 50, "128k": 50} if way in ("read", "write") else
                       {"4k": 55, "8k": 15, "16k": 20, "64k": 10})


def job(dice: probe_draw.Dice, free: bool) -> dict:
    """Return the options of a job. @free: nothing limits its rate."""
    way = way_of(dice)
    made = {"bs": block_of(dice, way["rw"]), **way, **depth_of(dice), **place_of(dice)}
    sync = made["ioengine"] == "psync"
    if sync and made["rw"] in ("write", "randwrite") and dice.happens(0.4):
        made |= {dice.one_of({"fsync": 1, "fdatasync": 1}): dice.one_of({1: 50, 8: 25, 32: 25})}
    # A rate is that of each thread.
    if sync and not free and dice.happens(0.5):
        made |= {"rate_iops": dice.whole(20, 500)} if dice.happens(0.5) else {
            "thinktime": f"{dice.whole(1, 50)}ms"}
    return made


def job_file(dice: probe_draw.Dice) -> str:
    """Return the text of a job file."""
    lines = ["[global]", "direct=1", "thread=1", "norandommap=1"]
    for number in range(dice.one_of({1: 25, 2: 50, 3: 25})):
        lines += [f"[job{number}]", *(f"{key}={value}" for key, value in
                                      job(dice, free=not number).items())]
    return "\n".join(lines) + "\n"


def cases(seed: int) -> list[Case]:
    """Return the cases of a drive."""
    drive = probe_draw.draw(seed)
    keys = drive.keys | {"fill": 100}
    return [Case(seed, number, drive.preset, keys,
                 job_file(probe_draw.Dice(f"advise {seed} {number}")))
            for number in range(1, WORKLOADS + 1)]
