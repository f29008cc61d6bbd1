#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# PAI sets the queue's limits from its parameters, never looser than they were, and
# however it is deselected the limits are the old ones again
# timeout: 900

import mmap
import os
import pathlib
import subprocess
import threading
import time

import uring
from checks import RELEASE, check, modprobe, wait_for
from fio_jobs import load, removed_under_load
from iosched import Disk, scsi_debug_disks, scsi_disks
from ssd import Device, NullBlk

# SSD-A of the paper: requests are split at 240 KB, which is 480 sectors.
SSD_A = {"clustered_page_kb": 16, "read_buffer_kb": 256, "write_buffer_kb": 255, "split": "pasa"}
# Attributes of a queue that depend on the scheduler.
OF_SCHEDULER = ("scheduler", "nr_requests", "async_depth")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# A flag of pwritev2() that Python lacks.
RWF_ATOMIC = 0x40
LOAD = {"rw": "randrw", "bs": "4k-512k", "iodepth": 4}


def state(disk):
    """All attributes of a queue, except those of the scheduler."""
    found = {}
    for path in disk.queue.iterdir():
        if path.is_file() and path.name not in OF_SCHEDULER:
            try:
                found[path.name] = path.read_text()
            except OSError as error:
                found[path.name] = error.errno
    return found


def limits(disk):
    """(max_sectors_kb, chunk_sectors)."""
    return tuple(int((disk.queue / name).read_text())
                 for name in ("max_sectors_kb", "chunk_sectors"))


def within_2s(condition):
    """Return true if @condition() holds within 2 s: a worker applies the limits."""
    for _ in range(100):
        if condition():
            return True
        time.sleep(0.02)
    return False


def become(disk, kb, sectors, why):
    """Check that the limits become these."""
    good = within_2s(lambda: limits(disk) == (kb, sectors))
    check(good, f"{why}: max_sectors_kb and chunk_sectors are {limits(disk)}, expected "
          f"{(kb, sectors)}")


def restored(disk, before, why):
    """Check that the queue's attributes return to @before."""
    good = within_2s(lambda: state(disk) == before)
    now = state(disk)
    differences = {name: (before.get(name), now.get(name)) for name in before | now
                   if before.get(name) != now.get(name)}
    check(good, f"{why}: the queue is as before {differences if not good else ''}")


def pai(disk, **tunables):
    """Select PAI and set its tunables."""
    disk.select("pai")
    disk.set(**tunables)


def parameters(disk, before):
    """The limits follow from the parameters."""
    pai(disk)
    time.sleep(0.2)
    check(state(disk) == before, "without split the limits stay")
    pai(disk, **SSD_A)
    become(disk, 240, 480, "pasa")
    pai(disk, split="pas")
    become(disk, 255, 0, "pas: the smaller buffer")
    pai(disk, split="pasa", align="block", clustered_block_kb=5120)
    become(disk, 240, 10240, "pasa, aligned to blocks of 5120 KB")
    pai(disk, align="page", clustered_page_kb=128, read_buffer_kb=64, write_buffer_kb=0)
    become(disk, 128, 256, "never less than a clustered page")
    pai(disk, clustered_page_kb=4, read_buffer_kb=3072, write_buffer_kb=112)
    become(disk, 112, 224, "buffers of 3072 and 112 KB")
    pai(disk, clustered_page_kb=48, read_buffer_kb=0, write_buffer_kb=0)
    become(disk, 480, 960, "no buffers: the whole pages in the driver's limit")
    pai(disk, clustered_page_kb=2, read_buffer_kb=254)
    become(disk, 254, 0, "no boundary within 4 KB")
    pai(disk, clustered_page_kb=16, read_buffer_kb=1024, write_buffer_kb=1024, split="pas")
    become(disk, 512, 0, "buffers larger than the driver's limit")
    pai(disk, split="none")
    restored(disk, before, "split=none")


def deselected(disk, before):
    """The limits are restored by each way to deselect PAI."""
    for scheduler in ("none", "mq-deadline"):
        pai(disk, **SSD_A)
        become(disk, 240, 480, "pasa again")
        disk.select(scheduler)
        restored(disk, before, f"{scheduler} was selected")
    with load([disk], {"load": {"filename": disk.path}}, **LOAD):
        for _ in range(6):
            pai(disk, **SSD_A)
            disk.select("none")
    restored(disk, before, "several times under load")
    for _ in range(3):
        pai(disk, **SSD_A)
        become(disk, 240, 480, "before the module is unloaded")
        disk.select("none")
        modprobe("-r", "pai-iosched")
        check(state(disk) == before, "the module leaves no limits behind")


