#include "contract/nimi/health/sample.h"

#include "base/clock.h"
#include "base/machine.h"

#include <sys/resource.h>

static int64_t cpu_milli(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) return 0;
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static int64_t memory_bytes(void) {
    uint64_t bytes;
    return machine_resident_bytes(&bytes) ? (int64_t)bytes : 0;
}

struct health_sample health_sample_take(struct nimi_runtime *runtime) {
    struct occupancy slots = scheduler_occupancy(runtime->scheduler, STR_EMPTY);
    struct occupancy workflows = scheduler_occupancy(runtime->workflows, STR_EMPTY);
    struct health_sample now = {.queue_depth = slots.waiting,
                                .inference_jobs = slots.global_used,
                                .workflows = workflows.global_used,
                                .cpu_milli = cpu_milli(),
                                .memory_bytes = memory_bytes(),
                                .unix_ms = clock_unix_ms()};
    now.state = nimi_runtime_why(runtime, now.why);
    return now;
}
