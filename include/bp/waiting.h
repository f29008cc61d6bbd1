/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiting for the next request of a process, for both bases. A part of
 * bp-iosched.c.
 *
 * The base decides when to wait, bp/think-time.h whether that is worth it. To
 * wait, select() returns NULL. The core then holds all requests and calls
 * select() again when a request is inserted, or when a completion or the timer
 * calls iosched_wake().
 *
 * A wait lasts at most antic_us from the completion of the last request. It
 * ends early with the next request of the process, with any dispatch, and at
 * the deadline of a queued request.
 */
#ifndef _BP_WAITING_H
#define _BP_WAITING_H

static u32 bp_now(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_USEC);
}

/* Only the base anticipatory knows distances. */
static struct bp_limits bp_limits_of(struct bp_data *bd)
{
	return (struct bp_limits) {
		.wait = bd->antic_us,
		.near_kb = bd->base == BP_FAIR ? 0 : bd->antic_near_kb,
	};
}

/* Return true if @rq begins in the block in which its process wrote last. */
static bool bp_stays_in_block(struct bp_data *bd, struct bp_think *think,
			      struct request *rq)
{
	return think->write_end && bp_block_at(bd, blk_rq_pos(rq)) ==
				   bp_block_at(bd, think->write_end - 1);
}

/* Learn from a request that a process inserts. */
static void bp_learn_from(struct bp_data *bd, struct bp_process *process,
			  struct request *rq)
{
	struct bp_limits limits = bp_limits_of(bd);
	struct bp_think *think = &process->think;
	bool back = bp_process_idle(process);

	bp_count_newcomer(&bd->newcomers, think);
	if (back && think->done)
		bp_learn_pause(think, &bd->newcomers, bp_now(), &limits);
	if (rq_data_dir(rq) == READ)
		bp_learn_read(think, blk_rq_pos(rq), blk_rq_sectors(rq), &limits);
	else
		bp_learn_write(think, blk_rq_pos(rq), blk_rq_sectors(rq),
			       bp_stays_in_block(bd, think, rq), back);
}

static enum hrtimer_restart bp_timer(struct hrtimer *timer)
{
	struct bp_data *bd = container_of(timer, struct bp_data, timer);

	WRITE_ONCE(bd->timed_out, true);
	iosched_wake(&bd->io);
	return HRTIMER_NORESTART;
}

/* Time until the first deadline of a tier, in us; at most a second. */
static u32 bp_until_deadline(struct bp_data *bd, unsigned int tier)
{
	unsigned long left = MAX_JIFFY_OFFSET, now = jiffies;
	unsigned int dir;

	for (dir = READ; dir <= WRITE; dir++) {
		struct request *rq = iosched_first(&bd->io, tier, dir);

		if (rq && time_after((unsigned long)rq->fifo_time, now))
			left = min(left, (unsigned long)rq->fifo_time - now);
		else if (rq)
			left = 0;
	}
	return jiffies_to_usecs(min(left, msecs_to_jiffies(MSEC_PER_SEC)));
}

static void bp_stop_waiting(struct bp_data *bd, enum bp_outcome outcome)
{
	if (bd->antic.awaited)
		bp_wait_end(&bd->antic, outcome, bp_now());
}

/*
 * Continue the wait under way, or begin one for @process. Return false if the
 * time of the wait is over, or a wait for @process is not worth it.
 *
 * The timer of a wait that ended early is not cancelled. At worst it ends the
 * next wait early.
 */
static bool bp_wait(struct bp_data *bd, struct bp_process *process)
{
	struct bp_limits limits = bp_limits_of(bd);
	u32 left;

	lockdep_assert_held(&bd->io.lock);
	if (bd->antic.awaited) {
		if (!READ_ONCE(bd->timed_out))
			return true;
		bp_stop_waiting(bd, BP_MISS);
		return false;
	}
	if (!bp_process_idle(process))
		return false;
	left = bp_wait_begin(&bd->antic, &process->think, &bd->newcomers,
			     bp_now(), &limits);
	if (!left)
		return false;
	left = min(left, bp_until_deadline(bd, process->tier));
	WRITE_ONCE(bd->timed_out, false);
	hrtimer_start(&bd->timer, ns_to_ktime((u64)left * NSEC_PER_USEC),
		      HRTIMER_MODE_REL);
	return true;
}

#endif /* _BP_WAITING_H */
