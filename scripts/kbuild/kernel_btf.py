# SPDX-License-Identifier: GPL-2.0
"""Read a kernel's types from its BTF and write them as C.

gen-kernel-header uses it to declare the block layer's private types and to assert
layouts, check-abi to compare a module's debug information. bpftool decodes the BTF;
this file works on its JSON.
"""
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ELF_MAGIC = b"\x7fELF"
# The class of an ELF file, its fifth byte; the other one has 64 bits.
ELF_32_BITS = 1
# Where an Image, which is not ELF, says for which architecture it is: arm64, riscv.
IMAGE_AT, ARM64_MAGIC, RISCV_MAGIC = 0x38, b"ARM\x64", b"RSC\x05"
# The first fields of BTF, from its magic on: version, flags, length of the header; offset and
# length of types and of strings, from the header's end on.
BTF_HEADER = struct.Struct("<HBBIIIII")
BTF_MAGIC = b"\x9f\xeb\x01"
# Compressions of an image's payload: magic, decompressor.
PAYLOADS = (
    (b"\xfd7zXZ\x00", ("xz", "-dc")),
    (b"\x28\xb5\x2f\xfd", ("zstd", "-dc")),
    (b"\x1f\x8b\x08", ("gzip", "-dc")),
    (b"\x02\x21\x4c\x18", ("lz4", "-dc")),
)


# Structs that the modules read, write or allocate. A layout includes what a
# struct embeds, so parts such as queue_limits and sbitmap_queue need no entry.
PRIVATE_STRUCTS = ("elevator_mq_ops", "elv_fs_entry", "elevator_type",
                   "elevator_queue", "blk_mq_alloc_data",
                   "blk_mq_debugfs_attr")
PUBLIC_STRUCTS = ("request", "request_queue", "bio", "bio_vec",
                  "blk_mq_hw_ctx", "blk_mq_tags", "blk_mq_tag_set",
                  "blk_mq_ops", "blk_mq_queue_data", "gendisk",
                  "block_device_operations", "backing_dev_info", "seq_file",
                  "hrtimer", "delayed_work")
STRUCTS = PRIVATE_STRUCTS + PUBLIC_STRUCTS

QUALIFIERS = ("CONST", "VOLATILE", "RESTRICT")
AGGREGATES = ("STRUCT", "UNION")
SCALARS = ("INT", "ENUM", "ENUM64", "FLOAT")


def die(message):
    """Exit with a one-line error."""
    sys.exit(f"error: {message}")


def _unpack(command, data):
    """Decompress @data, ignoring bytes after the stream; return b"" if that fails."""
    if command[0] == "xz":
        try:
            return lzma.LZMADecompressor().decompress(data)
        except lzma.LZMAError:
            return b""
    if not shutil.which(command[0]):
        return b""
    # Bytes after the stream make these tools fail after all output was written.
    return subprocess.run(command, input=data, capture_output=True,
                          check=False).stdout


def _is_whole(elf):
    """Return True if the ELF file is complete: its section headers are at its end, and a
    truncated image decompresses to a file without them."""
    if not elf.startswith(ELF_MAGIC) or len(elf) < 64:
        return False
    if elf[4] == ELF_32_BITS:
        offset, = struct.unpack_from("<I", elf, 0x20)
        size, count = struct.unpack_from("<HH", elf, 0x2e)
    else:
        offset, = struct.unpack_from("<Q", elf, 0x28)
        size, count = struct.unpack_from("<HH", elf, 0x3a)
    return offset + size * count <= len(elf)


def _is_kernel(data):
    """Return True for an ELF file that is complete, and for an Image."""
    return _is_whole(data) or data[IMAGE_AT:].startswith((ARM64_MAGIC, RISCV_MAGIC))


def unpack_image(path):
    """Return the kernel inside the image at @path, which may be compressed: an ELF file or an
    Image; or b""."""
    with open(path, "rb") as image:
        data = image.read()
    if data.startswith(ELF_MAGIC) or _is_kernel(data):
        return data
    for magic, command in PAYLOADS:
        for match in re.finditer(re.escape(magic), data):
            found = _unpack(command, data[match.start():])
            if _is_kernel(found):
                return found
    return b""


def btf_of_image(image):
    """Return the BTF inside an Image, or b"": the longest, as that of a module that is built in
    is shorter."""
    found = b""
    for match in re.finditer(re.escape(BTF_MAGIC), image):
        start = match.start()
        if start + BTF_HEADER.size > len(image):
            break
        *_, length, types, types_length, strings, strings_length = BTF_HEADER.unpack_from(
            image, start)
        whole = length + strings + strings_length
        if (types == 0 and strings == types_length and start + whole <= len(image) and
                whole > len(found)):
            found = image[start:start + whole]
    return found


