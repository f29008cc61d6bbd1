#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# The pictures of the documents can be read on a light page and on a dark one: no text is cut by the
# picture's edge or by that of its box, and each has a contrast of at least 4.5:1 (WCAG AA) to what
# is behind it; faults made for it are found
# quick: host

import copy
import dataclasses
import functools
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "tests/lib"))

from checks import check  # noqa: E402  (in a folder added above)

try:
    import cairo
    import gi
    gi.require_version("Rsvg", "2.0")
    from gi.repository import Rsvg
except (ImportError, ValueError) as error:
    print(f"{error}: scripts/setup pictures")
    sys.exit(4)

SVG = "{http://www.w3.org/2000/svg}"
PAGES = {"light": (255, 255, 255), "dark": (13, 17, 23)}
LEAST_CONTRAST = 4.5
# Of the pixels behind a text, so many percent may be lines that it touches.
LINES_PERCENT = 5
# Pixels by which edges are antialiased.
ROUND = 0.5


@dataclasses.dataclass
class Box:
    """A rectangle of a picture, in its units."""
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other, axes=(0, 1)):
        """Return True if another box is within this one, in x (axis 0) and y."""
        mine, its = dataclasses.astuple(self), dataclasses.astuple(other)
        return all(mine[axis] - ROUND <= its[axis] and its[axis + 2] <= mine[axis + 2] + ROUND
                   for axis in axes)

    def middle(self):
        """Return the box of no size in the middle."""
        x, y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        return Box(x, y, x, y)


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it, from 1 to 21."""
    def luminance(colour):
        red, green, blue = (value / 255 / 12.92 if value <= 10 else
                            ((value / 255 + 0.055) / 1.055) ** 2.4 for value in colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colour_of(text):
    """Return the colour of #rgb or #rrggbb; another name is an error."""
    digits = text.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    return tuple(bytes.fromhex(digits))


def own_fill(element):
    """Return what an element says about its colour; None: nothing."""
    styled = re.search(r"(?:^|[; ])fill: *([^;]+)", element.get("style", ""))
    return styled[1] if styled else element.get("fill")


class Picture:
    """An SVG, its texts and its boxes."""

    def __init__(self, source):
        self.root = xml.fromstring(source)
        self.parents = {child: parent for parent in self.root.iter() for child in parent}
        _, _, self.width, self.height = map(float, self.root.get("viewBox").split())
        # In its own units, whatever those of its size are.
        self.root.set("width", f"{self.width}")
        self.root.set("height", f"{self.height}")
        self.texts = [each for each in self.root.iter() if self.is_text(each)]
        self.rects = [each for each in self.root.iter(SVG + "rect") if each.get("stroke")]
        for number, element in enumerate((*self.texts, *self.rects, *self.root.iter(SVG + "svg"))):
            element.set("id", f"measured-{number}")
        # What is hidden at first is shown later.
        shown = copy.deepcopy(self.root)
        for element in shown.iter():
            element.attrib.pop("visibility", None)
        self.shown = handle_of(shown)

    @staticmethod
    def is_text(element):
        """Return True for a text; matplotlib can have groups of paths instead."""
        return element.tag == SVG + "text" or (
            element.tag == SVG + "g" and re.match(r"text_\d+$", element.get("id", ""))
            and element.find(f".//{SVG}text") is None)

    def viewport(self):
        """Return the picture's own size."""
        found = Rsvg.Rectangle()
        found.x, found.y, found.width, found.height = 0, 0, self.width, self.height
        return found

    def box(self, element):
        """Return where an element is, whatever cuts it; of a text where its ink is."""
        _, ink, _ = self.shown.get_geometry_for_layer(f"#{element.get('id')}", self.viewport())
        return Box(ink.x, ink.y, ink.x + ink.width, ink.y + ink.height)

    def above(self, element):
        """Return the elements that contain an element, the nearest first."""
        found = []
        while element in self.parents:
            element = self.parents[element]
            found.append(element)
        return found

    def screen(self, text):
        """Return the box of the inner picture, which is not scaled, that shows a text; None."""
        for element in self.above(text)[:-1]:
            if element.tag == SVG + "svg":
                x, y, width, height = (float(element.get(name))
                                       for name in ("x", "y", "width", "height"))
                return Box(x, y, x + width, y + height)
        return None

    def words(self, text):
        """Return what a text says, or its name."""
        return "".join(text.itertext()).strip()[:60] or text.get("id")

    def fill(self, text):
        """Return a text's colour."""
        found = (own_fill(each) for each in (*text.iter(), text, *self.above(text))
                 if each.tag != SVG + "defs")
        return colour_of(next(filter(None, found), "#000"))

    @functools.cached_property
    def without_texts(self):
        """Return the picture without its texts."""
        root = copy.deepcopy(self.root)
        ids = {text.get("id") for text in self.texts}
        for parent in list(root.iter()):
            for child in [child for child in parent if child.get("id") in ids]:
                parent.remove(child)
        return handle_of(root)

    def behind(self, page):
        """Return the pixels behind the texts on a page of this colour, and the length of a row."""
        surface = cairo.ImageSurface(cairo.FORMAT_RGB24, int(self.width) + 1,
                                     int(self.height) + 1)
        context = cairo.Context(surface)
        context.set_source_rgb(*(value / 255 for value in page))
        context.paint()
        self.without_texts.render_document(context, self.viewport())
        surface.flush()
        return bytes(surface.get_data()), surface.get_stride()

    def hard_to_see(self, text, box, rects, pages):
        """Return what is wrong with a text that is not cut."""
        words = self.words(text)
        inner = [rect for rect in rects if rect.holds(box.middle())]
        if inner and not min(inner, key=lambda rect: rect.right - rect.left).holds(box, (0,)):
            yield f"wider than its box: {words}"
        for name, (pixels, stride) in pages.items():
            ratio = lowest(self.fill(text), box, pixels, stride)
            if ratio < LEAST_CONTRAST:
                yield f"a contrast of {ratio:.1f} on a {name} page: {words}"

    def faults(self):
        """Return what is wrong with the texts."""
        found = []
        pages = {name: self.behind(page) for name, page in PAGES.items()}
        rects = [self.box(rect) for rect in self.rects]
        for text in self.texts:
            box, screen = self.box(text), self.screen(text)
            edges = screen or Box(0, 0, self.width, self.height)
            scrolled = screen and (box.bottom < screen.top or box.top > screen.bottom)
            if not edges.holds(box, (0,) if scrolled else (0, 1)):
                found.append(f"cut by the edge: {self.words(text)}")
            elif not scrolled:
                found += self.hard_to_see(text, box, rects, pages)
        return found


