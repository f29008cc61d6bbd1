# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced in the guest: has the kernel complained since a mark was set? Used
# after every command in the lab and after every test.

# What the kernel prints when something is wrong.
health_patterns='BUG:|kernel BUG at|WARNING:|Oops|KASAN|KCSAN|KFENCE|UBSAN:'
health_patterns+='|possible recursive locking|circular locking'
health_patterns+='|blocked for more than|soft lockup|hard LOCKUP'
health_patterns+='|detected stalls on|self-detected stall|RCU stall'
health_patterns+='|kmemleak|refcount_t|list_add corruption|list_del corruption'
health_patterns+='|general protection fault|ODEBUG:'

# Taint bits B, D, W and L. O and E are ours: out of tree, not signed.
health_taint_mask=$((1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))

health_taint()
{
	echo $(($(</proc/sys/kernel/tainted) & health_taint_mask))
}

# All until here has been judged. The mark is in the kernel's log, with the
# taint of now, so that it holds for whoever checks next.
health_mark()
{
	echo "lab: mark, taint $(health_taint)" >/dev/kmsg
}

# Print what the kernel said since the last mark, headed by the mark.
health_log()
{
	dmesg | tac | sed '/lab: mark, taint [0-9]*$/q' | tac
}

# Leaks are reported by a kernel with kmemleak only.
health_kmemleak=/sys/kernel/debug/kmemleak

# Scan for them in health_leaks and at no other time. Every ten minutes the
# kernel does so by itself, at nice 10 and under rcu_read_lock(): beside 48 busy
# threads it got no CPU, one grace period took three minutes, and what waited
# for it was reported as hung.
health_no_scans()
{
	[ ! -w $health_kmemleak ] || echo scan=off >$health_kmemleak
}

# Print the leaks; the second scan is for what was still in a register or on a
# stack at the first.
health_leaks()
{
	[ -w $health_kmemleak ] || return 0
	echo scan >$health_kmemleak
	echo scan >$health_kmemleak
	cat $health_kmemleak
	echo clear >$health_kmemleak
}

# Print the kernel's complaints since the mark; fail when there is one.
health_check()
{
	local log before after complaints leaks

	log=$(health_log)
	before=$(sed -n '1s/.*lab: mark, taint \([0-9]*\)$/\1/p' <<<"$log")
	if [ -z "$before" ]; then
		echo "the kernel's log overran: nothing can be said of it"
		return 1
	fi
	# A report of lockdep has about 150 lines, and no meaning without the last.
	complaints=$(grep -A 160 'circular locking' <<<"$log" | head -n 200)
	complaints+=$(grep -v 'circular locking' <<<"$log" |
		grep -E -A 30 "$health_patterns" | head -n 90)
	after=$(health_taint)
	[ "$after" = "$before" ] ||
		complaints+="${complaints:+$'\n'}kernel tainted: $before before, $after after"
	leaks=$(health_leaks)
	complaints+=${leaks:+$'\n'$leaks}
	[ -z "$complaints" ] || { echo "$complaints"; return 1; }
}
