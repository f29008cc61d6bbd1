#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
# ssdctl advise gives fio what changes the load and nothing else: each option and engine of this fio
# is allowed, dropped or refused; variables are replaced as fio does; fio understands what is
# written; of hundreds of random job files each line that fio gets is in the table
# quick: host
"""What a job may do: see also tests/vm/job-files.py, which runs fio."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "tests/lib"), str(PROJECT / "tools/ssdctl"),
                str(PROJECT / "tools/common")]

from host import SKIP, need  # noqa: E402  (in a folder added above)

need("numpy")

if not shutil.which("fio"):
    print("fio is missing: scripts/setup lab")
    sys.exit(SKIP)

import job_fuzz  # noqa: E402  (in a folder added above)
import numpy  # noqa: E402
from checks import SEED, check  # noqa: E402
from ssd_ctl import CtlError  # noqa: E402
from ssd_ctl.advice import engine, job_text, options, sandbox, workload  # noqa: E402

JOBS = 1000
# What job_file() adds.
OURS = {"filename", "allow_file_create", "overwrite", "fallocate", "invalidate", "time_based",
        "runtime", "exitall_on_error", "randseed", "disk_util", "disable_slat", "disable_clat",
        "write_lat_log", "log_alternate_epoch", "log_alternate_epoch_clock_id", "size"}


def whole_list():
    """The table has each option of this fio, once, with its other name, and each engine."""
    listed, wrong = job_fuzz.options(), []
    groups = {"allowed": set(options.ALLOWED), "order": set(options.ORDER),
              "dropped": options.DROPPED, "refused": set(options.REFUSED)}
    for name in listed:
        found = [group for group, names in groups.items() if name in names]
        if not found and name.startswith(options.VERIFY):
            found = ["dropped"]
        print(f"{name}: {' and '.join(found) or 'not known'}")
        if len(found) != 1:
            wrong.append(name)
    check(len(listed) > 200 and not wrong, f"options not in the table once: {' '.join(wrong)}")
    wrong = [name for name in listed if ("empty or" in job_fuzz.said(f"--cmdhelp={name}")) !=
             (name in options.FLAGS)]
    check(not wrong, f"options that need a value, or do not: {' '.join(wrong)}")
    engines = job_fuzz.engines()
    wrong = [name for name in engines if "not known" in options.engine_refusal(name)]
    check(len(engines) > 20 and not wrong, f"engines not in the table: {' '.join(wrong)}")
    wrong = [alias for alias, name in options.ALIASES.items()
             if f"alias: {alias}\n" not in job_fuzz.said(f"--cmdhelp={name}")]
    check(not wrong, f"no other name in this fio: {' '.join(wrong)}")


def refused(text, because):
    """Check that a job file is refused in one line."""
    try:
        workload.Workload("bad", text, "bad.fio")
    except CtlError as error:
        check(because in str(error) and "\n" not in str(error) and str(error).isprintable(),
              f"refused: {error}")
    else:
        check(False, f"not refused: {text!r}")


def refusals():
    """What runs a program, opens a path or ends a job is refused or dropped, however written."""
    for line, because in (
            ("iodepth=0", "iodepth=0 in [a]: write a number above 0"), ("iodepth=00k", "above 0"),
            ("iomem_align=1g", "iomem_align=1g in [a]: write a size of at most 2m"),
            ("include\tcommon.fio", "bad.fio:2: include?common.fio: there is no folder"),
            ("include=common.fio", "bad.fio:2: include=common.fio: there is no folder"),
            ("includecommon.fio", "includecommon.fio in [a]: it is not known here"),
            ("mem=mmapshared:/dev/vdb", "mem=mmapshared:/dev/vdb in [a]: write one of"),
            ("iomem=mmaphuge:/x", "mem=mmaphuge:/x in [a]"), ("mem = shmhuge", "mem=shmhuge in"),
            ("exec_prerun=/bin/true", "bad.fio:2: exec_prerun=/bin/true in [a]: it runs a program"),
            ("\t exec_postrun\t=\tx", "exec_postrun=x in [a]: it runs a program"),
            ("EXEC_PRERUN=x", "EXEC_PRERUN=x in [a]: it is not known here"),
            ("ioengine=external:/x.so", "it loads a library"), ("ioengine=exec", "runs a program"),
            ("ioengine=/x.so:y", "it loads a library"),
            ("ioengine=cpuio", "bad.fio:2: ioengine=cpuio in [a]: it does no I/O on the drive"),
            ("ioengine=null", "no I/O on the drive"), ("ioengine=filestat", "no I/O on the drive"),
            ("ioengine=filedelete", "no I/O on"), ("ioengine=dircreate", "no I/O on the drive"),
            ("ioengine=net", "talks to a network"),
            ("ioengine=sg", "does not go through the scheduler"),
            ("ioengine=LIBAIO", "it is not known"), ("cgroup=x", "changes the cgroup"),
            ("profile=tiobench", "another load"), ("uid=1000", "changes the user"),
            ("read_iolog=x", "replays a trace"), ("ioscheduler=bfq", "changes the scheduler"),
            ("latency_target=1ms", "latency_target=1ms in [a]: it changes the depth"),
            ("latency_run", "latency_run in [a]: it changes the depth until"),
            ("trim_percentage=5", "discards what was verified"), ("fdp=1", "by hints"),
            ("ioengine=windowsaio", "Linux does not have it"), ("ioengine=./x.so", "a library"),
            ("wait_for=b", "bad.fio: wait_for=b in [a]: there is no job of this name before it"),
            ("wait_for=a", "there is no job"), ("stonewall=yes", "write 0 or 1"),
            ("zonemode=zbd", "zones"), ("prioclass=1", "real-time"), ("nice=-5", "write 0 to 19"),
            ("buffer_pattern='/etc/shadow'", "write a number, or"), ("thinktime=1;x\nbs", "bs in"),
            ("bs=4k,4k,4k,4k", "write a number"), ("bs=$(reboot)", "write a number"),
            ("numjobs=-1", "write a number"), ("numjobs=0", "write a number above 0"),
            ("numjobs=1024\n[b]", "bad.fio: 1025 jobs at once, by their numjobs: 1024"),
            ("[b]\n" * 1024, "1025 jobs: 1024 can run at most"),
            (f"size={'9' * 400}%", "write a size"), (f"offset={'9' * 400}%", "write a size"),
            (f"size={'9' * 400}", "write a size"), ("size=1g:/dev/sdb", "write a size"),
            ("rw=READ", "write read, write"),
            ("newoption=1", "it is not known here"), ("newoption=0", "it is not known here"),
            ("bs=4k\x0cinclude x", "write a number"), ("bs=4k\rrw=trim", "write a number"),
            ("rw=randreadwrite", "write read, write"), ("rw=trimread", "write read, write"),
            ("bs=$jobname", "bs=$jobname in [a]: of $jobname the value is not known (those of "
             "$mb_memory, $ncpus, $pagesize are)"), ("iodepth=${NONE}", "NONE is not set"),
            ("[\x1b[31mred]", "is no section"), ("[]", "is no section"),
            ("bs=\0", "is no text")):
        refused(f"[a]\n{line}\n", because)
    for text in ("stonewall=0", "zonemode=none", "steadystate=iops:1%", "ss_dur=3", "ss=iops:1",
                 "latency_target=0", "max_latency=1", "rate_min=1g", "number_ios=5", "io_size=1g",
                 "loops=3", "startdelay=9", "steadystate=iops:50%\nsteadystate_duration=3",
                 "filename_format=$jobname.$jobnum", "sprandom=0",
                 "write_bw_log=${NONE}", "wait_for=none", "exitall",
                 "write_iolog=x", "log_entries=1", "filename=/dev/sdb", "verify=md5", "unlink=1",
                 "# \xff", "; include x", "size=20g", "hipri", "mem=malloc;/dev/sdb"):
        load = workload.Workload("x", f"[a]\nrw=write\n{text}\n", "x.fio")
        made = load.job_file("/dev/measured", 64 << 20, "/logs", 1)
        check(names(made) <= OURS | {"rw", "mem"} and "sdb" not in made, f"dropped: {text}")


def weights():
    """A weight is a number with a few digits; what is longer is a comment like others."""
    for text, meant in (("2", 2), (".5", 0.5), ("0.25", 0.25), ("1000000", 1000000), ("9" * 400, 1),
                        ("\u0662", 1), ("1e3", 1), ("-1", 1)):
        load = workload.Workload("x", f"[a]\nrw=read\n# weight={text}\n[b]\n", "x.fio")
        check(load.jobs[0].weight == meant and numpy.isfinite(load.weights()).all(),
              f"weight={text[:9]}: {load.jobs[0].weight}")


def names(made):
    """Return the names of the options in a job file that was written."""
    return {line.partition("=")[0] for line in made.splitlines() if not line.startswith("[")}


def variables():
    """Variables of the environment and fio's own are replaced before a line is read."""
    os.environ |= {"RW": "randread", "SIZE": "25%", "R": "0", "NAME": "iodepth", "EVIL": "1\nx=y"}
    load = workload.Workload("x", "[a]\nrw=${RW}\nnumjobs=$ncpus\n${NAME}=8\nsize=${SIZE}\n"
                             "rate_iops=${R}\nbs=$pagesize\n[b]\nbs=4k${UNSET}\n", "x.fio")
    found = load.options(load.jobs[0])
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    check(found == {"rw": "randread", "numjobs": str(cpus), "iodepth": "8", "size": "25%",
                    "rate_iops": "0", "bs": str(os.sysconf("SC_PAGE_SIZE"))}, f"replaced: {found}")
    check(not load.paced(load.jobs[0]) and load.parts_of(load.jobs[0], 64 << 20)["size"] ==
          16 << 20, "a rate of 0 is none, 25 % of what is measured")
    refused("#!/bin/sh\nsudo fio --name=a --rw=read\n", "a command line of fio is given with --fio")
    load = workload.Workload("old", "[a]\nmem_align=2m\nsoftrandommap=1\nbs_is_seq_rand=1\n", "o")
    check(load.options(load.jobs[0]) == {"iomem_align": "2m", "softrandommap": "1",
                                         "bs_is_seq_rand": "1"}, "options that fio does not list")
    refused("[a]\nbs=${EVIL}\n", "write a number")
    refused("[a]\nrw=${NOTHING}\n", "rw=${NOTHING} in [a]: NOTHING is not set: name it before the "
            "command, as in NOTHING=VALUE ssdctl")
    refused("[a]\nioengine=${NOTHING}\n", "NOTHING is not set")
    refused("[a]\n${RW}=4k\n", "randread=4k in [a]: it is not known")


