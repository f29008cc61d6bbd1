# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced in the guest: reports the kernel's complaints since a mark. The lab
# calls it after each command, tests/guest-runner after each test.

# Patterns of the kernel's messages about defects.
health_patterns='BUG:|kernel BUG at|WARNING:|Oops|KASAN|KCSAN|KFENCE|UBSAN:'
health_patterns+='|possible recursive locking|circular locking'
health_patterns+='|blocked for more than|soft lockup|hard LOCKUP'
health_patterns+='|detected stalls on|self-detected stall|RCU stall'
health_patterns+='|kmemleak|refcount_t|list_add corruption|list_del corruption'
health_patterns+='|general protection fault|ODEBUG:'
# User-Mode Linux: a process of the guest has more mappings than vm.max_map_count of
# the host, and is killed.
health_patterns+='|ran out of memory on the host side'

# Taint bits B, D, W and L. The project's modules set O and E: out of tree and
# not signed.
health_taint_mask=$((1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))

health_taint()
{
	echo $(($(</proc/sys/kernel/tainted) & health_taint_mask))
}

# Set a mark in the kernel's log, with the current taint. The next check, also of
# another process, judges what follows the mark.
health_mark()
{
	echo "lab: mark, taint $(health_taint)" >/dev/kmsg
}

# Print the kernel's log from the last mark on.
health_log()
{
	dmesg | tac | sed '/lab: mark, taint [0-9]*$/q' | tac | health_ours
}

# KCSAN reports races of the whole kernel, between two bars: leave out those in which none of the two
# accesses has a line of the project's modules. What an interrupt has interrupted does not access.
# Other complaints, also between the bars, stay. Three races are the block layer's own, of each driver
# that completes requests in an interrupt, as ssdemu does: the time that the plug of the interrupted
# task keeps is read and set without an order, and so are the flags of a bio.
health_ours()
{
	awk -v others="$health_patterns" '
		/BUG: KCSAN:/ { report = 1; text = $0; ours = interrupted = theirs = 0 }
		/ (by|on) .*cpu [0-9]+:$/ { interrupted = 0 }
		/ asm_(sysvec|common|exc)_/ { interrupted = 1 }
		report && !interrupted { ours = ours || (/(_iosched|ssdemu|tide|ioload)\]/ && !theirs) }
		/ in (__submit_bio|blk_[a-z_]*plug[a-z_]*) \/ (__)?blk_mq_end_request$/ ||
		/ in (__)?blk_mq_end_request \/ (__submit_bio|blk_[a-z_]*plug[a-z_]*)$/ ||
		/ in (bio_endio \/ blk_mq_submit_bio|blk_mq_submit_bio \/ bio_endio)$/ { theirs = NR }
		/BUG: KCSAN:/ { next }
		report && /=====$/ { if (ours) print text; report = 0; next }
		report && $0 ~ others { print; next }
		report { text = text "\n" $0; next }
		{ print }
		END { if (report) print text }'
}

# Exists on a kernel with kmemleak.
health_kmemleak=/sys/kernel/debug/kmemleak

# Turn off kmemleak's periodic scan; health_leaks scans. The periodic scan runs at
# nice 10 under rcu_read_lock(). Beside 48 busy threads it gets no CPU, a grace
# period takes minutes, and the kernel reports the tasks that wait for it as hung.
health_no_scans()
{
	[ ! -w $health_kmemleak ] || echo scan=off >$health_kmemleak
}

# Print the leaks. The second scan clears pointers that were in a register or on a
# stack during the first.
health_leaks()
{
	[ -w $health_kmemleak ] || return 0
	echo scan >$health_kmemleak
	echo scan >$health_kmemleak
	cat $health_kmemleak
	echo clear >$health_kmemleak
}

# Print the kernel's complaints since the mark; fail if there are any.
health_check()
{
	local log before after complaints leaks

	log=$(health_log)
	before=$(sed -n '1s/.*lab: mark, taint \([0-9]*\)$/\1/p' <<<"$log")
	if [ -z "$before" ]; then
		echo "the kernel's log overran: complaints may be lost"
		return 1
	fi
	# A report of lockdep has about 150 lines; the last ones are needed.
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
