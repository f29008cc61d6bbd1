# SPDX-License-Identifier: GPL-2.0
"""Read a kernel's types from its BTF and write them as C.

Used by gen-kernel-header (to declare the block layer's private types) and by
check-abi (to compare what a module was compiled with). All reading is done by
bpftool; this file only walks its JSON.
"""
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

ELF_MAGIC = b"\x7fELF"
# How a bzImage's payload may be compressed: magic, and the tool that unpacks.
PAYLOADS = (
    (b"\xfd7zXZ\x00", ("xz", "-dc")),
    (b"\x28\xb5\x2f\xfd", ("zstd", "-dc")),
    (b"\x1f\x8b\x08", ("gzip", "-dc")),
    (b"\x02\x21\x4c\x18", ("lz4", "-dc")),
)


def die(message):
    """End with one clear line."""
    sys.exit(f"error: {message}")


def _unpack(command, data):
    """Decompress @data, whose tail may be anything; b"" when it can't be."""
    if command[0] == "xz":
        try:
            return lzma.LZMADecompressor().decompress(data)
        except lzma.LZMAError:
            return b""
    if not shutil.which(command[0]):
        return b""
    # Trailing bytes after the stream make these tools fail: use the output.
    return subprocess.run(command, input=data, capture_output=True,
                          check=False).stdout


def unpack_image(path):
    """Return the ELF kernel inside the compressed image at @path, or b""."""
    with open(path, "rb") as image:
        data = image.read()
    if data.startswith(ELF_MAGIC):
        return data
    for magic, command in PAYLOADS:
        for match in re.finditer(re.escape(magic), data):
            elf = _unpack(command, data[match.start():])
            if elf.startswith(ELF_MAGIC):
                return elf
    return b""


def find_bpftool():
    """Path of bpftool; Debian keeps it out of a user's PATH."""
    tool = shutil.which(os.environ.get("BPFTOOL", "bpftool"),
                        path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not tool:
        die("bpftool is missing: apt-get install bpftool")
    return tool


class Btf:
    """The types of one BTF file."""

    def __init__(self, path):
        out = subprocess.run([find_bpftool(), "-j", "btf", "dump", "file",
                              path], capture_output=True, check=False)
        try:
            types = json.loads(out.stdout)["types"]
        except (ValueError, KeyError):
            raise ValueError(f"no BTF in {path}") from None
        self.types = {t["id"]: t for t in types}
        self.named = {}
        for t in types:
            self.named.setdefault((t["kind"], t["name"]), t)

    @classmethod
    def from_image(cls, path):
        """Read the BTF inside a compressed kernel image."""
        elf = unpack_image(path)
        if not elf:
            raise ValueError(f"{path} holds no kernel that can be unpacked")
        with tempfile.NamedTemporaryFile() as file:
            file.write(elf)
            file.flush()
            return cls(file.name)

    def get(self, kind, name):
        """The type of that kind and name, or None."""
        return self.named.get((kind, name))

    def strip(self, type_id):
        """Follow typedefs and qualifiers to what is behind them."""
        t = self.types.get(type_id)
        while t and t["kind"] in ("TYPEDEF", "CONST", "VOLATILE", "RESTRICT"):
            t = self.types.get(t["type_id"])
        return t

    def size(self, type_id):
        """Size of a type in bytes."""
        t = self.strip(type_id)
        if not t:
            return 0
        if t["kind"] == "PTR":
            return 8
        if t["kind"] == "ARRAY":
            return t["nr_elems"] * self.size(t["type_id"])
        return t.get("size", 0)

    def declare(self, type_id, name=""):
        """C declaration of @name with the type @type_id."""
        t = self.types.get(type_id)
        gap = " " if name and not name.startswith("[") else ""
        if not t:
            return f"void{gap}{name}"
        kind = t["kind"]
        if kind == "PTR":
            target = self.types.get(t["type_id"])
            if target and target["kind"] in ("ARRAY", "FUNC_PROTO"):
                return self.declare(t["type_id"], f"(*{name})")
            return self.declare(t["type_id"], f"*{name}")
        if kind in ("CONST", "VOLATILE", "RESTRICT"):
            word = kind.lower()
            target = self.types.get(t["type_id"])
            if target and target["kind"] == "PTR":
                return self.declare(t["type_id"], f"{word}{gap}{name}")
            return f"{word} {self.declare(t['type_id'], name)}"
        if kind == "ARRAY":
            return self.declare(t["type_id"], f"{name}[{t['nr_elems']}]")
        if kind == "FUNC_PROTO":
            return self.declare(t["ret_type_id"],
                                f"{name}({self._params(t)})")
        if kind in ("STRUCT", "UNION", "ENUM", "ENUM64", "FWD"):
            word = t.get("fwd_kind", kind.lower().rstrip("64"))
            if t["name"] == "(anon)":
                return f"{self.body(t)}{gap}{name}"
            return f"{word} {t['name']}{gap}{name}"
        return f"{t['name']}{gap}{name}"

    def _params(self, proto):
        params = []
        for p in proto["params"]:
            # A nameless parameter without a type is the ellipsis.
            if p["type_id"] == 0:
                params.append("...")
            else:
                params.append(self.declare(p["type_id"]))
        return ", ".join(params) or "void"

    def body(self, t):
        """C definition of a struct, union or enum."""
        kind = t["kind"].lower().rstrip("64")
        name = "" if t["name"] == "(anon)" else " " + t["name"]
        lines = [f"{kind}{name} {{"]
        if kind == "enum":
            lines += [f"\t{v['name']} = {v['val']}," for v in t["values"]]
        else:
            for m in t["members"]:
                member = "" if m["name"] == "(anon)" else m["name"]
                bits = m.get("bitfield_size", 0)
                width = f" : {bits}" if bits else ""
                lines.append(f"\t{self.declare(m['type_id'], member)}{width};")
        lines.append("}")
        return "\n".join(lines)

    def prototype(self, function):
        """C prototype of @function, or None when BTF doesn't have it."""
        func = self.get("FUNC", function)
        return func and self.declare(func["type_id"], function) + ";"

    def layout(self, name):
        """[(member, offset in bits, size in bytes)] of struct @name."""
        t = self.get("STRUCT", name)
        if not t:
            return None
        rows = [("(whole)", 0, t["size"])]
        for m in t["members"]:
            rows.append((m["name"], m["bits_offset"], self.size(m["type_id"])))
        return rows


def find_btf(release, headers):
    """BTF of @release, from the first place that has it."""
    looked = []
    # The root that the headers lie in, and where fetch-kernel unpacks.
    root_of_headers = os.path.normpath(os.path.join(headers, "../../.."))
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or
                         os.path.expanduser("~/.cache"),
                         "ssd-iosched/kernels", release)
    places = [(os.path.join(headers, "vmlinux"), Btf)]
    if release == os.uname().release:
        places.append(("/sys/kernel/btf/vmlinux", Btf))
    for root in dict.fromkeys((root_of_headers, "/", cache)):
        places.append((os.path.join(root, f"boot/vmlinuz-{release}"),
                       Btf.from_image))
    for path, read in places:
        looked.append(path)
        if os.path.exists(path):
            try:
                return read(path)
            except ValueError:
                continue
    die(f"no BTF for {release}; looked in " + ", ".join(looked))
    return None
