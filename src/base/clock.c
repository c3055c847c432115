#include "base/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

int64_t clock_unix_ms(void) {
    return (int64_t)(read_us(CLOCK_REALTIME) / 1000u);
}

int64_t clock_unix_us(void) {
    return (int64_t)read_us(CLOCK_REALTIME);
}

uint64_t clock_mono_ms(void) {
    return read_us(CLOCK_MONOTONIC) / 1000u;
}

uint64_t clock_mono_us(void) {
    return read_us(CLOCK_MONOTONIC);
}
