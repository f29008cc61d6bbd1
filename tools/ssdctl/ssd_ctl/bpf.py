# SPDX-License-Identifier: GPL-2.0
"""Small BPF programs on tracepoints, without a compiler or a library.

assemble() takes the kernel's notation, in which the verifier and bpftool print programs, such as
    r1 = *(u64 *)(r6 + 8)
    if r1 == 0 goto out
Programs, maps and links belong to this process: they end with it, whatever ends it.
"""
import ctypes
import errno
import os
import pathlib
import platform
import re
import struct

# Numbers of the system call; all of these machines are little endian.
SYSCALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "ppc64le": 361}
MAP_CREATE, MAP_LOOKUP, PROG_LOAD, RAW_TRACEPOINT_OPEN = 0, 1, 5, 17
LRU_HASH, PERCPU_ARRAY = 9, 6
RAW_TRACEPOINT = 17
ATTRIBUTES = 144
LOG_BYTES = 1 << 16
POSSIBLE_CPUS = pathlib.Path("/sys/devices/system/cpu/possible")

HELPERS = {"map_lookup_elem": 1, "map_update_elem": 2, "map_delete_elem": 3, "ktime_get_ns": 5,
           "probe_read_kernel": 113}
ALU = {"+=": 0x07, "-=": 0x17, "|=": 0x47, "&=": 0x57, "<<=": 0x67, ">>=": 0x77, "=": 0xb7}
JUMPS = {"==": 0x15, ">": 0x25, ">=": 0x35, "!=": 0x55, "<": 0xa5, "<=": 0xb5}
SIZES = {"u32": 0x00, "u16": 0x08, "u8": 0x10, "u64": 0x18}
# Bit of an operation whose operand is a register; the longest load.
BY_REGISTER, LOAD, STORE, ATOMIC = 0x08, 0x61, 0x63, 0xc3
LOAD_MAP, MAP_BY_FD, GOTO, CALL, EXIT = 0x18, 1, 0x05, 0x85, 0x95
MEMORY = r"\*\((u\d+) \*\)\(r(\d+) ([+-]) (\d+)\)"


class BpfError(Exception):
    """The kernel does not take a program or a map."""


def signed(sign: str, digits: str) -> int:
    """Return the number of an offset."""
    return int(sign + digits)


