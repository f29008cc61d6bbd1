#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""What the patches of Documentation/upstream/ save, in instructions an I/O.

    tests/bench/upstream.py [--verify] [--seeds N] [PATCHES...]     (default: 0 2 3)

For each of PATCHES, the first so many of the series or one by itself (only3), a module with a copy
of the block layer that has them (upstream/divert.c), and with a copy of mq-deadline, is built for
Debian's newest kernel. A guest in virtual time loads one after the other and measures none,
mq-deadline and kyber. 0 is the copy without patches. --verify writes and verifies data instead,
while schedulers are switched. The modules are left in build/upstream/.
"""
import argparse
import os
import re
import shutil
import subprocess

import guests
import matrix
import model
import storage

PATCHES = sorted((model.PROJECT / "Documentation/upstream").glob("*.patch"))
FOLDER = model.PROJECT / "build/upstream"
WORKLOADS = {"one by one, depth 1": (matrix.TIMED, ("randread", "4k", 1)),
             "one by one, depth 32": (matrix.TIMED, ("randrw", "4k", 32)),
             "batches of 32": (matrix.TIMED, ("randrw", "4k", 128, 1, 32)),
             "all tags in use": (matrix.BUSY, ("randrw", "4k", 64))}
COPIED = ("blk_mq_insert_request", "blk_mq_dispatch_rq_list", "blk_mq_end_request_batch",
          "blk_mq_flush_plug_list", "blk_mq_submit_bio")
# The new hook takes the place of one that mq-deadline has not, so that the kernel's own code
# finds the others.
HOOK = re.compile(r"\tbool \(\*bypass\)\(.*\);\n")
UNUSED = "void (*exit_icq)(struct io_cq *);"
KBUILD = """obj-m := block-{n}.o deadline-{n}.o
block-{n}-y := divert.o block/blk-mq.o
deadline-{n}-y := block/mq-deadline.o
# No tracepoints: those of the kernel are not for modules.
ccflags-y := -w -I$(src)/block -DNOTRACE
"""


def tell(*command: str | os.PathLike) -> str:
    """Return what a command prints; fail if it does."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=model.PROJECT,
                          check=False)
    if done.returncode:
        raise model.Failed(f"{command[0]} failed")
    return done.stdout


def edit(path: os.PathLike, *changes: tuple[str | re.Pattern, str]):
    """Replace each pattern in a file."""
    text = path.read_text()
    for old, new in changes:
        text = re.sub(old, new, text)
    path.write_text(text)


def patches_of(choice: str) -> list[os.PathLike]:
    """Return the first so many patches, or one by itself."""
    if choice.startswith("only"):
        return [PATCHES[int(choice.removeprefix("only")) - 1]]
    return PATCHES[:int(choice)]


def prepare(folder: os.PathLike, source: os.PathLike, choice: str):
    """Make a folder with the sources of the modules that have the patches of a @choice."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / "block", folder / "block")
    for patch in patches_of(choice):
        tell("patch", "-s", "-p1", "-d", folder, "-i", patch)
    block = folder / "block"
    edit(block / "elevator.h", (HOOK, ""), (
        re.escape(UNUSED), "bool (*bypass)(struct request_queue *, struct bio *);"))
    # A static function needs a name that the linker sees.
    edit(block / "blk-mq.c",
         (r"(?m)^static (void blk_mq_insert_request\(struct request \*rq, blk_insert_t flags\)\n)",
          r"static noinline __used \1"),
         (r"(?m)^EXPORT_SYMBOL.*\n", ""), (r"(?m)^subsys_initcall.*\n", ""))
    with open(block / "blk-mq.c", "a", encoding="utf-8") as file:
        file.writelines(f'asm(".globl new_{f}; .set new_{f}, {f}");\n' for f in COPIED)
    edit(block / "mq-deadline.c", ('"mq-deadline"', f'"deadline-{choice}"'),
         (r"MODULE_ALIAS.*", ""), (r"\t\.elevator_alias.*\n", ""))
    shutil.copy(model.BENCH / "upstream/divert.c", folder)
    (folder / "Kbuild").write_text(KBUILD.format(n=choice))


def missing(module: os.PathLike, exported: set[str]) -> list[str]:
    """Return the kernel's symbols that a module needs, but are not for modules."""
    words = (line.split() for line in tell("nm", "-u", module).splitlines())
    return sorted({word[-1] for word in words} - exported)