def expressions():
    """An expression of what fio knows, or in parentheses, is calculated; others are not."""
    cpus, page = (os.sysconf(f"SC_{name}") for name in ("NPROCESSORS_ONLN", "PAGE_SIZE"))
    for name, value, meant in (
            ("numjobs", "$ncpus*2", 2 * cpus), ("numjobs", "2 * $ncpus + 1", 2 * cpus + 1),
            ("bs", "$pagesize*2", 2 * page), ("bs", "(4*1024)", 4096), ("bs", "(4k*2)", 8192),
            ("iodepth", "(64/(1+1))", 32), ("iodepth", "(010)", 10), ("rate", "($ncpus)m", None),
            ("bs", "4*1024", None), ("bs", "(4k", None), ("iodepth", "(1/0)", None),
            ("iodepth", "(9**9**9)", None), ("iodepth", f"({'9' * 15}*{'9' * 15})", None),
            ("iodepth", f"({'(' * 30}1{')' * 30})", 1), ("iodepth", f"({'-' * 200}1)", None),
            ("iodepth", "(__import__('os'))", None), ("bsrange", "4k-8k", "4k-8k"),
            ("bsrange", "512:1M", "512:1M"), ("bssplit", ",4k/50:8k/50", ",4k/50:8k/50")):
        try:
            load = workload.Workload("x", f"[a]\n{name}={value}\n", "x.fio")
            found = load.options(load.jobs[0])[name]
        except CtlError as error:
            check_line(str(error))
            found = None
        check(found == (meant and str(meant)), f"{name}={value[:40]}: {found}")


