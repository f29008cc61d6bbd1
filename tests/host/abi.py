#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# A module is built only with the layouts of its kernel's image: the compiler refuses headers
# of another kernel or another build; a kernel that gives modules its BTF refuses one with
# other layouts; the generated header follows every file that it is made from; what early 6.1 lacks
# is not needed, and an older kernel is refused
# timeout: 900
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT / "scripts"))
from kbuild import kernel_btf  # noqa: E402

GENERATOR = PROJECT / "scripts/kbuild/gen-kernel-header"
LAYOUT_ERROR = "is not laid out as in the kernel image"


def check(condition, message):
    """End the test unless @condition holds."""
    if not condition:
        sys.exit(f"fail: {message}")


def run(*command, stderr=subprocess.STDOUT, **options):
    """Run a command; return the finished process with its output as text."""
    return subprocess.run(list(map(str, command)), text=True, cwd=PROJECT, check=False,
                          stdout=subprocess.PIPE, stderr=stderr, **options)


def output(*command):
    """Output of a command that must succeed; what it says meanwhile goes to the log."""
    done = run(*command, stderr=None)
    check(not done.returncode, f"{' '.join(map(str, command))} failed")
    return done.stdout.strip()


class Kernel:
    """A stock kernel, and a root file system in @work with a copy of its image and links to its
    headers, which the test can change."""

    def __init__(self, series, work):
        self.release = output("scripts/fetch-kernel", series)
        stock = pathlib.Path(output("scripts/kbuild/find-headers", self.release))
        self.stock_image = stock.parents[2] / f"boot/vmlinuz-{self.release}"
        self.vmlinux = self.stock_image.with_name(f"vmlinux-{self.release}")
        sources = work / self.release / "usr/src"
        sources.mkdir(parents=True)
        self.headers = sources / stock.name
        makefile = (stock / "Makefile").read_text()
        common = pathlib.Path(re.search(r"^include (\S+)/Makefile$", makefile, re.M)[1])
        self.common = sources / common.name
        output("cp", "-rs", stock, common, sources)
        # make uses the folder of the Makefile behind a link, so these are copies.
        for path, text in ((self.headers / "Makefile",
                            makefile.replace(str(common), str(self.common))),
                           (self.common / "Makefile", (common / "Makefile").read_text())):
            path.unlink()
            path.write_text(text)
        self.image = work / self.release / "boot" / self.stock_image.name
        self.image.parent.mkdir()
        shutil.copy2(self.stock_image, self.image)

    def replace(self, name, old, new):
        """Change a header but not its time, as a package does; return its old text."""
        path = self.common / "include/linux" / name
        text, times = path.read_text(), path.stat()
        check(old in text, f"{name} has no {old!r}")
        path.unlink()
        path.write_text(text.replace(old, new, 1))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return text

    def generate(self, header, **environment):
        """Generate @header for this kernel; return its text."""
        done = run(GENERATOR, "--headers", self.headers, "--release", self.release,
                   "-o", header, env={**os.environ, **environment})
        check(not done.returncode, f"the generator fails: {done.stdout}")
        return header.read_text()


