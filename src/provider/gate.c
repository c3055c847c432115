#include "provider/gate.h"

void gate_init(struct gate *gate, reply_event_fn *on_reply, void *ctx) {
    *gate = (struct gate){.on_reply = on_reply, .ctx = ctx};
    list_init(&gate->kept);
}

void gate_done(struct gate *gate) {
    LIST_EACH(&gate->kept, link) reply_copy_free(CONTAINER_OF(link, struct reply_copy, link));
}

static void gate_pass(struct gate *gate, const struct reply_event *event) {
    gate->over = reply_event_ends(event);
    gate->on_reply(event, gate->ctx);
}

void gate_keep(struct gate *gate, const struct reply_event *event) {
    list_append(&gate->kept, &reply_event_copy(event)->link);
}

void gate_take(const struct reply_event *event, void *ctx) {
    struct gate *gate = ctx;
    if (gate->shut) return;
    if (!gate->closed && list_empty(&gate->kept)) {
        gate_pass(gate, event);
    } else {
        gate_keep(gate, event);
    }
}

void gate_release(struct gate *gate) {
    while (!gate->closed && !gate->shut && !list_empty(&gate->kept)) {
        /* Remove it only after its callback, so that later events queue after it. */
        struct reply_copy *kept = CONTAINER_OF(gate->kept.next, struct reply_copy, link);
        gate_pass(gate, &kept->event);
        reply_copy_free(kept);
    }
}
