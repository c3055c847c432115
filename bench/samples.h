/* samples: every measurement kept, so that percentiles are exact.
 *
 * Memory   owns its numbers; samples_done() frees them.
 * Threads  none.
 */
#ifndef WEIR_BENCH_SAMPLES_H
#define WEIR_BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

struct samples {
    uint32_t *at;
    size_t count, room;
};

void samples_add(struct samples *samples, uint32_t value);

/* Put them in order; samples_at() wants that. */
void samples_sort(struct samples *samples);

/* The value that `per_mille` of a thousand samples do not exceed; 1000 is the maximum. 0 when
 * there are none. */
uint32_t samples_at(const struct samples *samples, unsigned per_mille);

void samples_done(struct samples *samples);

#endif
