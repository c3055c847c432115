#include "contract/nimi/scheduler.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "contract/nimi/shared_slot.h"
#include "loop/slots.h"
#include "store/store.h"

#include <stdatomic.h>
#include <stdlib.h>

#define DEFAULT_APP STR("_default")

struct scheduler {
    struct scheduler_limits limits;
    struct slots *slots;
    struct fair *fair;             /* guarded by the lock of `slots` */
    _Atomic(struct store *) store; /* NULL: the slots are this process's own */
};

struct ticket {
    struct slot slot;
    struct fair_item item;
    struct scheduler *scheduler;
    const struct ticket_ask *ask; /* during scheduler_take() only */
    struct text app;              /* a caller may send any bytes, NUL included */
    ticket_granted_fn *on_granted;
    void *ctx;
    uint64_t since_ms, waited_ms;
    bool background;
    struct shared_slot *shared; /* NULL: not asked for, or not needed */
    bool released;              /* released while the slot was on its way */
};

/* --- the order of the slots --------------------------------------------------------------- */

static struct ticket *ticket_of(const struct slot *slot) {
    return slot->ctx;
}

static bool ticket_has_room(const struct slot *slot, void *ctx) {
    return fair_has_room(ctx, &ticket_of(slot)->item);
}

static bool ticket_has_place(const struct slot *slot, void *ctx) {
    return fair_has_place(ctx, &ticket_of(slot)->item);
}

static void ticket_wait(struct slot *slot, void *ctx) {
    fair_wait(ctx, &ticket_of(slot)->item);
}

static void ticket_unwait(struct slot *slot, void *ctx) {
    fair_unwait(ctx, &ticket_of(slot)->item);
}

static void ticket_take(struct slot *slot, void *ctx) {
    fair_take(ctx, &ticket_of(slot)->item);
}

static void ticket_give_back(struct slot *slot, void *ctx) {
    fair_give_back(ctx, &ticket_of(slot)->item);
}

static struct ticket *ticket_of_item(const struct fair_item *item) {
    return CONTAINER_OF((uintptr_t)item, struct ticket, item);
}

static bool ticket_fits(const struct fair_item *item, void *ctx) {
    (void)ctx;
    return slots_fits(&ticket_of_item(item)->slot);
}

static struct slot *next_slot(void *ctx) {
    struct fair_item *item = fair_next(ctx, ticket_fits, NULL);
    return item ? &ticket_of_item(item)->slot : NULL;
}

static void ticket_join(struct slot *slot, void *ctx) {
    struct ticket *ticket = ticket_of(slot);
    const struct ticket_ask *ask = ticket->ask;
    const struct scheduler_limits *limits = &ticket->scheduler->limits;
    struct str app = text_str(ticket->app);
    unsigned weight = limits->weight ? limits->weight(app, limits->weight_ctx) : 1;
    fair_join(ctx, &ticket->item, ask->class, ask->owner, app, weight);
}

static void ticket_part(struct slot *slot, void *ctx) {
    fair_leave(ctx, &ticket_of(slot)->item);
}

static const struct slots_order fair_order = {.enter = ticket_join,
                                              .gone = ticket_part,
                                              .has_room = ticket_has_room,
                                              .has_place = ticket_has_place,
                                              .wait = ticket_wait,
                                              .unwait = ticket_unwait,
                                              .take = ticket_take,
                                              .leave = ticket_give_back,
                                              .next = next_slot};

/* --- the scheduler ------------------------------------------------------------------------ */

/* Without a setting, background work leaves a quarter of the slots to calls that someone
 * watches, and at least one. The only slot is for everything. */
static size_t background_of(const struct scheduler_limits *limits) {
    if (limits->background) return limits->background;
    if (limits->global == SCHEDULER_NO_LIMIT || limits->global < 2) return limits->global;
    return limits->global - (limits->global < 4 ? 1 : limits->global / 4);
}

