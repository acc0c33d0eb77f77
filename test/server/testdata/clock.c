// The wall clock of a process, moved by as many microseconds as stand in the
// file that SECKILL_TEST_CLOCK names. Whoever writes the file moves the clock at
// once. The monotonic clock, which nobody can set, is left alone.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *moved;

__attribute__((constructor)) static void attach(void) {
	const char *path = getenv("SECKILL_TEST_CLOCK");
	if (!path)
		return;
	int fd = open(path, O_RDONLY);
	void *page = fd < 0 ? MAP_FAILED : mmap(0, sizeof *moved, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		abort();
	close(fd);
	moved = page;
}

int clock_gettime(clockid_t id, struct timespec *at) {
	int failed = syscall(SYS_clock_gettime, id, at);
	if (failed || !moved || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return failed;
	int64_t us = at->tv_sec * INT64_C(1000000) + at->tv_nsec / 1000 + *moved;
	at->tv_sec = us / 1000000;
	at->tv_nsec = us % 1000000 * 1000;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	struct timespec at;
	int failed = clock_gettime(CLOCK_REALTIME, &at);
	if (!failed) {
		tv->tv_sec = at.tv_sec;
		tv->tv_usec = at.tv_nsec / 1000;
	}
	return failed;
}

time_t time(time_t *to) {
	struct timespec at;
	clock_gettime(CLOCK_REALTIME, &at);
	if (to)
		*to = at.tv_sec;
	return at.tv_sec;
}
