#include "loop/alarm.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

struct alarm {
    task_fn *fn;
    void *ctx;
    struct timer timer; /* used when there is no descriptor */
    uv_poll_t poll;
    int fd; /* -1: the timer is used */
};

static void alarm_on_closed(uv_handle_t *handle) {
    struct alarm *alarm = handle->data;
    close(alarm->fd);
    free(alarm);
}

static void alarm_end(struct alarm *alarm) {
    timer_stop(&alarm->timer);
    if (alarm->fd < 0) {
        free(alarm);
        return;
    }
    uv_poll_stop(&alarm->poll);
    uv_close((uv_handle_t *)&alarm->poll, alarm_on_closed);
}

static void fire(struct alarm *alarm) {
    task_fn *fn = alarm->fn;
    void *ctx = alarm->ctx;
    alarm_end(alarm);
    fn(ctx);
}

static void alarm_on_timer(void *ctx) {
    fire(ctx);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    fire(poll->data);
}

/* False: no descriptor is available, or the loop is a fake one. */
static bool arm(struct alarm *alarm, struct loop *loop, uint64_t at_us) {
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_us / 1000000),
                                                 .tv_nsec = (long)(at_us % 1000000) * 1000}};
    if (!loop_uv(loop)) return false;
    alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm->fd < 0) return false;
    if (timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL) == 0 &&
        uv_poll_init(loop_uv(loop), &alarm->poll, alarm->fd) == 0) {
        alarm->poll.data = alarm;
        uv_poll_start(&alarm->poll, UV_READABLE, on_readable);
        return true;
    }
    close(alarm->fd);
    alarm->fd = -1;
    return false;
}

struct alarm *alarm_start(struct loop *loop, uint64_t at_us, task_fn *fn, void *ctx) {
    struct alarm *alarm = MEM_NEW(struct alarm);
    uint64_t now_us = clock_mono_us();
    *alarm = (struct alarm){.fn = fn, .ctx = ctx, .fd = -1};
    timer_init(&alarm->timer, loop, alarm_on_timer, alarm);
    if (!arm(alarm, loop, at_us))
        timer_start(&alarm->timer, at_us > now_us ? (at_us - now_us) / 1000 + 1 : 0);
    return alarm;
}

void alarm_stop(struct alarm *alarm) {
    if (alarm) alarm_end(alarm);
}
