#include "samples.h"

#include "base/mem.h"

#include <stdlib.h>

void samples_add(struct samples *samples, uint32_t value) {
    if (samples->count == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 4096;
        samples->at = mem_resize(samples->at, samples->room * sizeof(*samples->at));
    }
    samples->at[samples->count++] = value;
}

static int by_value(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

void samples_sort(struct samples *samples) {
    if (samples->count) qsort(samples->at, samples->count, sizeof(*samples->at), by_value);
}

uint32_t samples_at(const struct samples *samples, unsigned per_mille) {
    if (!samples->count) return 0;
    size_t rank = (samples->count * per_mille + 999) / 1000;
    return samples->at[rank ? rank - 1 : 0];
}

void samples_done(struct samples *samples) {
    free(samples->at);
    *samples = (struct samples){0};
}