def limits_of_user(disk):
    """A limit that the user sets meanwhile stays."""
    pai(disk, **SSD_A)
    become(disk, 240, 480, "pasa")
    (disk.queue / "max_sectors_kb").write_text("100")
    become(disk, 100, 480, "the user's limit")
    disk.select("none")
    become(disk, 100, 0, "the user's limit, after PAI")
    pai(disk, **SSD_A)
    become(disk, 96, 192, "the whole pages in the user's limit")
    disk.select("none")
    become(disk, 100, 0, "the user's limit, after PAI again")
    (disk.queue / "max_sectors_kb").write_text("512")


def write_read_ahead(disk, count, wrong):
    """Write @count values to read_ahead_kb and read each back four times. Add (value written, value
    read) to @wrong if they differ. All values are below 128: a commit of the kernel would raise
    them to that."""
    file = disk.queue / "read_ahead_kb"
    for number in range(count):
        kb = str(32 + number % 23 * 4)
        file.write_text(kb)
        for _ in range(4):
            found = file.read_text().strip()
            if found != kb:
                wrong.append((kb, found))
            time.sleep(0.005)


def keep_read_ahead(disk, count):
    """The read-ahead of the user stays while split changes all the time."""
    wrong, changes = [], 0
    pai(disk, **SSD_A)
    writer = threading.Thread(target=write_read_ahead, args=(disk, count, wrong))
    writer.start()
    while writer.is_alive():
        pai(disk, split="pasa" if changes % 2 else "none")
        changes += 1
    writer.join()
    check(not wrong,
          f"split changed {changes} times during {count} writes to read_ahead_kb {wrong}")
    disk.select("none")
    become(disk, 512, 0, "none")


def throttle(disk):
    """Change the limits while blk-throttle's timer runs. On 6.1 both take the queue's lock, the
    timer in a softirq: lockdep reports a lock of ours that does not disable it."""
    group = CGROUPS / "throttled"
    (CGROUPS / "cgroup.subtree_control").write_text("+io")
    group.mkdir()
    number = (disk.queue.parent / "dev").read_text().strip()
    (group / "io.max").write_text(f"{number} wiops=50")
    pai(disk, **SSD_A)
    command = (f"echo $$ >{group}/cgroup.procs; "
               f"exec dd if=/dev/zero of={disk.path} bs=4k count=100 oflag=direct status=none")
    with subprocess.Popen(["sh", "-c", command]) as writer:
        while writer.poll() is None:
            pai(disk, split="none")
            pai(disk, split="pasa")
            time.sleep(0.05)
    done = (group / "io.stat").read_text()
    check(writer.returncode == 0 and "wios=100 " in done, f"100 writes in the cgroup: {done}")
    disk.select("none")

    def removed():
        try:
            group.rmdir()
        except OSError:
            return False
        return True
    wait_for(removed, "the end of the cgroup", 30)


def removed_device(device):
    """The device is removed under load; a new one begins with limits of its own."""
    def take_out(_):
        device.remove()
        modprobe("-r", "ssdemu")

    for _ in range(3):
        disk = Disk(device.name, "pai", **SSD_A)
        removed_under_load([disk], take_out, numjobs=1, **LOAD)
        device = Device("small", max_request_kb=512)
        disk = Disk(device.name, "none")
        check(limits(disk) == (512, 0), "a new device has no limits of PAI's")
    device.remove()


def emulated_ssd():
    """An emulated SSD whose driver allows 512 KB."""
    device = Device("small", max_request_kb=512)
    disk = Disk(device.name, "none")
    (disk.queue / "read_ahead_kb").write_text("64")
    before = state(disk)
    parameters(disk, before)
    deselected(disk, before)
    limits_of_user(disk)
    keep_read_ahead(disk, 300)
    throttle(disk)
    removed_device(device)


def found_again():
    """The SCSI disk, under none, once it is there."""
    wait_for(scsi_debug_disks, "the SCSI disk", 30)
    return Disk(scsi_debug_disks()[0], "none")


def scsi_disk():
    """The queue of a SCSI disk stays when its driver leaves the disk and takes it again."""
    name, = scsi_disks(1, dev_size_mb=64, max_queue=16)
    disk = Disk(name, "none")
    address = (disk.queue.parent / "device").resolve().name
    driver = pathlib.Path("/sys/bus/scsi/drivers/sd")
    before = state(disk)
    for _ in range(2):
        pai(disk, **SSD_A)
        become(disk, 240, 480, f"pasa on {disk.name}")
        (driver / "unbind").write_text(address)
        time.sleep(0.2)
        (driver / "bind").write_text(address)
        disk = found_again()
        restored(disk, before, "the disk was unbound")
    pai(disk, **SSD_A)
    become(disk, 240, 480, f"pasa on {disk.name}")
    modprobe("-r", "sd_mod")
    modprobe("sd_mod")
    restored(found_again(), before, "sd_mod was unloaded")
    modprobe("-r", "scsi_debug")


