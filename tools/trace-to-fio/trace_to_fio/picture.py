# SPDX-License-Identifier: GPL-2.0
"""The summary of a trace as a picture."""
import io

import numpy

from ssd_common import files
from ssd_common.figures import drawing
from ssd_common.packages import need

from trace_to_fio import TraceError
from trace_to_fio.summary import PLACES, S, STEPS, WAYS, Summary, Way, size_of

FORMS = ("svg", "png", "pdf")
# Of reads and writes: red, green and blue.
COLOURS = ((0.12, 0.47, 0.71), (0.9, 0.4, 0.0))


def check(path: str):
    """Raise an error if a picture cannot be drawn to a file of this name."""
    if path.rpartition(".")[2].lower() not in FORMS:
        raise TraceError(f"--picture: {path}: its name has to end in .{', .'.join(FORMS)}")
    files.check_named(path)
    need("matplotlib")


def draw(found: Summary, title: str, path: str):
    """Write the picture: rate and addresses over time, sizes of the requests."""
    pyplot = drawing("trace-to-fio")
    figure, axes = pyplot.subplots(3, 1, figsize=(9, 10), layout="constrained")
    figure.suptitle(title)
    rate(axes[0], found)
    sizes(axes[1], found)
    addresses(axes[2], found)
    when = {"Date": None} if path.lower().endswith("svg") else \
        {"CreationDate": None} if path.lower().endswith("pdf") else {}
    image = io.BytesIO()
    figure.savefig(image, format=path.rpartition(".")[2].lower(), dpi=120, metadata=when)
    pyplot.close(figure)
    files.write_named(path, image.getvalue())


def rate(axis, found: Summary):
    """Draw requests a second over time."""
    seconds = found.ns / S or 1
    times = (numpy.arange(STEPS) + 0.5) * seconds / STEPS
    for way, name, colour in zip(found.ways, WAYS, COLOURS, strict=True):
        axis.plot(times, way.rate * STEPS / seconds, color=colour, label=f"{name}s")
    axis.set(xlabel="s", ylabel="requests/s", xlim=(0, seconds), ylim=(0, None))
    axis.legend(loc="upper right")


def curve(way: Way) -> tuple[list[float], list[float]]:
    """Return sizes in KiB, and how many percent of the requests are not larger; at the first one
    the curve rises from 0."""
    steps = numpy.flatnonzero(way.sizes)
    kib = [min(size_of(int(step)), way.largest) / 1024 for step in steps]
    part = 100 * numpy.cumsum(way.sizes[steps]) / way.requests
    return [kib[0], *kib], [0, *part.tolist()]


def sizes(axis, found: Summary):
    """Draw the part of the requests that are not larger than a size."""
    for way, name, colour, line in zip(found.ways, WAYS, COLOURS, "-:", strict=True):
        if way.requests:
            axis.step(*curve(way), where="post", color=colour, linestyle=line,
                      label=f"{name}s")
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set(xlabel="KiB", ylabel="% of the requests", ylim=(0, 101))
    axis.legend(loc="lower right")


def addresses(axis, found: Summary):
    """Draw which addresses are read and written over time: the more, the darker."""
    seconds, gib = found.ns / S or 1, found.total / 2**30 or 1
    for way, colour in zip(found.ways, COLOURS, strict=True):
        image = numpy.empty((PLACES, STEPS, 4))
        image[..., :3] = colour
        image[..., 3] = 0.7 * numpy.sqrt(way.map.T / max(1, way.map.max()))
        axis.imshow(image, extent=(0, seconds, 0, gib), origin="lower", aspect="auto")
    axis.set(xlabel="s", ylabel="GiB")