def inherited():
    """Options of several global sections, in order; of engines, only those of the job's engine."""
    load = workload.Workload("x", "[global]\nrw=read\nhipri\nioengine=io_uring\n[a]\n[global]\n"
                             "readwrite=write\nbs=8k\n[b]\nioengine=psync\nbs=4k\nblocksize=16k\n",
                             "x.fio")
    made = load.job_file("/dev/measured", 64 << 20, "/logs", 1)
    first, second = made.split("[1]\n")
    check("rw=read\n" in first and "\nhipri\n" in first and "bs=" not in first, "the first job")
    check("rw=write\n" in second and "hipri" not in second and "\nbs=16k\n" in second and
          second.count("bs=") == 1, "the second job")


def understood():
    """fio understands what is written."""
    texts = [(PROJECT / f"tools/ssdctl/jobs/{name}.fio").read_text() for name in workload.NAMED]
    for name, own in options.ENGINES.items():
        lines = [each if options.ALLOWED[each] is options.FLAG else f"{each}=1"
                 for each in sorted(own)]
        texts.append("\n".join([f"[a]\nioengine={name}", *lines]))
    usual = [line for line in job_fuzz.USUAL if not line.startswith(("# weight", "wait_for"))]
    texts.append("[a]\n" + "\n".join([
        *usual, "sync_file_range=wait_before,write:8", "write_hint=short", "fadvise_hint=random",
        "cpus_allowed=0", "cpus_allowed_policy=split", "rw_sequencer=identical", "flow=-1",
        "thinktime_blocks_type=issue", "rate_process=poisson", "dedupe_mode=repeat",
        "random_generator=lfsr", "random_distribution=zoned:60/10:40/90", 'buffer_pattern="ab c"',
        "percentage_random=50,20", "kb_base=1024", "bs=4k,8k"]))
    for text in texts:
        made = workload.Workload("x", text, "x.fio").job_file("/dev/null", 64 << 20, "/tmp", 1)
        done = subprocess.run(["fio", "--parse-only", "-"], input=made, capture_output=True,
                              text=True, check=False)
        check(not done.returncode and not done.stderr, f"fio takes {text[:40]!r}: {done.stderr}")


