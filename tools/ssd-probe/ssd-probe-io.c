// SPDX-License-Identifier: GPL-2.0
/*
 * ssd-probe-io - make the I/O of a list on a block device and report when each ended
 *
 * The measuring half of ssd-probe: it knows nothing of what is looked for. It reads jobs
 * from stdin and writes results to stdout, both binary in the machine's byte order,
 * until stdin ends; ssd_probe/engine.py is the other side. All I/O is direct, through
 * one io_uring with registered buffers and a registered file. The results of a job
 * depend on no page fault and no allocation: memory for the largest job is allocated
 * and touched before the first one.
 *
 * DESCRIPTOR is the device, which the caller has opened with O_DIRECT and may hold: no name
 * is opened, which could mean another device by now.
 *
 * Usage: ssd-probe-io DESCRIPTOR ro|rw MAX_DEPTH MAX_BYTES MAX_IOS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL
/*
 * A drive that ends no I/O for so long is taken for dead. The kernel's own limit for
 * SCSI and NVMe is 30 s, and it tries again.
 */
#define PATIENCE_S 180

enum op { OP_READ, OP_WRITE, OP_FLUSH, OP_COUNT };

/* The I/O waits for the end of all before it. */
#define IO_BARRIER 1

struct job {
	uint32_t count;		/* I/Os that follow */
	uint32_t depth;		/* at most so many in flight */
	uint64_t limit_ns;	/* begin no I/O later than this; 0: no limit */
};

struct io {
	uint64_t offset;	/* bytes */
	uint32_t length;	/* bytes */
	uint16_t op;
	uint16_t flags;
	uint64_t delay_ns;	/* pause before it; only with IO_BARRIER */
};

struct result {
	uint64_t begin_ns;	/* since the start of the job */
	uint64_t end_ns;
	int64_t status;		/* bytes, or a negative error number */
};

struct engine {
	struct io_uring ring;
	struct job job;
	struct io *ios;
	struct result *results;
	char *buffers[2];	/* of all reads, and of all writes: contents do not matter */
	uint32_t max_depth;
	uint32_t max_bytes;
	uint32_t max_ios;
	bool writable;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "ssd-probe-io: %s: %s\n", what, strerror(error));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Return false at the end of the input. */
