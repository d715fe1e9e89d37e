/* The wall clock of one process, shifted while it runs: loaded into it with LD_PRELOAD.
 *
 * The shift is a number of nanoseconds at the start of the file that TENURE_SHIFTED_CLOCK names. The file is
 * mapped, so that a test moves the clock by writing to it. CLOCK_MONOTONIC stays what it is. The real
 * clock is read by the system call itself: the functions of libc are the ones that are replaced. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void map_shift(void) {
    const char *name = getenv("TENURE_SHIFTED_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *at = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED)
        shift = at;
}

static void move(struct timespec *time) {
    int64_t ns = time->tv_nsec + (shift ? *shift : 0);
    time->tv_sec += ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    if (time->tv_nsec < 0) {
        time->tv_nsec += 1000000000;
        time->tv_sec -= 1;
    }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        move(time);
    return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return (time_t)-1;
    if (seconds)
        *seconds = now.tv_sec;
    return now.tv_sec;
}