def random_ones():
    """Of random job files that are accepted fio gets nothing but names and values of the table."""
    jobs, accepted = job_fuzz.Jobs(SEED), 0
    for _ in range(JOBS):
        try:
            load = workload.Workload("x", jobs.text(), "x.fio")
        except CtlError as error:
            check_line(str(error))
            continue
        accepted += 1
        made = "".join(load.job_file("/dev/measured", 64 << 20, "/logs", 1, phase)
                       for phase in range(len(load.phases)))
        for line in made.splitlines():
            name, _, value = line.partition("=")
            kind = options.ALLOWED.get(name)
            if not (line.startswith("[") or name in OURS or kind and kind.fits(value)):
                check(False, f"fio gets {line!r}")
    check(JOBS / 10 < accepted < JOBS, f"accepted: {accepted} of {JOBS}")


def check_line(text):
    """What is said is one line that a terminal may have."""
    if not text.isprintable():
        check(False, f"printable: {text!r}")


def files():
    """A job file may have any encoding; what has no end is not read."""
    text = "; \xe9\r\n[caf\xe9]\r\nrw=read ; \xe9\r\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "job.fio")
        for encoding in ("latin-1", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
            path.write_bytes(text.encode(encoding))
            found = workload.load(str(path)).jobs
            check([job.name for job in found] == ["caf\xe9"], f"a job file in {encoding}: {found}")
        path.write_bytes(b"; \xe9\xff\x80\n[a]\nrw=read\n")
        check(len(workload.load(str(path)).jobs) == 1, "any bytes in a comment")
        dice = random.Random(SEED)
        for content in (b"", b"\0", b"a", b"\xff\xfe", b"\xff\xfe\0", *(
                bytes(dice.choices(b"[]a=\n\0\xff\xfe\xef\xbb\xbf(){}$i\\", k=dice.randint(1, 40)))
                for _ in range(200))):
            path.write_bytes(content)
            try:
                workload.load(str(path))
            except CtlError as error:
                check_line(str(error))
    try:
        job_text.read("/dev/zero")
        check(False, "a file without end")
    except CtlError as error:
        check("is larger than" in str(error), f"refused: {error}")


def unconfined():
    """fio does not run where it cannot be confined; a namespace that the kernel lacks is said."""
    former, names = sandbox.unshare, sandbox.NAMESPACES
    sandbox.unshare = lambda: ["sh", "-c", "echo unshare failed >&2; exit 1"]
    try:
        engine.program("fio")
        check(False, "fio would run")
    except CtlError as error:
        check("cannot be confined here" in str(error) and "unshare failed" in str(error),
              f"refused: {error}")
    sandbox.unshare, sandbox.NAMESPACES = former, (*names, "none")
    check("--none" not in sandbox.unshare() and "has no none namespaces" in
          "".join(sandbox.lacking()), f"said: {sandbox.lacking()}")
    sandbox.NAMESPACES = names


def versions():
    """A fio that is too old, or is none, is refused before anything is written."""
    # They need root.
    sandbox.check, former = lambda: None, sandbox.words
    sandbox.words = lambda folder, place, command: command
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "fio")
        for said, because in (("fio-3.28", "fio 3.28 is too old: install 3.30"),
                              ("fio-2.99-12-gabc", "too old"), ("GNU coreutils", "not run fio"),
                              ("fio-3.30", ""), ("fio-3.33-dirty", ""), ("fio-4.0", "")):
            program.write_text(f"#!/bin/sh\necho {said}\n")
            program.chmod(0o755)
            try:
                engine.program(f"{program} --x")
                found = ""
            except CtlError as error:
                found = str(error)
            check(because in found and bool(because) == bool(found), f"{said}: {found or 'taken'}")
    sandbox.words = former