def build(release: str, choices: list[str]) -> list[os.PathLike]:
    """Build the modules for each choice of patches; return their paths."""
    version = re.match(r"[0-9]+\.[0-9]+\.[0-9]+", release)[0]
    source = model.PROJECT / tell(model.PROJECT / "scripts/fetch-block", version).strip()
    modules = []
    for choice in choices:
        folder = FOLDER / choice
        prepare(folder, source, choice)
        tell("make", "-s", f"KVER={release}", f"UPSTREAM={folder}", "upstream-modules")
        modules += [folder / f"{name}-{choice}.ko" for name in ("block", "deadline")]
    return modules


def lab(release: str, script: str, log: str, handle, files, run=None):
    """Run a shell @script in a guest in virtual time; see guests.lab()."""
    options = [word for word in storage.options_of(run or plan_runs(["0"], 1)[0][0])
               if not word.startswith("--kernel")]
    guests.lab(["sh", "-c", script], FOLDER / log, handle,
               [*options, f"--kernel={release}", "--no-modules", "--package=kmod"], files)


def link(release: str, modules: list[os.PathLike]):
    """Give the modules the addresses of what the kernel does not export. Without KASLR they are
    the same in each guest."""
    headers = tell(model.PROJECT / "scripts/kbuild/find-headers", release).strip()
    exported = {line.split("\t")[1] for line in
                open(f"{headers}/Module.symvers", encoding="utf-8")}
    needed = {module: missing(module, exported) for module in modules}
    names = FOLDER / "names"
    names.write_text("".join(f"{name.removeprefix('old_')}\n"
                             for name in sorted({n for some in needed.values() for n in some})))
    found = {}

    def handle(line):
        words = line.split()
        if len(words) == 3 and re.fullmatch("[0-9a-f]{16}", words[0]):
            found.setdefault(words[2], words[0])

    lab(release, "echo 0 >/proc/sys/kernel/kptr_restrict; grep -wFf names /proc/kallsyms",
        "addresses.log", handle, [("names", names)])
    for module, wanted in needed.items():
        absent = [name for name in wanted if name.removeprefix("old_") not in found]
        if absent:
            raise model.Failed(f"the kernel has no {', '.join(absent)}")
        script = module.with_suffix(".ld")
        script.write_text("".join(f"{name} = 0x{found[name.removeprefix('old_')]};\n"
                                  for name in wanted))
        linked = module.with_suffix(".linked")
        tell("ld", "-r", "-o", linked, module, script)
        tell("strip", "--strip-debug", "-R", ".BTF", "-o", module, linked)


def plan_runs(choices: list[str], seeds: int) -> list[list[model.Run]]:
    """Return the runs for each choice of patches. kyber does not use the new hook."""
    return [[model.Run(model.NULL_BLK, "cost", scheduler,
                       {"nr_requests": matrix.REQUESTS} if keys is matrix.BUSY
                       and scheduler != "none" else {}, keys,
                       matrix.cost_workload(*what) | {"RUNTIME": "200ms", "SEED": str(seed)},
                       label=name)
             for name, (keys, what) in WORKLOADS.items()
             for scheduler in ("none", f"deadline-{choice}", "kyber")
             for seed in range(1, seeds + 1)] for choice in choices]