def find_bpftool():
    """Return the path of bpftool, which is not in a user's PATH on Debian."""
    tool = shutil.which(os.environ.get("BPFTOOL", "bpftool"),
                        path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not tool:
        die("bpftool is missing: apt-get install bpftool")
    return tool


def complaint(done):
    """Return what bpftool, which has failed, says: with -j it says it in JSON."""
    try:
        said = json.loads(done.stdout)["error"]
    except (ValueError, KeyError, TypeError):
        said = done.stderr or done.stdout
    return "; ".join(said.split("\n")).strip("; ") or f"nothing, with status {done.returncode}"


class Btf:
    """The types of one BTF file."""

    def __init__(self, types, path=""):
        """@types: a list as in bpftool's JSON; @path: the file it is from."""
        self.path = path
        self.types = {t["id"]: t for t in types}
        # A type tag annotates a pointer's target for a checker and does not change
        # the layout: replace each tag by its target.
        for t in types:
            target = t
            while target and target["kind"] == "TYPE_TAG":
                target = self.types.get(target["type_id"])
            self.types[t["id"]] = target
        self.named = {}
        for t in types:
            self.named.setdefault((t["kind"], t["name"]), t)
        word = self.get("INT", "long unsigned int")
        self.pointer_size = word["size"] if word else 8

    @classmethod
    def from_file(cls, path, named=None):
        """Read the BTF in the file at @path, called @named in messages."""
        with open(path, "rb") as file:
            data = file.read()
        if data.startswith(ELF_MAGIC) and b"\0.BTF\0" not in data:
            raise ValueError(f"{named or path} has no BTF: CONFIG_DEBUG_INFO_BTF is not set")
        done = subprocess.run([find_bpftool(), "-j", "btf", "dump", "file", path],
                              capture_output=True, text=True, errors="replace", check=False)
        try:
            types = json.loads(done.stdout)["types"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{named or path}: bpftool says: {complaint(done)}") from None
        return cls(types, named or path)

    @classmethod
    def from_image(cls, path):
        """Read the BTF inside a compressed kernel image."""
        data = unpack_image(path)
        if not data:
            missing = [command[0] for _, command in PAYLOADS
                       if not shutil.which(command[0])]
            hint = f" (missing: {', '.join(missing)})" if missing else ""
            raise ValueError(f"{path} cannot be unpacked{hint}")
        if not data.startswith(ELF_MAGIC):
            data = btf_of_image(data)
            if not data:
                raise ValueError(f"{path} has no BTF: CONFIG_DEBUG_INFO_BTF is not set")
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return cls.from_file(file.name, path)

    def get(self, kind, name):
        """Return the type of this kind and name, or None."""
        return self.named.get((kind, name))

    def strip(self, type_id):
        """Return the type without its typedefs and qualifiers."""
        t = self.types.get(type_id)
        while t and t["kind"] in ("TYPEDEF", *QUALIFIERS):
            t = self.types.get(t["type_id"])
        return t

    def size(self, type_id):
        """Return the size of a type in bytes."""
        t = self.strip(type_id)
        if not t:
            return 0
        if t["kind"] == "PTR":
            return self.pointer_size
        if t["kind"] == "ARRAY":
            return t["nr_elems"] * self.size(t["type_id"])
        return t.get("size", 0)

    def declare(self, type_id, name=""):
        """Return the C declaration of @name with the type @type_id."""
        t = self.types.get(type_id)
        gap = " " if name and not name.startswith("[") else ""
        if not t:
            return f"void{gap}{name}"
        kind = t["kind"]
        if kind == "PTR":
            target = self.types.get(t["type_id"])
            while target and target["kind"] in QUALIFIERS:
                target = self.types.get(target["type_id"])
            if target and target["kind"] in ("ARRAY", "FUNC_PROTO"):
                return self.declare(t["type_id"], f"(*{name})")
            return self.declare(t["type_id"], f"*{name}")
        if kind in QUALIFIERS:
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
        """Return the C definition of a struct, union or enum."""
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
        """Return the C prototype of @function, or None if the BTF has none."""
        func = self.get("FUNC", function)
        return func and self.declare(func["type_id"], function) + ";"

    def members(self, t, prefix="", base=0):
        """Yield (name, offset in bits, size in bytes) of each member of @t.

        Members of nameless structs and unions are listed like @t's own. The
        size of a bit-field is None, that of a flexible array 0.
        """
        for m in t["members"]:
            offset = base + m["bits_offset"]
            name = "" if m["name"] == "(anon)" else prefix + m["name"]
            if name:
                bits = m.get("bitfield_size", 0)
                yield name, offset, None if bits else self.size(m["type_id"])
            inner = self.types.get(m["type_id"])
            if inner["kind"] in AGGREGATES and inner["name"] == "(anon)":
                yield from self.members(inner, f"{name}." if name else prefix,
                                        offset)

    def _element(self, type_id):
        """Return the type without typedefs, qualifiers and array dimensions."""
        t = self.strip(type_id)
        while t and t["kind"] == "ARRAY":
            t = self.strip(t["type_id"])
        return t

    def layouts(self, names=STRUCTS):
        """Return the layouts of the structs @names and of the structs that they embed:
        {"struct x": [("(whole)", 0, size), *members]}. Nameless structs, and @names
        that this BTF lacks, are left out."""
        found = {}
        pending = [self.get("STRUCT", name) for name in reversed(names)]
        while pending:
            t = pending.pop()
            if not t or t["kind"] not in AGGREGATES:
                continue
            tag = f"{t['kind'].lower()} {t['name']}"
            if tag in found:
                continue
            if t["name"] != "(anon)":
                found[tag] = [("(whole)", 0, t["size"]), *self.members(t)]
            pending += [self._element(m["type_id"])
                        for m in reversed(t["members"])]
        return found

    def digest(self, t):
        """Return FNV-1a of a struct's layout with the structs that it embeds, as
        iosched_layout_digest() in include/tmpl/layout.h computes it."""
        value = 0x811c9dc5

        def mix(number):
            nonlocal value
            for byte in number.to_bytes(4, "little"):
                value = (value ^ byte) * 0x01000193 & 0xffffffff

        def walk(aggregate, base):
            mix(aggregate["size"])
            for m in aggregate["members"]:
                offset = base + m["bits_offset"]
                mix(offset)
                mix(m.get("bitfield_size", 0))
                inner = self.strip(m["type_id"])
                if inner and inner["kind"] in AGGREGATES:
                    walk(inner, offset)
                elif inner and inner["kind"] in SCALARS:
                    mix(inner["size"])

        walk(t, 0)
        return value


def btf_places(release, headers):
    """Return [(path, reader)] of the places of @release's BTF, best first."""
    # The root file system of the headers, and fetch-kernel's cache.
    root_of_headers = os.path.normpath(os.path.join(headers, "../../.."))
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or
                         os.path.expanduser("~/.cache"),
                         "ssd-iosched/kernels", release)
    # The image will run, so its BTF decides. The copy in newer header packages
    # matches the headers, which may be of another build than the image.
    # Distributions that do not keep all images in /boot have them among the modules.
    places = [(os.path.join(root, image), Btf.from_image)
              for image in (f"boot/vmlinuz-{release}", f"lib/modules/{release}/vmlinuz")
              for root in dict.fromkeys((root_of_headers, "/", cache))]
    if release == os.uname().release:
        places.append(("/sys/kernel/btf/vmlinux", Btf.from_file))
    places.append((os.path.join(headers, "vmlinux"), Btf.from_file))
    return places


def kernel_config(headers):
    """Return (path, text) of the configuration of the kernel with these headers; ("", "") if they
    do not have it."""
    for name in ("include/config/auto.conf", ".config"):
        path = os.path.join(headers, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return path, file.read()
    return "", ""


def has_btf(config):
    """Return true if the kernel of a configuration has BTF."""
    return bool(re.search("^CONFIG_DEBUG_INFO_BTF=y$", config, re.M))


def find_btf(release, headers):
    """Return the BTF of @release from the first place that has it."""
    path, config = kernel_config(headers)
    if path and not has_btf(config):
        die(f"{release} has no BTF: CONFIG_DEBUG_INFO_BTF is not set ({path}); with the directory "
            "block of its source, build by make BLOCK=<directory>")
    places = btf_places(release, headers)
    failed = []
    for path, read in places:
        if not os.path.exists(path):
            continue
        try:
            return read(path)
        except ValueError as error:
            failed.append(str(error))
        except OSError as error:
            failed.append(f"{path}: {error.strerror}")
    if failed:
        die(f"no types of {release}: {'; '.join(failed)}")
    die(f"no kernel image of {release} to take its types from: "
        f"apt-get install linux-image-{release} (tried "
        f"{', '.join(path for path, _ in places)})")
    return None