def by_a_link():
    """fio is found by a link in a folder that its sandbox has, to where that has nothing; what does
    not run there is told at once."""
    if os.getuid():
        print("the sandbox needs root: left out")
        return
    former = engine.SHARED, sandbox.SCRIPT
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as engine.SHARED:
        place = pathlib.Path(folder)
        (place / "opt").mkdir()
        (place / "bin").mkdir()
        sandbox.SCRIPT = sandbox.SCRIPT.replace("path in /usr", f"path in {place}/bin /usr")
        (place / "opt/fio").write_text("#!/bin/sh\necho fio-3.33\n")
        (place / "opt/fio").chmod(0o755)
        (place / "bin/fio").symlink_to(place / "opt/fio")
        check(engine.program(f"{place}/bin/fio") == [f"{place}/bin/fio"], "by a link")
        # It sees its own file only.
        (place / "opt/fio").write_text(f"#!/bin/sh\nexec {place}/fio-3.33\n")
        (place / "fio-3.33").write_text("#!/bin/sh\necho fio-3.33\n")
        (place / "fio-3.33").chmod(0o755)
        try:
            engine.program(f"{place}/bin/fio")
            check(False, "fio would run")
        except CtlError as error:
            check("does not run fio in its sandbox: " in str(error) and
                  "not found" in str(error) and "\n" not in str(error), f"refused: {error}")
        check(not os.listdir(engine.SHARED), "nothing is left")
    engine.SHARED, sandbox.SCRIPT = former


def left():
    """A folder of a process that lives, in whatever namespace, is not removed; then it is."""
    former = engine.SHARED
    with tempfile.TemporaryDirectory() as engine.SHARED:
        kept, lock = engine.new_folder()
        child = os.fork()
        if not child:
            engine.new_folder()
            signal.pause()
        while len(os.listdir(engine.SHARED)) < 2:
            time.sleep(0.01)
        time.sleep(0.1)
        other = next(path for path in pathlib.Path(engine.SHARED).iterdir() if str(path) != kept)
        other.rename(other.with_name(f"{engine.FOLDER}999999-left"))
        engine.remove_left()
        check(len(os.listdir(engine.SHARED)) == 2, "both are there")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        engine.remove_left()
        check(os.listdir(engine.SHARED) == [os.path.basename(kept)], "one is left")
        engine.remove_folder(kept, lock)
    engine.SHARED = former


def main():
    whole_list()
    refusals()
    weights()
    variables()
    expressions()
    inherited()
    understood()
    random_ones()
    files()
    unconfined()
    versions()
    by_a_link()
    left()


if __name__ == "__main__":
    main()
