# SPDX-License-Identifier: GPL-2.0
"""An emulated SSD and a null_blk device: made, driven, read and removed.

Runs in the lab's guest, as root, in the project's folder.
"""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import json
import mmap
import os
import pathlib
import subprocess
import time

from checks import Failed, check, select_scheduler

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent


def load_tool(name):
    """Import a program in scripts/: calling it saves a start of Python for each command."""
    loader = importlib.machinery.SourceFileLoader(name, str(PROJECT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


TOOL = load_tool("ssdemu")
Refused = TOOL.Error


def in_device_time(way, scale):
    """A direction of fio's report in the time of a device with a time_scale of @scale: the
    runtime and latencies divided by it, the rates multiplied."""
    def shorter(times):
        return {key: shorter(value) if isinstance(value, dict) else
                value if key == "N" else value / scale for key, value in times.items()}

    made = dict(way)
    for key, value in way.items():
        if key == "runtime":
            made[key] = value / scale
        elif key.endswith("_ns"):
            made[key] = shorter(value)
        elif key.startswith(("bw", "iops")) and not key.endswith("_samples"):
            made[key] = value * scale
    return made


class Device:
    """An emulated SSD; the end of a with block removes it."""
    time_scale = 1

    def __init__(self, preset, **keys):
        pairs = [f"{key}={value}" for key, value in keys.items()]
        with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stdout(null):
            TOOL.load(argparse.Namespace(preset=preset, key=pairs, module=None))
        self.name = TOOL.devices()[-1]
        self.time_scale = int((TOOL.read_preset(preset) | keys).get("time_scale", 1))
        self.path = f"/dev/{self.name}"
        while not os.path.exists(self.path):
            time.sleep(0.01)
        self.scheduler("none")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()

    def remove(self):
        (TOOL.PARAMETERS / "remove").write_text(self.name)

    def queue(self, attribute, value):
        file = pathlib.Path(f"/sys/block/{self.name}/queue/{attribute}")
        if attribute == "nr_requests":
            # 6.12 notifies the scheduler before it stores the number: mq-deadline and bfq compute
            # their limits for writes from the number before.
            file.write_text(str(value - 1))
        file.write_text(str(value))

    def scheduler(self, name):
        select_scheduler(pathlib.Path(f"/sys/block/{self.name}/queue/scheduler"), name)

    def stats(self):
        return TOOL.read_stats(TOOL.DEBUGFS / self.name)

    def reset(self):
        (TOOL.DEBUGFS / self.name / "stats").write_text("0")

    def where(self, sector, sectors=1):
        """Location of each page of a span: a list of dictionaries."""
        path = TOOL.DEBUGFS / self.name / "where"
        path.write_text(f"{sector} {sectors}")
        lines = (line.split() for line in path.read_text().splitlines())
        return [dict(zip(f[::2], map(int, f[1::2]), strict=True)) for f in lines]

    def io(self, offset, length, write=False):
        """Do one direct I/O. @offset, @length: in bytes."""
        fd = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        buffer = mmap.mmap(-1, length)
        try:
            done = os.pwritev(fd, [buffer], offset) if write else os.preadv(fd, [buffer], offset)
            check(done == length, f"{length} bytes at {offset}") if done != length else None
        finally:
            buffer.close()
            os.close(fd)

    def one(self, offset, length, write=False):
        """Do one request; return the counters of it alone."""
        self.reset()
        self.io(offset, length, write)
        return self.stats()

    def fio_command(self, **options):
        settings = {"name": "job", "filename": self.path, "direct": 1, "ioengine": "libaio",
                    "bs": "4k", "norandommap": 1}
        settings.update(options)
        return ["fio", "--output-format=json"] + [f"--{k}={v}" for k, v in settings.items()]

    def fio(self, **options):
        """Run fio with one job on the device; return the job's result. What fio says of reads
        and of writes is in the time of the device."""
        done = subprocess.run(self.fio_command(**options), capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise Failed(f"fio: {done.stderr.strip() or done.stdout[-500:]}")
        job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
        return job | {way: in_device_time(job[way], self.time_scale) for way in ("read", "write")}

    def steady(self, warm, count, **options):
        """Load the device with fio; return the differences of its counters, and the seconds of
        its own time, between the completion of @warm requests and that of @count more."""
        command = self.fio_command(time_based=1, runtime=10**6, **options)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
            self.reset()
            before = self._wait_for(warm, load)
            after = self._wait_for(warm + count, load)
            load.terminate()
        seconds = (after["elapsed_ns"] - before["elapsed_ns"]) / 1e9
        numbers = (key for key, value in after.items() if isinstance(value, int))
        return {key: after[key] - before[key] for key in numbers}, seconds

    def _wait_for(self, requests, load):
        while True:
            stats = self.stats()
            if stats["read_count"] + stats["write_count"] >= requests:
                return stats
            if load.poll() is not None:
                raise Failed("fio ended too early")
            time.sleep(0.2)


class NullBlk(Device):
    """A null_blk device with these attributes in its configfs folder."""

    def __init__(self, folder="bench", **attributes):
        subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True)
        self.folder = pathlib.Path("/sys/kernel/config/nullb", folder)
        self.folder.mkdir()
        for key, value in {**attributes, "power": 1}.items():
            (self.folder / key).write_text(str(value))
        index = (self.folder / "index").read_text().strip()
        # Older kernels ignore the name of the folder.
        self.name = next(name for name in (folder, f"nullb{index}")
                         if pathlib.Path("/dev", name).exists())
        self.path = f"/dev/{self.name}"
        self.scheduler("none")

    def remove(self):
        self.folder.rmdir()