def atomic():
    """A boundary that would cut an atomic write is not set."""
    unit = 32 << 10
    name, = scsi_disks(1, dev_size_mb=64, atomic_wr=1, atomic_wr_max_length=unit // 512)
    disk = Disk(name, "none")
    most = int((disk.queue / "atomic_write_unit_max_bytes").read_text())
    check(most == unit, f"atomic writes of up to {most} bytes")
    fd = os.open(disk.path, os.O_WRONLY | os.O_DIRECT)
    with mmap.mmap(-1, unit) as buffer:
        for write_buffer, meant in ((255, (240, 0)), (256, (256, 512))):
            pai(disk, **SSD_A | {"write_buffer_kb": write_buffer})
            become(disk, *meant, f"atomic writes, a buffer of {write_buffer} KB")
            written = os.pwritev(fd, [buffer], 7 * unit, RWF_ATOMIC)
            check(written == unit, "a write across a multiple of 240 KB is atomic")
    os.close(fd)
    disk.select("none")
    modprobe("-r", "scsi_debug")


def refused(fd, buffer, offset):
    """Read without waiting; return true if the kernel refuses that."""
    try:
        os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    return False


def must_not_wait():
    """Direct I/O that must not wait is refused, each time, if it crosses a boundary, however small;
    without the flag, and by io_uring, it is split."""
    size, boundary = 64 << 10, 240 << 10
    buffer, ring = mmap.mmap(-1, size), uring.Ring(1)
    with Device("small", max_request_kb=512) as device:
        disk = Disk(device.name, "none")
        pai(disk, **SSD_A)
        become(disk, 240, 480, "must not wait")
        fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
        for offset in range(0, 4 * boundary, size):
            crosses = offset // boundary != (offset + size - 1) // boundary
            found = [refused(fd, buffer, offset) for _ in range(2)]
            check(found == [crosses] * 2, f"a read of 64 KB at {offset >> 10} KB: refused {found}")
            ring.read(fd, uring.address(buffer), size, offset, 0)
            ring.submit(1)
            ends = [os.preadv(fd, [buffer], offset), *(result for _, result in ring.reap())]
            check(ends == [size] * 2, f"without the flag, and by io_uring: {ends}")
        os.close(fd)
        disk.select("none")
    ring.close()


def zones():
    """A boundary that is the size of a zone stays."""
    with NullBlk("zones", size=256, zoned=1, zone_size=64, max_sectors=1024) as device:
        disk = Disk(device.name, "none")
        before = state(disk)
        pai(disk, **SSD_A)
        become(disk, 240, 131072, "zones of 64 MB")
        disk.select("none")
        restored(disk, before, "a zoned device")


def ended(ring, number):
    """Wait up to 10 s for @number requests of a polled ring; return their results."""
    results, deadline = [], time.monotonic() + 10
    while len(results) < number and time.monotonic() < deadline:
        ring.submit()
        results += [result for _, result in ring.reap()]
    return results


def unreaped(disk, own):
    """PAI changes the limits and other reads complete while polled requests are not reaped. @own:
    the limits without PAI."""
    for split, meant in (("none", own), ("pasa", (240, 480))):
        disk.set(split=split)
        become(disk, *meant, f"split={split}, polled requests are not reaped")
        done = subprocess.run(["timeout", "10", "dd", f"if={disk.path}", "of=/dev/null", "bs=4k",
                               "count=10", "iflag=direct", "status=none"], check=False)
        check(not done.returncode, "other reads end")


def polled():
    """Polled I/O larger than the limits ends. Before 6.12 the kernel never ends it, so PAI does
    not change the limits of a device with queues for polling."""
    size, number = 512 << 10, 4
    with NullBlk("polled", submit_queues=2, poll_queues=1, max_sectors=1024) as device:
        disk = Disk(device.name, "none")
        before, own = state(disk), limits(disk)
        pai(disk, **SSD_A)
        if RELEASE >= (6, 12):
            become(disk, 240, 480, "queues for polling")
        else:
            time.sleep(0.5)
            check(state(disk) == before, "queues for polling: the limits stay")
        buffer = mmap.mmap(-1, size)
        ring = uring.Ring(number, uring.SETUP_IOPOLL)
        fd = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
        for index in range(number):
            ring.read(fd, uring.address(buffer), size, index * size, index)
        ring.submit_only()
        if RELEASE >= (6, 12):
            unreaped(disk, own)
        results = ended(ring, number)
        check(results == [size] * number, f"polled reads of {size >> 10} KB: {results}")
        os.close(fd)
        ring.close()
        disk.select("none")
        restored(disk, before, "a device with queues for polling")


emulated_ssd()
scsi_disk()
must_not_wait()
polled()
# Older kernels refuse PAI on a zoned device.
if RELEASE >= (6, 12):
    zones()
    atomic()
