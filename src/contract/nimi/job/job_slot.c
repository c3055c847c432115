#include "contract/nimi/job/job_slot.h"

#define AGAIN_MS 1000 /* before a full queue is tried again */

static void run_if_ready(struct job_slot *slot) {
    if (slot->job && slot->granted) run_job_run(slot->job);
}

static void on_granted(void *ctx) {
    struct job_slot *slot = ctx;
    slot->granted = true;
    run_if_ready(slot);
}

static enum ticket_state take(struct job_slot *slot) {
    enum ticket_state state = scheduler_take(slot->scheduler, &slot->ask, &slot->ticket);
    slot->granted = state == TICKET_GRANTED;
    return state;
}

static void take_or_wait(void *ctx) {
    struct job_slot *slot = ctx;
    if (take(slot) == TICKET_REFUSED) timer_start(&slot->again, AGAIN_MS);
    run_if_ready(slot);
}

void job_slot_init(struct job_slot *slot, struct scheduler *scheduler, enum fair_class class,
                   struct loop *loop) {
    *slot = (struct job_slot){
        .scheduler = scheduler,
        .ask = {.class = class, .loop = loop, .on_granted = on_granted, .ctx = slot}};
    timer_init(&slot->again, loop, take_or_wait, slot);
}

enum ticket_state job_slot_take(struct job_slot *slot, struct str app, struct str owner) {
    slot->ask.app = app;
    slot->ask.owner = owner;
    return take(slot);
}

void job_slot_wait(struct job_slot *slot, struct str app, struct str owner) {
    slot->ask.app = app;
    slot->ask.owner = owner;
    take_or_wait(slot);
}

void job_slot_run(struct job_slot *slot, struct run_job *job) {
    slot->job = job;
    run_if_ready(slot);
}

void job_slot_release(struct job_slot *slot) {
    timer_stop(&slot->again);
    scheduler_release(slot->ticket);
    slot->ticket = NULL;
    slot->job = NULL;
    slot->granted = false;
}