struct scheduler *scheduler_new(const struct scheduler_limits *limits) {
    struct scheduler *scheduler = MEM_NEW(struct scheduler);
    scheduler->limits = *limits;
    scheduler->fair = fair_new(&(struct fair_limits){.queue_max = limits->queue_max,
                                                     .queue_per_app = limits->queue_per_app,
                                                     .background_max = background_of(limits)});
    scheduler->slots = slots_new(&(struct slots_limits){
        .all = limits->global, .order = &fair_order, .order_ctx = scheduler->fair});
    return scheduler;
}

void scheduler_free(struct scheduler *scheduler) {
    if (!scheduler) return;
    slots_free(scheduler->slots);
    fair_free(scheduler->fair);
    free(scheduler);
}

/* --- tickets ------------------------------------------------------------------------------ */

static void ticket_free(struct ticket *ticket) {
    text_done(&ticket->app);
    free(ticket);
}

static void ticket_go(void *ctx) {
    struct ticket *ticket = ctx;
    ticket->waited_ms = loop_now_ms(ticket->slot.loop) - ticket->since_ms;
    if (ticket_starved(ticket))
        log_often(LOG_WARNING, "a call of app '%s' waited %llu ms for a model: starved",
                  ticket->app.at, (unsigned long long)ticket->waited_ms);
    ticket->on_granted(ticket->ctx);
}

/* It has its slot here. False: that is all it needs. */
static bool ticket_share(struct ticket *ticket) {
    const struct scheduler_limits *limits = &ticket->scheduler->limits;
    struct store *store = atomic_load(&ticket->scheduler->store);
    if (!store) return false;
    ticket->shared = shared_slot_take(
        &(struct shared_slot_options){.store = store,
                                      .loop = ticket->slot.loop,
                                      .pool = str_from(limits->pool),
                                      .app = text_str(ticket->app),
                                      .background = ticket->background,
                                      .all_max = limits->global,
                                      .app_max = limits->per_app,
                                      .background_max = (unsigned)background_of(limits),
                                      .on_held = ticket_go,
                                      .ctx = ticket});
    return true;
}

static void slot_granted(void *ctx) {
    struct ticket *ticket = ctx;
    if (ticket->released) {
        ticket_free(ticket);
    } else if (!ticket_share(ticket)) {
        ticket_go(ticket);
    }
}

void scheduler_share(struct scheduler *scheduler, struct store *store) {
    if (scheduler->limits.pool && store && store_is_shared(store))
        atomic_store(&scheduler->store, store);
}

enum ticket_state scheduler_take(struct scheduler *scheduler, const struct ticket_ask *ask,
                                 struct ticket **ret) {
    static const enum ticket_state answers[] = {[SLOTS_TAKEN] = TICKET_GRANTED,
                                                [SLOTS_WAITING] = TICKET_WAITS,
                                                [SLOTS_FULL] = TICKET_REFUSED};
    struct ticket *ticket = MEM_NEW(struct ticket);
    struct str app = ask->app.len ? ask->app : DEFAULT_APP;
    *ticket =
        (struct ticket){.slot = {.loop = ask->loop, .granted = slot_granted, .ctx = ticket},
                        .scheduler = scheduler,
                        .ask = ask,
                        .app = text_copy(app),
                        .on_granted = ask->on_granted,
                        .ctx = ask->ctx,
                        .background = ask->class == FAIR_BACKGROUND,
                        .since_ms = loop_now_ms(ask->loop)};
    enum ticket_state state =
        answers[slots_enter(scheduler->slots, app, scheduler->limits.per_app, &ticket->slot)];
    ticket->ask = NULL;
    if (state == TICKET_REFUSED) {
        ticket_free(ticket);
        ticket = NULL;
    } else if (state == TICKET_GRANTED && ticket_share(ticket)) {
        state = TICKET_WAITS;
    }
    *ret = ticket;
    return state;
}

void scheduler_release(struct ticket *ticket) {
    if (!ticket) return;
    ticket->released = true;
    shared_slot_leave(ticket->shared);
    ticket->shared = NULL;
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
