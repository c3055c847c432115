#include "contract/nimi/transfer/speed.h"

#include <string.h>

void speed_note(struct speed *speed, uint64_t now_ms, int64_t bytes) {
    if (speed->count && bytes < speed->samples[speed->count - 1].bytes) speed->count = 0;
    if (speed->count && now_ms < speed->samples[speed->count - 1].at_ms + SPEED_STEP_MS) return;
    if (speed->count == SPEED_SAMPLES) {
        speed->count--;
        memmove(speed->samples, speed->samples + 1, speed->count * sizeof(speed->samples[0]));
    }
    speed->samples[speed->count].at_ms = now_ms;
    speed->samples[speed->count++].bytes = bytes;
}

int64_t speed_now(const struct speed *speed, uint64_t now_ms, int64_t bytes) {
    if (!speed->count) return 0;
    uint64_t took_ms = now_ms - speed->samples[0].at_ms;
    int64_t came = bytes - speed->samples[0].bytes;
    if (took_ms < SPEED_STEP_MS || came <= 0) return 0;
    double rate = (double)came * 1000 / (double)took_ms;
    return rate < (double)(INT64_MAX / 2) ? (int64_t)rate : INT64_MAX / 2;
}

int64_t speed_left_s(int64_t bytes_per_s, int64_t received, int64_t total) {
    if (bytes_per_s <= 0 || received >= total) return 0;
    return (total - received - 1) / bytes_per_s + 1;
}