def test_types():
    """Types of BTF that only some compilers and versions of pahole create."""
    types = [
        {"id": 1, "kind": "INT", "name": "int", "size": 4},
        {"id": 2, "kind": "TYPE_TAG", "name": "rcu", "type_id": 3},
        {"id": 3, "kind": "TYPE_TAG", "name": "user", "type_id": 4},
        {"id": 4, "kind": "CONST", "name": "(anon)", "type_id": 5},
        {"id": 5, "kind": "STRUCT", "name": "s", "size": 16, "members": [
            {"name": "a", "type_id": 8, "bits_offset": 0},
            {"name": "f", "type_id": 10, "bits_offset": 64}]},
        {"id": 6, "kind": "PTR", "name": "(anon)", "type_id": 2},
        {"id": 7, "kind": "TYPE_TAG", "name": "percpu", "type_id": 6},
        {"id": 8, "kind": "CONST", "name": "(anon)", "type_id": 7},
        {"id": 9, "kind": "DECL_TAG", "name": "bpf_kfunc", "type_id": 5, "component_idx": -1},
        {"id": 10, "kind": "FLOAT", "name": "double", "size": 8},
        {"id": 11, "kind": "ARRAY", "name": "(anon)", "type_id": 1, "nr_elems": 3},
        {"id": 12, "kind": "TYPE_TAG", "name": "user", "type_id": 11},
        {"id": 13, "kind": "PTR", "name": "(anon)", "type_id": 12},
        {"id": 14, "kind": "FUNC_PROTO", "name": "(anon)", "ret_type_id": 7, "params": [
            {"name": "x", "type_id": 12}]},
        {"id": 15, "kind": "TYPE_TAG", "name": "user", "type_id": 14},
        {"id": 16, "kind": "PTR", "name": "(anon)", "type_id": 15},
        {"id": 17, "kind": "CONST", "name": "(anon)", "type_id": 11},
        {"id": 18, "kind": "PTR", "name": "(anon)", "type_id": 17},
        {"id": 19, "kind": "ENUM64", "name": "big", "size": 8, "values": [
            {"name": "BIG", "val": 1 << 40}]},
        {"id": 20, "kind": "TYPE_TAG", "name": "rcu", "type_id": 0},
        {"id": 21, "kind": "PTR", "name": "(anon)", "type_id": 20},
        {"id": 22, "kind": "TYPEDEF", "name": "t", "type_id": 3},
    ]
    btf = kernel_btf.Btf(types)
    for type_id, want in ((6, "const struct s *x"), (7, "const struct s *x"),
                          (8, "const struct s *const x"), (13, "int (*x)[3]"),
                          (16, "const struct s *(*x)(int[3])"), (18, "const int (*x)[3]"),
                          (19, "enum big x"), (21, "void *x"), (10, "double x"), (22, "t x")):
        got = btf.declare(type_id, "x")
        check(got == want, f"type {type_id} is declared as {got!r}, not {want!r}")
    check(btf.strip(22) is types[4] and btf.strip(2) is types[4], "a tag is not removed")
    check(btf.size(8) == 8 and btf.size(12) == 12 and btf.size(22) == 16, "wrong sizes")
    check(btf.layouts(["s"]) == {"struct s": [("(whole)", 0, 16), ("a", 0, 8), ("f", 64, 8)]},
          f"layouts {btf.layouts(['s'])}")
    check(btf.body(types[4]) == "struct s {\n\tconst struct s *const a;\n\tdouble f;\n}",
          f"body {btf.body(types[4])}")
    check(btf.body(types[18]) == "enum big {\n\tBIG = 1099511627776,\n}", "enum64")


def test_changes(kernel, other, header):
    """The generated header follows the files that it is made from."""
    first = kernel.generate(header)
    was = header.stat().st_mtime_ns
    # Without a change the generator does not run bpftool.
    kernel.generate(header, BPFTOOL="/none")
    check(header.stat().st_mtime_ns == was, "the header is written without need")

    member = "unsigned int\t\tasync_depth;"
    text = kernel.replace("blkdev.h", "struct request_queue {", f"/* {member} */\n"
                          "struct request_queue {")
    changed = kernel.generate(header)
    check("IOSCHED_HAVE_QUEUE_ASYNC_DEPTH" in changed, "another blkdev.h changes nothing")
    kernel.replace("blkdev.h", f"/* {member} */\n", "")
    check((kernel.common / "include/linux/blkdev.h").read_text() == text, "blkdev.h is not back")
    check(kernel.generate(header) == first, "the header does not change back")

    times = kernel.image.stat()
    shutil.copy(other.stock_image, kernel.image)
    os.utime(kernel.image, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = kernel.generate(header)
    check("IOSCHED_HAVE_INSERT_FLAGS" not in changed, "another image changes nothing")
    shutil.copy2(kernel.stock_image, kernel.image)
    check(kernel.generate(header) == first, "the header does not follow the image")
    # The declarations stay, but the header must change so that everything is recompiled.
    kernel.replace("hrtimer.h", "hrtimer_cancel(", "hrtimer_cancel (")
    changed = kernel.generate(header)
    check(changed != first and changed.split("\n")[3:] == first.split("\n")[3:],
          "the header does not show a change of the kernel's headers")


def test_early(kernel, work):
    """6.1 before 6.1.190 has neither struct_size_t() nor list_count_nodes()."""
    kernel.replace("overflow.h", "#define struct_size_t(", "#define none_size_t(")
    kernel.replace("list.h", "list_count_nodes(", "none_count_nodes(")
    done = run("make", "-s", "-j2", f"KVER={kernel.release}", f"HEADERS={kernel.headers}",
               f"BUILD={work}/early", "CONFIG_MQ_IOSCHED_PAI=", "CONFIG_MQ_IOSCHED_PASS=",
               "CONFIG_MQ_IOSCHED_BP=", "CONFIG_BLK_DEV_SSDEMU=")
    check(not done.returncode, f"early 6.1: {done.stdout}")
    for module in ("piq-iosched.ko", "tests/ioload/ioload.ko"):
        check((work / "early" / module).exists(), f"early 6.1: no {module}")


def test_old(kernel, work):
    """A kernel before 6.1 is refused in one line; here by what it lacks."""
    for name in ("blk-mq.h", "blk_types.h", "blkdev.h"):
        path = kernel.common / "include/linux" / name
        text = path.read_text()
        path.unlink()
        path.write_text(text.replace("enum rq_end_io_ret", "void"))
    done = run("make", "-s", "KVER=5.15.0-none", f"HEADERS={kernel.headers}", f"BUILD={work}/old")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("make")]
    check(done.returncode and lines == ["error: 5.15.0-none is older than Linux 6.1, the oldest "
                                        "kernel that the schedulers are for"],
          f"an old kernel: {done.stdout}")


