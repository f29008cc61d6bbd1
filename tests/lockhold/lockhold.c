// SPDX-License-Identifier: GPL-2.0
/*
 * lockhold: how long the spin locks are held that chosen functions take.
 *
 * ftrace calls this module at the entry of the kernel's functions that take and
 * release a spin lock. A hold begins when a function of the watched text takes a
 * lock, and ends when that lock is released. In virtual time (scripts/lab
 * --virtual-time) its length is the number of instructions. What a hold of nothing
 * takes, and each further call of this module during a hold, is measured first and
 * subtracted.
 *
 * A hold during which an interrupt was served is apart, as it includes the
 * interrupt. So is one whose task was preempted before it had the lock, or waited for
 * it, and one during which another CPU took or released a lock: in virtual time CPUs
 * take turns, and the time of all passes.
 *
 * In /sys/kernel/debug/lockhold/:
 *
 *	watch	a write "START END", two addresses, begins anew with the functions in
 *		between
 *	holds	for each place that took a lock: number of undisturbed holds, their
 *		total and longest in ns, and number and longest of the others
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#define MAX_OPEN	4
#define MAX_ROWS	64
#define CALIBRATIONS	64

/**
 * struct lockhold - a lock that is held
 * @lock: its address
 * @caller: what took it
 * @since: time at which that was, in ns
 * @irqs: interrupts and waits for a lock of the CPU by then
 * @calls: calls of this module on the CPU by then
 * @others: the same on the other CPUs
 */
struct lockhold {
	unsigned long lock;
	unsigned long caller;
	u64 since;
	unsigned int irqs;
	unsigned int calls;
	unsigned int others;
};

/**
 * struct lockhold_row - the holds that began at a place
 * @caller: the place
 * @holds: how many, undisturbed
 * @total: their sum in ns
 * @longest: the longest in ns
 * @disturbed: how many, with an interrupt or another CPU's time
 * @longest_disturbed: the longest of them in ns
 */
struct lockhold_row {
	unsigned long caller;
	u64 holds;
	u64 total;
	u64 longest;
	u64 disturbed;
	u64 longest_disturbed;
};

/* What a CPU has: only it writes here, and reads in an interrupt nest. */
struct lockhold_cpu {
	struct lockhold open[MAX_OPEN];
	unsigned int nr_open;
	unsigned int irqs;
	unsigned int calls;
	struct lockhold_row row[MAX_ROWS];
};

static DEFINE_PER_CPU(struct lockhold_cpu, lockhold_cpus);
static unsigned long watch_start, watch_end;
/* What a hold of nothing takes, and a call during a hold, in ns. */
static u64 empty_ns, call_ns;
static struct dentry *folder;

static unsigned long lockhold_argument(struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	return regs ? regs_get_kernel_argument(regs, 0) : 0;
}

/* Calls of this module on other CPUs than @cpu. */
static notrace unsigned int lockhold_others(struct lockhold_cpu *cpu)
{
	unsigned int others = 0;
	int i;

	for_each_online_cpu(i)
		others += READ_ONCE(per_cpu_ptr(&lockhold_cpus, i)->calls);
	return others - cpu->calls;
}

static notrace void lockhold_taken(unsigned long ip, unsigned long caller,
				   struct ftrace_ops *ops,
				   struct ftrace_regs *fregs)
{
	struct lockhold_cpu *cpu = this_cpu_ptr(&lockhold_cpus);
	struct lockhold *hold;

	cpu->calls++;
	if (caller < READ_ONCE(watch_start) || caller >= READ_ONCE(watch_end))
		return;
	/* Of a task that went on elsewhere: it is not closed. */
	if (cpu->nr_open == MAX_OPEN)
		cpu->nr_open = 0;
	hold = &cpu->open[cpu->nr_open++];
	hold->lock = lockhold_argument(fregs);
	hold->caller = caller;
	hold->irqs = cpu->irqs;
	hold->calls = cpu->calls;
	hold->others = lockhold_others(cpu);
	hold->since = local_clock();
}

static notrace struct lockhold_row *lockhold_row(struct lockhold_cpu *cpu,
						 unsigned long caller)
{
	unsigned int i;

	for (i = 0; i < MAX_ROWS - 1; i++)
		if (!cpu->row[i].caller || cpu->row[i].caller == caller)
			break;
	cpu->row[i].caller = caller;
	return &cpu->row[i];
}

static notrace void lockhold_count(struct lockhold_cpu *cpu,
				   struct lockhold *hold, u64 now)
{
	struct lockhold_row *row = lockhold_row(cpu, hold->caller);
	u64 ns = now - hold->since;
	u64 own = empty_ns + (cpu->calls - hold->calls - 1) * call_ns;

	ns -= min(ns, own);
	if (cpu->irqs != hold->irqs || lockhold_others(cpu) != hold->others) {
		row->disturbed++;
		row->longest_disturbed = max(row->longest_disturbed, ns);
		return;
	}
	row->holds++;
	row->total += ns;
	row->longest = max(row->longest, ns);
}

static notrace void lockhold_released(unsigned long ip, unsigned long caller,
				      struct ftrace_ops *ops,
				      struct ftrace_regs *fregs)
{
	u64 now = local_clock();
	struct lockhold_cpu *cpu = this_cpu_ptr(&lockhold_cpus);
	unsigned long lock;
	unsigned int i = cpu->nr_open;

	cpu->calls++;
	if (!i)
		return;
	lock = lockhold_argument(fregs);
	while (i--)
		if (cpu->open[i].lock == lock) {
			lockhold_count(cpu, &cpu->open[i], now);
			cpu->open[i] = cpu->open[--cpu->nr_open];
			return;
		}
}

