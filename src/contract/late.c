#include "contract/late.h"

#include "base/clock.h"

/* Longer than the store usually takes. If it takes longer, the next multiple is used. */
#define GRAIN_US 5000

/* A moment closer than this is skipped, because the timer would fire too late. */
#define NEAR_US 500

void late_begin(struct late *late) {
    *late = (struct late){.began_us = clock_mono_us()};
}

static void on_alarm(void *ctx) {
    struct late *late = ctx;
    late->alarm = NULL;
    late->refuse(late->call, late->ctx); /* which may end its owner */
}

void late_refuse(struct late *late, struct loop *loop, struct route_call *call,
                 late_refuse_fn *refuse, void *ctx) {
    uint64_t passed_us = clock_mono_us() + NEAR_US - late->began_us;
    uint64_t at_us = late->began_us + (passed_us / GRAIN_US + 1) * GRAIN_US;
    late->call = call;
    late->refuse = refuse;
    late->ctx = ctx;
    late->alarm = alarm_start(loop, at_us, on_alarm, late);
}

void late_stop(struct late *late) {
    alarm_stop(late->alarm);
    late->alarm = NULL;
}
