/* sample: one measurement of the runtime, for all that tell of its health.
 *
 * Memory   a plain value.
 * Threads  any.
 * Source   contracts/nimi.md 1.8.
 */
#ifndef WEIR_CONTRACT_NIMI_HEALTH_SAMPLE_H
#define WEIR_CONTRACT_NIMI_HEALTH_SAMPLE_H

#include "contract/nimi/nimi.h"

struct health_sample {
    enum lifecycle state;
    char why[NIMI_WHY_BYTES];
    size_t queue_depth, inference_jobs, workflows;
    int64_t cpu_milli, memory_bytes; /* CPU time since the start; resident bytes */
    int64_t unix_ms;
};

struct health_sample health_sample_take(struct nimi_runtime *runtime);

#endif