def test_refused(kernel, work, what, expected):
    """Check that a build fails because of a layout, and reports that; return its errors."""
    done = run("make", "-s", "-j2", f"KVER={kernel.release}", f"HEADERS={kernel.headers}",
               f"BUILD={work}/build")
    check(done.returncode, f"{what} are accepted")
    errors = re.findall(r"(?<=error: ).*", done.stdout)
    check(any(LAYOUT_ERROR in error and expected in error for error in errors),
          f"{what}: {done.stdout}")
    print(f"{what}: {errors[0]}")
    print(f"    {sum(LAYOUT_ERROR in error for error in errors)} of {len(errors)} errors "
          f"say that {expected} or another struct {LAYOUT_ERROR}")
    shutil.rmtree(f"{work}/build")
    return errors


def test_loading(kernels, headers, work):
    """The comparison of layouts when a module is loaded, with the BTF of real kernels."""
    for kernel, header in zip(kernels, headers, strict=True):
        folder = work / f"load-{kernel.release}"
        folder.mkdir()
        text = header.read_text()
        layouts = text[text.index("#define IOSCHED_LAYOUTS"):]
        (folder / "iosched-kernel.h").write_text(layouts.removesuffix("#endif\n"))
        (folder / "linux").mkdir()
        (folder / "linux/init.h").touch()
        (folder / "linux/printk.h").touch()
        output("gcc", "-Wall", "-Werror", "-DIOSCHED_HAVE_FIND_BTF_ID", "-D__init=",
               "-D__initconst=", '-DKBUILD_MODNAME="module"', f"-I{folder}",
               f"-I{PROJECT}/include", "-o", folder / "check", "tests/host/abi/kernel.c")
        btf = work / f"btf-{kernel.release}"
        output("objcopy", "--dump-section", f".BTF={btf}", kernel.vmlinux, "/dev/null")
    for kernel in kernels:
        for running in kernels:
            done = run(work / f"load-{kernel.release}/check", work / f"btf-{running.release}")
            check(done.returncode == (running is not kernel),
                  f"built for {kernel.release}, on {running.release}: {done.stdout}")
            print(f"built for {kernel.release}, on {running.release}: "
                  f"{done.stdout.strip() or 'loads'}")


def main():
    test_types()
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kernels = [Kernel(series, work) for series in ("6.1", "6.12")]
        old, new = kernels
        headers = [work / f"{kernel.release}.h" for kernel in kernels]
        test_changes(new, old, headers[1])
        old.generate(headers[0])
        test_loading(kernels, headers, work)

        new.replace("blk-mq.h", "struct request {", "struct request {\n\tlong shifted;")
        errors = test_refused(new, work, "headers of another build", "struct request")
        check(all(LAYOUT_ERROR in error for error in errors), f"other errors: {errors}")
        # The old kernel's image under the new one's name.
        new.replace("blk-mq.h", "\n\tlong shifted;", "")
        shutil.copy(old.stock_image, new.image)
        test_refused(new, work, "headers of another kernel", "struct request")

        test_early(old, work)
        test_old(old, work)


if __name__ == "__main__":
    main()
