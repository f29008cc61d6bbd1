# SPDX-License-Identifier: GPL-2.0
"""A person at a guest's terminal: types commands and records what the terminal shows, as an
asciicast (version 2), and draws it as SVG and as text."""
import codecs
import html
import json
import os
import re
import select
import time

from labvm import LabError

COLUMNS, ROWS = 132, 30
PROMPT = re.compile(r"root@lab:[^\n]*# $")
# What a terminal is told that is neither text nor the end of a line.
CONTROL = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")
KEY_SECONDS = 0.03
# A wait longer than so many seconds is recorded as that long.
LONGEST_WAIT = 1.0
# After a command's output, for the reader.
LOOK_SECONDS = 1.2
# After the last one, before the picture begins again.
LAST_SECONDS = 3


class Terminal:
    """The other end of a terminal, as of a socket, and the recording so far: [(seconds, text)]."""

    def __init__(self):
        self.end = None
        self.events = []
        self.now, self.last = 0.0, None
        self.recording = False
        self.tail = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def connect(self, end):
        """Use a socket; what comes is not recorded until record()."""
        self.end, self.recording, self.tail = end, False, ""

    def record(self):
        """Record from now on; the terminal shows its prompt."""
        self.recording, self.last = True, time.monotonic()
        self.events.append((round(self.now, 3), self.tail.rsplit("\n", 1)[-1]))

    def wait(self, seconds):
        """Let time pass for the reader."""
        self.now += seconds

    def take(self, seconds):
        """Take what the terminal shows within so many seconds; return False if it is nothing."""
        if not select.select([self.end], [], [], seconds)[0]:
            return False
        data = self.end.recv(65536)
        if not data:
            raise LabError("the guest's terminal was lost")
        text = self.decoder.decode(data)
        self.tail = (self.tail + CONTROL.sub("", text))[-2000:]
        if self.recording and text:
            now = time.monotonic()
            self.now += min(now - self.last, LONGEST_WAIT)
            self.last = now
            self.events.append((round(self.now, 3), text))
        return True

    def expect(self, pattern, seconds):
        """Wait until the text shown since the last key matches."""
        until = time.monotonic() + seconds
        while not re.search(pattern, self.tail.replace("\r", "")):
            if time.monotonic() > until:
                raise LabError(f"the terminal does not show {pattern}: {self.tail[-500:]}")
            self.take(1)

    def type(self, text):
        """Type a line, as a person does."""
        for key in text:
            self.end.sendall(key.encode())
            # Its echo.
            self.take(5)
            self.now += KEY_SECONDS
            self.last = time.monotonic()
        self.tail = ""
        self.end.sendall(b"\r")

    def enter(self, command, answers=(), seconds=3600):
        """Run a command to its end; @answers: (pattern of a question, what is typed)."""
        self.type(command)
        for question, answer in answers:
            self.expect(question, seconds)
            self.wait(LOOK_SECONDS)
            self.type(answer)
        self.expect(PROMPT, seconds)
        self.wait(LOOK_SECONDS)


def cast(events, title):
    """Return events as an asciicast."""
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": title,
            "env": {"SHELL": "/bin/bash", "TERM": "xterm-256color"}}
    return "\n".join([json.dumps(head), *(json.dumps([at, "o", text])
                                          for at, text in events)]) + "\n"


class Picture:
    """Lines of a recording, each with its versions: [(from, text)]. Nothing scrolls off."""

    # A line that changes more often is drawn with its last change in so many seconds.
    STEP = 0.4

    def __init__(self, events):
        # Only this needs it: a Debian package of the group pictures.
        import pyte
        screen = pyte.Screen(COLUMNS, 3000)
        stream = pyte.Stream(screen)
        self.lines = {}
        self.scrolls = [(0.0, 0)]
        self.end = events[-1][0] + LAST_SECONDS
        for at, text in events:
            screen.dirty.clear()
            stream.feed(text)
            for row in screen.dirty:
                if row <= screen.cursor.y or row in self.lines:
                    cells = screen.buffer[row]
                    self.change(row, at, "".join(cells[column].data
                                                 for column in range(COLUMNS)).rstrip())
            top = max(0, screen.cursor.y + 1 - ROWS)
            if top != self.scrolls[-1][1]:
                self.scrolls.append((at, top))

    def change(self, row, at, text):
        """Note that a line shows @text from then on."""
        versions = self.lines.setdefault(row, [])
        if versions and versions[-1][1] == text:
            return
        if versions and at - versions[-1][0] < self.STEP:
            versions[-1] = (versions[-1][0], text)
        else:
            versions.append((at, text))

    def text(self):
        """Return what the terminal has shown in the end, all lines."""
        rows = range(max(self.lines) + 1)
        return "\n".join(self.lines.get(row, [(0, "")])[-1][1] for row in rows).strip("\n") + "\n"

    def svg(self, title):
        """Return an SVG that plays the recording again and again; where nothing moves, its end."""
        width, height = COLUMNS * 8.43 + 24, ROWS * 18 + 24
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
               'font-family="monospace" font-size="14" fill="#ddd">',
               f"<title>{html.escape(title)}</title>",
               f'<rect width="100%" height="100%" rx="6" fill="#1b1d21">'
               f'<animate id="c" attributeName="x" values="0" dur="{self.end:.1f}s" '
               'begin="0s;c.end"/></rect>',
               f'<svg x="12" y="12" width="{width - 24:.0f}" height="{ROWS * 18}">',
               f'<g transform="translate(0 {-18 * self.scrolls[-1][1]})">', self.scrolling()]
        for row, versions in sorted(self.lines.items()):
            out += self.line(row, versions)
        return "\n".join([*out, "</g></svg></svg>"]) + "\n"

    def scrolling(self):
        """Return the animation of the lines' places."""
        values = ";".join(f"0 {-18 * top}" for _, top in self.scrolls)
        times = ";".join(f"{at / self.end:.5f}" for at, _ in self.scrolls)
        return (f'<animateTransform attributeName="transform" type="translate" begin="c.begin" '
                f'calcMode="discrete" dur="{self.end:.1f}s" values="{values}" keyTimes="{times}" '
                'fill="freeze"/>')

    def line(self, row, versions):
        """Return the versions of a line, each visible at its time."""
        out = []
        for (at, text), following in zip(versions, [*versions[1:], None], strict=True):
            if not text:
                continue
            last = following is None
            shown = [("hidden", 0, at)] if last else [("visible", at, following[0] - at)]
            hidden = "" if last else ' visibility="hidden"'
            sets = "".join(
                f'<set attributeName="visibility" to="{to}" begin="c.begin+{start:.2f}s" '
                f'dur="{dur:.2f}s"/>' for to, start, dur in shown if dur > 0)
            color = ' fill="#8f8"' if text.startswith("root@lab") else ""
            out.append(f'<text y="{18 * row + 14}" xml:space="preserve"{hidden}{color}>'
                       f"{html.escape(text)}{sets}</text>")
        return out


def write(path, text):
    """Write a file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
