#include "base/clock.h"

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

struct timespec clock_mono_in(uint64_t ms) {
    uint64_t at_us = clock_mono_us() + 1000 * ms;
    return (struct timespec){.tv_sec = (time_t)(at_us / 1000000u),
                             .tv_nsec = (long)(at_us % 1000000u) * 1000};
}