def instruction(code: int, to: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Return an instruction."""
    return struct.pack("<BBhi", code, to | source << 4, offset, value)


def operand(text: str) -> dict[str, int]:
    """Return what instruction() needs of a register, as source, or of a number."""
    return {"source": int(text[1:])} if text.startswith("r") else {"value": int(text, 0)}


def by(text: str) -> int:
    """Return the bit of an operation for this operand."""
    return BY_REGISTER if text.startswith("r") else 0


class Program:
    """A program's instructions, and the jumps whose targets are not known yet."""

    def __init__(self, maps: dict[str, int]):
        self.maps = maps
        self.code: list[bytes] = []
        self.labels: dict[str, int] = {}
        self.jumps: list[tuple[int, str]] = []
        self.rules = (
            (r"(\w+):", self.label),
            (rf"r(\d+) = {MEMORY}", self.load),
            (rf"{MEMORY} = r(\d+)", self.store),
            (rf"lock {MEMORY} \+= r(\d+)", self.add),
            (r"r(\d+) = map (\w+)", self.map),
            (r"r(\d+) (\S+) (r\d+|-?\w+)", self.compute),
            (r"if r(\d+) (\S+) (r\d+|\w+) goto (\w+)", self.branch),
            (r"goto (\w+)", self.jump),
            (r"call (\w+)", self.call),
            (r"exit", self.exit))

    def label(self, name):
        """Note where a label is."""
        self.labels[name] = len(self.code)

    def load(self, to, size, base, sign, digits):
        """Load from memory."""
        self.code.append(instruction(LOAD | SIZES[size], int(to), int(base),
                                     signed(sign, digits)))

    def store(self, size, base, sign, digits, source):
        """Store a register."""
        self.code.append(instruction(STORE | SIZES[size], int(base), int(source),
                                     signed(sign, digits)))

    def add(self, size, base, sign, digits, source):
        """Add a register to memory, atomically."""
        self.code.append(instruction(ATOMIC | SIZES[size], int(base), int(source),
                                     signed(sign, digits)))

    def map(self, to, name):
        """Load the address of a map, which takes two instructions."""
        self.code.append(instruction(LOAD_MAP, int(to), MAP_BY_FD, 0, self.maps[name]))
        self.code.append(instruction(0))

    def compute(self, to, operation, text):
        """Change a register."""
        self.code.append(instruction(ALU[operation] | by(text), int(to), **operand(text)))

    def branch(self, register, relation, text, label):
        """Jump if a relation holds."""
        self.jumps.append((len(self.code), label))
        self.code.append(instruction(JUMPS[relation] | by(text), int(register), **operand(text)))

    def jump(self, label):
        """Jump."""
        self.jumps.append((len(self.code), label))
        self.code.append(instruction(GOTO))

    def call(self, name):
        """Call a function of the kernel."""
        self.code.append(instruction(CALL, value=HELPERS[name]))

    def exit(self):
        """End the program."""
        self.code.append(instruction(EXIT))

    def line(self, text: str):
        """Append what a line says."""
        for pattern, rule in self.rules:
            match = re.fullmatch(pattern, text)
            if match:
                rule(*match.groups())
                return
        raise ValueError(f"no instruction: {text}")

    def linked(self) -> bytes:
        """Return the program with the targets of its jumps."""
        for place, label in self.jumps:
            head, tail = self.code[place][:2], self.code[place][4:]
            distance = self.labels[label] - place - 1
            self.code[place] = head + struct.pack("<h", distance) + tail
        return b"".join(self.code)


def assemble(text: str, maps: dict[str, int]) -> bytes:
    """Return the instructions of a program. @maps: {name: file descriptor}."""
    program = Program(maps)
    for line in text.splitlines():
        words = line.partition("#")[0].strip()
        if words:
            program.line(words)
    return program.linked()


def bpf(command: int, attributes: bytes) -> int:
    """Make the system call; raise OSError if it fails."""
    number = SYSCALLS.get(platform.machine())
    if number is None:
        raise BpfError(f"latencies are not measured on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, ATTRIBUTES)
    made = libc.syscall(number, command, buffer, ATTRIBUTES)
    if made < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return made


def create_map(kind: int, value_bytes: int, entries: int, key_bytes: int) -> int:
    """Return the file descriptor of a new map."""
    try:
        return bpf(MAP_CREATE, struct.pack("<IIII", kind, key_bytes, value_bytes, entries))
    except OSError as error:
        raise BpfError(reason(error)) from None


def reason(error: OSError) -> str:
    """Return why the kernel refuses BPF."""
    if error.errno == errno.EPERM:
        return "BPF is not permitted: run as root (or the kernel is locked down)"
    if error.errno == errno.ENOSYS:
        return "the kernel has no BPF (CONFIG_BPF_SYSCALL)"
    return f"the kernel refuses BPF: {error.strerror}"


def load(code: bytes) -> int:
    """Return the file descriptor of a program for tracepoints."""
    licence, log = ctypes.create_string_buffer(b"GPL"), ctypes.create_string_buffer(LOG_BYTES)
    instructions = ctypes.create_string_buffer(code, len(code))
    start = (RAW_TRACEPOINT, len(code) // 8, ctypes.addressof(instructions),
             ctypes.addressof(licence))
    try:
        return bpf(PROG_LOAD, struct.pack("<IIQQ", *start))
    except OSError as error:
        refused = error
    # Now with the verifier's messages, of which the last lines say what is wrong.
    try:
        return bpf(PROG_LOAD, struct.pack("<IIQQIIQ", *start, 1, LOG_BYTES,
                                          ctypes.addressof(log)))
    except OSError:
        said = log.value.decode(errors="replace").splitlines()[-3:]
        raise BpfError("; ".join([reason(refused), *said])) from None


def attach(program: int, tracepoint: str) -> int:
    """Return the file descriptor of a link; closing it detaches the program."""
    name = ctypes.create_string_buffer(tracepoint.encode())
    try:
        return bpf(RAW_TRACEPOINT_OPEN, struct.pack("<QI", ctypes.addressof(name), program))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise BpfError(f"the kernel has no tracepoint {tracepoint}") from None
        raise BpfError(reason(error)) from None


def possible_cpus() -> int:
    """Return for how many CPUs a map has values."""
    spans = [span.split("-") for span in POSSIBLE_CPUS.read_text().strip().split(",")]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


def lookup_percpu(descriptor: int, key: int, value_bytes: int, cpus: int) -> bytes:
    """Return the values that all CPUs have of an entry of an array."""
    number = ctypes.c_uint32(key)
    values = ctypes.create_string_buffer(value_bytes * cpus)
    bpf(MAP_LOOKUP, struct.pack("<IIQQQ", descriptor, 0, ctypes.addressof(number),
                                ctypes.addressof(values), 0))
    return values.raw