static bool read_all(void *data, size_t bytes)
{
	char *next = data;

	while (bytes) {
		ssize_t got = read(STDIN_FILENO, next, bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			die("stdin", errno);
		if (!got)
			return false;
		next += got;
		bytes -= got;
	}
	return true;
}

static void write_all(const void *data, size_t bytes)
{
	const char *next = data;

	while (bytes) {
		ssize_t put = write(STDOUT_FILENO, next, bytes);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			die("stdout", errno);
		next += put;
		bytes -= put;
	}
}

/* Return @bytes of memory that is present. */
static void *memory(size_t bytes)
{
	void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (data == MAP_FAILED)
		die("memory", errno);
	return data;
}

/* Fill @data so that a drive can neither compress it nor find two equal sectors. */
static void fill(uint64_t *data, size_t bytes)
{
	uint64_t state = 0x9e3779b97f4a7c15ULL;

	for (size_t word = 0; word < bytes / sizeof(*data); word++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		data[word] = state;
	}
}

static void check_job(struct engine *engine)
{
	if (engine->job.count > engine->max_ios || !engine->job.depth ||
	    engine->job.depth > engine->max_depth)
		die("job", EINVAL);
}

static void check_ios(struct engine *engine)
{
	for (uint32_t index = 0; index < engine->job.count; index++) {
		const struct io *io = &engine->ios[index];

		if (io->op >= OP_COUNT || io->length > engine->max_bytes)
			die("I/O", EINVAL);
		if (io->op != OP_READ && !engine->writable)
			die("I/O", EROFS);
	}
}

static void prepare(struct engine *engine, uint32_t index)
{
	const struct io *io = &engine->ios[index];
	struct io_uring_sqe *sqe = io_uring_get_sqe(&engine->ring);

	switch (io->op) {
	case OP_READ:
		io_uring_prep_read_fixed(sqe, 0, engine->buffers[0], io->length, io->offset, 0);
		break;
	case OP_WRITE:
		io_uring_prep_write_fixed(sqe, 0, engine->buffers[1], io->length, io->offset, 1);
		break;
	default:
		io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
	}
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data64(sqe, index);
}

/* Take the completions that are there. Return their number. */
static uint32_t reap(struct engine *engine, uint64_t start)
{
	struct io_uring_cqe *cqe;
	uint64_t now = now_ns();
	uint32_t count = 0;
	unsigned int head;

	io_uring_for_each_cqe(&engine->ring, head, cqe) {
		struct result *result = &engine->results[cqe->user_data];

		result->end_ns = now - start;
		result->status = cqe->res;
		count++;
	}
	io_uring_cq_advance(&engine->ring, count);
	return count;
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Return true if the I/O @index may begin, with @flying others in flight. */
static bool may_begin(struct engine *engine, uint32_t index, uint32_t flying, uint32_t queued)
{
	if (index == engine->job.count || flying + queued >= engine->job.depth)
		return false;
	return !(engine->ios[index].flags & IO_BARRIER) || !(flying + queued);
}

/* Submit what was prepared, and wait for a completion. */
static void submit_and_wait(struct engine *engine)
{
	struct __kernel_timespec patience = { .tv_sec = PATIENCE_S };
	struct io_uring_cqe *cqe;
	int said;

	do {
		said = io_uring_submit_and_wait_timeout(&engine->ring, &cqe, 1, &patience, NULL);
	} while (said == -EINTR);
	if (said == -ETIME) {
		fprintf(stderr, "ssd-probe-io: the drive has ended no I/O for %d s\n", PATIENCE_S);
		exit(1);
	}
	if (said < 0)
		die("io_uring_submit_and_wait_timeout", -said);
}

/* Make the I/O of a job. Return the number of I/Os that were begun. */
static uint32_t run(struct engine *engine)
{
	const struct job *job = &engine->job;
	uint64_t start = now_ns();
	uint32_t next = 0, flying = 0;

	while (next < job->count || flying) {
		uint32_t first = next;
		bool late = job->limit_ns && now_ns() - start > job->limit_ns;
		uint64_t begin;

		while (!late && may_begin(engine, next, flying, next - first)) {
			if (engine->ios[next].delay_ns)
				pause_ns(engine->ios[next].delay_ns);
			prepare(engine, next++);
		}
		if (late && !flying)
			break;
		begin = now_ns() - start;
		for (uint32_t index = first; index < next; index++)
			engine->results[index].begin_ns = begin;
		flying += next - first;
		submit_and_wait(engine);
		flying -= reap(engine, start);
	}
	return next;
}

static void set_up(struct engine *engine, int file)
{
	int flags = fcntl(file, F_GETFL);
	struct iovec vectors[2];
	int said;

	if (flags < 0)
		die("descriptor", errno);
	if (!(flags & O_DIRECT))
		die("descriptor", EINVAL);
	said = io_uring_queue_init(engine->max_depth, &engine->ring, 0);
	if (said)
		die("io_uring_queue_init (Linux 5.1 or newer, not disabled)", -said);
	for (int way = 0; way < 2; way++) {
		engine->buffers[way] = memory(engine->max_bytes);
		vectors[way].iov_base = engine->buffers[way];
		vectors[way].iov_len = engine->max_bytes;
	}
	fill((uint64_t *)engine->buffers[1], engine->max_bytes);
	engine->ios = memory(engine->max_ios * sizeof(*engine->ios));
	engine->results = memory(engine->max_ios * sizeof(*engine->results));
	said = io_uring_register_buffers(&engine->ring, vectors, 2);
	if (said)
		die("io_uring_register_buffers", -said);
	said = io_uring_register_files(&engine->ring, &file, 1);
	if (said)
		die("io_uring_register_files", -said);
}

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || !value || value > UINT32_MAX)
		die(text, EINVAL);
	return value;
}

int main(int argc, char **argv)
{
	struct engine engine = {};

	if (argc != 6 || (strcmp(argv[2], "ro") && strcmp(argv[2], "rw"))) {
		fputs("usage: ssd-probe-io DESCRIPTOR ro|rw MAX_DEPTH MAX_BYTES MAX_IOS\n", stderr);
		return 2;
	}
	/*
	 * Nothing is written once the parent, which holds the device, has ended. If it has ended
	 * before this call, the input ends at once.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("prctl", errno);
	/* Ctrl-C is the parent's to handle: it ends the input. */
	signal(SIGINT, SIG_IGN);
	engine.writable = !strcmp(argv[2], "rw");
	engine.max_depth = number(argv[3]);
	engine.max_bytes = number(argv[4]);
	engine.max_ios = number(argv[5]);
	set_up(&engine, number(argv[1]));
	while (read_all(&engine.job, sizeof(engine.job))) {
		uint32_t done;

		check_job(&engine);
		if (!read_all(engine.ios, engine.job.count * sizeof(*engine.ios)))
			die("stdin", EPIPE);
		check_ios(&engine);
		done = run(&engine);
		write_all(&done, sizeof(done));
		write_all(engine.results, done * sizeof(*engine.results));
	}
	return 0;
}