def table(choices: list[str], plans: list[list[model.Run]]) -> str:
    """Return the mean over none of each workload as Markdown, with the least and the largest of
    the seeds."""
    lines = ["| | " + " | ".join(f"patches {choice}" for choice in choices) + " |",
             "|---" * (len(choices) + 1) + "|"]
    for scheduler in ("deadline", "kyber"):
        for name in WORKLOADS:
            cells = []
            for runs in plans:
                none, other = ([model.instructions(run) for run in runs if run.label == name
                                and run.scheduler.startswith(of)] for of in ("none", scheduler))
                over = [more - less for less, more in zip(none, other, strict=True)]
                cells.append(f"{sum(over) / len(over):+,.0f} "
                             f"({min(over):,.0f} to {max(over):,.0f})")
            lines.append(f"| {scheduler}, {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure(release: str, choices: list[str], seeds: int, files: list):
    """Measure, and print the table."""
    plans = plan_runs(choices, seeds)
    files = [*files, ("tests/bench/jobs/cost.fio", model.JOBS / "cost.fio")]
    steps = []
    for choice, runs in zip(choices, plans, strict=True):
        plan = FOLDER / f"plan-{choice}.json"
        guests.write_plan(plan, runs)
        files.append((plan.name, plan))
        steps += [f"insmod block-{choice}.ko", f"insmod deadline-{choice}.ko",
                  " ".join(map(str, guests.program_command("runs.py", plan.name)))]
    waiting = iter([run for runs in plans for run in runs])
    progress = guests.Progress(sum(map(len, plans)))

    def handle(line):
        if line.startswith("{"):
            run = next(waiting)
            guests.take_result(run, guests.json.loads(line))
            progress.step(f"{run.scheduler}, {run.label}")

    script = " && ".join(steps).replace(str(model.PROJECT), "/ssd-iosched")
    lab(release, script, "measure.log", handle, files, plans[0][0])
    print(table(choices, plans))


VERIFY = r"""set -e
insmod {folder}/block-{n}.ko; insmod {folder}/deadline-{n}.ko
modprobe null_blk nr_devices=0
d=/sys/kernel/config/nullb/live; mkdir $d
for pair in size=256 memory_backed=1 cache_size=1 irqmode=2 completion_nsec=20000 \
	hw_queue_depth=8 submit_queues=2; do
	echo ${{pair#*=}} >$d/${{pair%=*}}
done
echo 1 >$d/power
dev=$(cd /sys/block; echo nullb* live* | tr ' ' '\n' | grep -v '\*' | head -n 1)
until [ -e /sys/block/$dev/queue/scheduler ]; do sleep 0.1; done
report()
{{
	echo "no I/O has completed for 20 s"
	grep -rs . /sys/kernel/debug/block/$dev /sys/block/$dev/stat /sys/block/$dev/queue/scheduler
	grep -s . /proc/[0-9]*/task/*/stack | grep 'blk_\|bio_\|/$load/'
	exit 1
}}
for batch in 1 32; do
	fio --name=v --filename=/dev/$dev --direct=1 --rw=randwrite --bs=4k --size=16m --thread \
		--ioengine=libaio --iodepth=64 --iodepth_batch_submit=$batch --numjobs=2 \
		--iodepth_batch_complete_max=32 --offset_increment=64m --fsync=64 --verify=crc32c \
		--verify_fatal=1 --loops=2 --output-format=terse --output=/dev/null &
	load=$!
	: >rounds
	while kill -0 $load 2>/dev/null; do
		for s in none deadline-{n} kyber deadline-{n}; do
			echo $s >/sys/block/$dev/queue/scheduler
			sleep 0.2
		done
		echo >>rounds
	done &
	n=0 pause=0 longest=0 was=
	while kill -0 $load 2>/dev/null; do
		sleep 1
		n=$((n + 1)) pause=$((pause + 1))
		now=$(awk '{{ print $1, $5, $16 }}' /sys/block/$dev/stat)
		[ "$now" = "$was" ] || pause=0 was=$now
		[ $pause -le $longest ] || longest=$pause
		[ $pause -lt 20 ] || report
	done
	wait $load
	echo "verified, batches of $batch, $(wc -l <rounds) rounds of switches, $n s," \
		"at most $longest s without an I/O"
done
"""


def verify(release: str, choice: str):
    """In a guest with two CPUs, write and verify data on a null_blk device with a write cache,
    one by one and in batches, with flushes, while schedulers are switched. Fail on wrong data, on
    what the kernel complains of, and, with the state of the queue, if no I/O completes."""
    guests.lab(["sh", "-c", VERIFY.format(n=choice, folder=FOLDER / choice)],
               FOLDER / f"verify-{choice}.log", lambda line: print(line, end="", flush=True),
               ["--cpus=2", "--append=nokaslr", "--no-modules", f"--kernel={release}"])


def main() -> int:
    """Build, measure or verify; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("choices", nargs="*", metavar="PATCHES")
    args = parser.parse_args()
    known = [f"{only}{number}" for only in ("", "only") for number in range(len(PATCHES) + 1)]
    known.remove("only0")
    if unknown := {*args.choices} - {*known}:
        parser.error(f"PATCHES are of {', '.join(known)}, not {', '.join(unknown)}")
    choices = args.choices or (["3"] if args.verify else ["0", "2", "3"])
    FOLDER.mkdir(parents=True, exist_ok=True)
    release = tell(model.PROJECT / "scripts/fetch-kernel", "newest").strip()
    modules = build(release, choices)
    link(release, modules)
    if args.verify:
        for choice in choices:
            verify(release, choice)
    else:
        measure(release, choices, args.seeds, [(module.name, module) for module in modules])
    return 0


if __name__ == "__main__":
    guests.finish(main)