def handle_of(root):
    """Return what renders a tree of SVG."""
    return Rsvg.Handle.new_from_data(xml.tostring(root))


def lowest(fill, box, pixels, stride):
    """Return the lowest contrast of a colour to what is behind a box, but for lines in it."""
    ratios, cached = [], {}
    for y in range(int(box.top), int(box.bottom) + 1):
        row = y * stride
        for at in range(row + 4 * int(box.left), row + 4 * int(box.right) + 1, 4):
            colour = pixels[at:at + 3]
            if colour not in cached:
                # Little-endian: blue comes first.
                cached[colour] = contrast(fill, colour[::-1])
            ratios.append(cached[colour])
    ratios.sort()
    return ratios[len(ratios) * LINES_PERCENT // 100]


def made(inner, background='<rect width="200" height="100" fill="#fff"/>'):
    """Return a picture made for a fault."""
    return Picture('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100" width="200" '
                   f'height="100" font-family="sans-serif" font-size="13">{background}{inner}'
                   "</svg>")


INNER = '<svg x="20" y="20" width="80" height="20"><text y="{}">{}</text></svg>'
FAULTS = {
    '<text x="10" y="40">all of it</text>': [],
    '<text x="150" y="40">not all of it</text>': ["cut by the edge: not all of it"],
    '<text x="50" y="40" text-anchor="end">not all of it</text>': [
        "cut by the edge: not all of it"],
    '<text x="10" y="6">above</text>': ["cut by the edge: above"],
    '<text x="10" y="40" visibility="hidden">a line that is shown later and long</text>': [
        "cut by the edge: a line that is shown later and long"],
    INNER.format(14, "all of it"): [], INNER.format(-20, "scrolled off"): [],
    INNER.format(-20, "scrolled, and too long"): ["cut by the edge: scrolled, and too long"],
    INNER.format(14, "a line of a terminal"): ["cut by the edge: a line of a terminal"],
    '<rect x="60" y="20" width="40" height="30" fill="#fff" stroke="#333"/>'
    '<text x="80" y="40" text-anchor="middle">not its box</text>': [
        "wider than its box: not its box"],
    '<text x="10" y="40" fill="#999">grey</text>': [
        "a contrast of 2.8 on a light page: grey", "a contrast of 2.8 on a dark page: grey"],
    '<g style="fill: #999"><text x="10" y="40" style="fill: #333">dark</text></g>': [],
}


def main():
    """Check the faults made for it, and each picture."""
    for inner, expected in FAULTS.items():
        found = made(inner).faults()
        check(found == expected, f"of {inner}: {found or 'nothing'}")
    found = made('<text x="10" y="40">no page of its own</text>', "").faults()
    check(found == ["a contrast of 1.1 on a dark page: no page of its own"], f"{found}")
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--deduplicate",
                             "*.svg"], cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True)
    faults = 0
    for name in filter(lambda name: (PROJECT / name).exists(), listed.stdout.splitlines()):
        picture = Picture((PROJECT / name).read_text())
        found = picture.faults()
        print(f"{name}: {len(picture.texts)} texts, {len(found)} faults")
        for fault in found:
            print(f"      {fault}")
        faults += len(found)
    check(not faults, "no text of a picture is cut or hard to see")


if __name__ == "__main__":
    main()