static notrace void lockhold_interrupt(unsigned long ip, unsigned long caller,
				       struct ftrace_ops *ops,
				       struct ftrace_regs *fregs)
{
	this_cpu_inc(lockhold_cpus.irqs);
}

static struct ftrace_ops taken_ops = {
	.func = lockhold_taken, .flags = FTRACE_OPS_FL_SAVE_REGS,
};

static struct ftrace_ops released_ops = {
	.func = lockhold_released, .flags = FTRACE_OPS_FL_SAVE_REGS,
};

static struct ftrace_ops interrupt_ops = { .func = lockhold_interrupt };

static const struct lockhold_function {
	struct ftrace_ops *ops;
	const char *name;
} functions[] = {
	{ &taken_ops, "_raw_spin_lock" },
	{ &taken_ops, "_raw_spin_lock_irq" },
	{ &taken_ops, "_raw_spin_lock_irqsave" },
	{ &released_ops, "_raw_spin_unlock" },
	{ &released_ops, "_raw_spin_unlock_irq" },
	{ &released_ops, "_raw_spin_unlock_irqrestore" },
	{ &interrupt_ops, "irq_enter_rcu" },
	{ &interrupt_ops, "native_queued_spin_lock_slowpath" },
};

static void lockhold_clear(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&lockhold_cpus, cpu), 0,
		       sizeof(struct lockhold_cpu));
}

/* The shortest of some holds that last as long as it takes to take @inner or nothing. */
static u64 lockhold_shortest(spinlock_t *lock, spinlock_t *inner)
{
	struct lockhold_row *row;
	u64 shortest = U64_MAX;
	unsigned int i;

	for (i = 0; i < CALIBRATIONS; i++) {
		preempt_disable();
		row = this_cpu_ptr(&lockhold_cpus)->row;
		memset(row, 0, sizeof(*row));
		spin_lock(lock);
		if (inner) {
			WRITE_ONCE(watch_end, 0);
			spin_lock(inner);
			spin_unlock(inner);
			WRITE_ONCE(watch_end, ULONG_MAX);
		}
		spin_unlock(lock);
		if (row->holds)
			shortest = min(shortest, row->longest);
		preempt_enable();
	}
	return shortest;
}

static int lockhold_calibrate(void)
{
	static DEFINE_SPINLOCK(outer);
	static DEFINE_SPINLOCK(inner);

	lockhold_clear();
	WRITE_ONCE(watch_end, ULONG_MAX);
	empty_ns = lockhold_shortest(&outer, NULL);
	call_ns = div_u64(lockhold_shortest(&outer, &inner), 2);
	WRITE_ONCE(watch_end, 0);
	/* All were disturbed. */
	if (max(empty_ns, call_ns) >= U64_MAX / 2)
		return -EAGAIN;
	pr_info("a hold of nothing takes %llu ns, a call %llu ns\n", empty_ns,
		call_ns);
	return 0;
}

static ssize_t lockhold_watch(struct file *file, const char __user *user,
			      size_t count, loff_t *pos)
{
	unsigned long start, end;
	char text[64] = {};

	if (count >= sizeof(text) || copy_from_user(text, user, count))
		return -EINVAL;
	if (sscanf(text, "%lx %lx", &start, &end) != 2)
		return -EINVAL;
	WRITE_ONCE(watch_end, 0);
	lockhold_clear();
	WRITE_ONCE(watch_start, start);
	WRITE_ONCE(watch_end, end);
	return count;
}

static const struct file_operations watch_fops = {
	.owner = THIS_MODULE, .write = lockhold_watch, .open = simple_open,
};

static int holds_show(struct seq_file *m, void *unused)
{
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu)
		for (i = 0; i < MAX_ROWS; i++) {
			struct lockhold_row *row =
				&per_cpu_ptr(&lockhold_cpus, cpu)->row[i];

			if (row->caller)
				seq_printf(m, "%ps %llu %llu %llu %llu %llu\n",
					   (void *)row->caller, row->holds,
					   row->total, row->longest,
					   row->disturbed,
					   row->longest_disturbed);
		}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(holds);

static struct ftrace_ops *const all_ops[] = {
	&taken_ops, &released_ops, &interrupt_ops
};

/* Unregister the first @nr of them. */
static void lockhold_stop(unsigned int nr)
{
	while (nr--)
		unregister_ftrace_function(all_ops[nr]);
}

static int __init lockhold_init(void)
{
	const struct lockhold_function *f;
	unsigned int i;
	int ret;

	for (f = functions; f < functions + ARRAY_SIZE(functions); f++) {
		ret = ftrace_set_filter(f->ops, (unsigned char *)f->name,
					strlen(f->name), 0);
		if (ret)
			return ret;
	}
	for (i = 0; i < ARRAY_SIZE(all_ops); i++) {
		ret = register_ftrace_function(all_ops[i]);
		if (ret) {
			lockhold_stop(i);
			return ret;
		}
	}
	ret = lockhold_calibrate();
	if (ret) {
		lockhold_stop(ARRAY_SIZE(all_ops));
		return ret;
	}
	folder = debugfs_create_dir("lockhold", NULL);
	debugfs_create_file("watch", 0200, folder, NULL, &watch_fops);
	debugfs_create_file("holds", 0400, folder, NULL, &holds_fops);
	return 0;
}
module_init(lockhold_init);

static void __exit lockhold_exit(void)
{
	debugfs_remove(folder);
	lockhold_stop(ARRAY_SIZE(all_ops));
}
module_exit(lockhold_exit);

MODULE_AUTHOR("The ssd-iosched developers");
MODULE_DESCRIPTION("How long spin locks are held");
MODULE_LICENSE("GPL");
