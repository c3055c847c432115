/* late: a refusal whose timing reveals nothing.
 *
 * A run that a caller may not see is refused with the same words as one that does not exist.
 * The timing would still give it away, because another caller's run must be found and read
 * before its owner is known. So both refusals are sent at a moment that depends only on when
 * the request arrived.
 */
#include "base/clock.h"
#include "contract/weir/inner.h"
#include "loop/alarm.h"

/* Longer than the store usually takes. If it takes longer, the next multiple is used. */
#define GRAIN_US 5000

/* A moment closer than this is skipped, because the timer would fire too late. */
#define NEAR_US 500

void api_late_begin(struct api_late *late) {
    *late = (struct api_late){.began_us = clock_mono_us()};
}

static void on_alarm(void *ctx) {
    struct api_late *late = ctx;
    late->alarm = NULL;
    late->refuse(late->call); /* which may end its owner */
}

void api_late_refuse(struct api_late *late, struct loop *loop, struct route_call *call,
                     api_refuse_fn *refuse) {
    uint64_t passed_us = clock_mono_us() + NEAR_US - late->began_us;
    uint64_t at_us = late->began_us + (passed_us / GRAIN_US + 1) * GRAIN_US;
    late->call = call;
    late->refuse = refuse;
    late->alarm = alarm_start(loop, at_us, on_alarm, late);
}

void api_late_stop(struct api_late *late) {
    alarm_stop(late->alarm);
    late->alarm = NULL;
}
