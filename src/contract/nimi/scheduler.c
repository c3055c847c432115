#include "contract/nimi/scheduler.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "loop/slots.h"

#include <stdlib.h>

#define DEFAULT_APP STR("_default")

struct scheduler {
    struct scheduler_limits limits;
    struct slots *slots;
};

struct ticket {
    struct slot slot;
    struct text app; /* a caller may send any bytes, NUL included */
    ticket_granted_fn *on_granted;
    void *ctx;
    uint64_t since_ms, waited_ms;
    bool released; /* released while the slot was on its way */
};

struct scheduler *scheduler_new(const struct scheduler_limits *limits) {
    struct scheduler *scheduler = MEM_NEW(struct scheduler);
    scheduler->limits = *limits;
    scheduler->slots = slots_new(&(struct slots_limits){limits->global, limits->queue_max});
    return scheduler;
}

void scheduler_free(struct scheduler *scheduler) {
    if (!scheduler) return;
    slots_free(scheduler->slots);
    free(scheduler);
}

/* --- tickets ------------------------------------------------------------------------------ */

static void ticket_free(struct ticket *ticket) {
    text_done(&ticket->app);
    free(ticket);
}

static void slot_granted(void *ctx) {
    struct ticket *ticket = ctx;
    if (ticket->released) {
        ticket_free(ticket);
        return;
    }
    ticket->waited_ms = loop_now_ms(ticket->slot.loop) - ticket->since_ms;
    if (ticket_starved(ticket))
        log_often(LOG_WARNING, "a call of app '%s' waited %llu ms for a model: starved",
                  ticket->app.at, (unsigned long long)ticket->waited_ms);
    ticket->on_granted(ticket->ctx);
}

enum ticket_state scheduler_take(struct scheduler *scheduler, struct str app, struct loop *loop,
                                 ticket_granted_fn *on_granted, void *ctx,
                                 struct ticket **ret) {
    static const enum ticket_state answers[] = {[SLOTS_TAKEN] = TICKET_GRANTED,
                                                [SLOTS_WAITING] = TICKET_WAITS,
                                                [SLOTS_FULL] = TICKET_REFUSED};
    struct ticket *ticket = MEM_NEW(struct ticket);
    struct str name = app.len ? app : DEFAULT_APP;
    *ticket = (struct ticket){.slot = {.loop = loop, .granted = slot_granted, .ctx = ticket},
                              .app = text_copy(name),
                              .on_granted = on_granted,
                              .ctx = ctx,
                              .since_ms = loop_now_ms(loop)};
    enum ticket_state state =
        answers[slots_enter(scheduler->slots, name, scheduler->limits.per_app, &ticket->slot)];
    if (state == TICKET_REFUSED) {
        ticket_free(ticket);
        ticket = NULL;
    }
    *ret = ticket;
    return state;
}

void scheduler_release(struct ticket *ticket) {
    if (!ticket) return;
    ticket->released = true;
    if (slots_withdraw(&ticket->slot) || slots_leave(&ticket->slot)) ticket_free(ticket);
}

uint64_t ticket_waited_ms(const struct ticket *ticket) {
    return ticket->waited_ms;
}

bool ticket_starved(const struct ticket *ticket) {
    return ticket->waited_ms >= SCHEDULER_STARVED_MS;
}

struct occupancy scheduler_occupancy(struct scheduler *scheduler, struct str app) {
    struct slots_use now = slots_used(scheduler->slots, app.len ? app : DEFAULT_APP);
    return (struct occupancy){.global_used = (unsigned)now.used,
                              .global_cap = scheduler->limits.global,
                              .app_used = (unsigned)now.key_used,
                              .app_cap = scheduler->limits.per_app,
                              .waiting = now.waiting};
}
