#include "provider/gate.h"

#include "base/mem.h"

#include <stdlib.h>

struct kept {
    struct list link;
    struct reply_event *event; /* a copy */
};

void gate_init(struct gate *gate, reply_event_fn *on_reply, void *ctx) {
    *gate = (struct gate){.on_reply = on_reply, .ctx = ctx};
    list_init(&gate->kept);
}

static void kept_free(struct kept *kept) {
    list_remove(&kept->link);
    free(kept->event);
    free(kept);
}

void gate_done(struct gate *gate) {
    LIST_EACH(&gate->kept, link) kept_free(CONTAINER_OF(link, struct kept, link));
}

static void gate_pass(struct gate *gate, const struct reply_event *event) {
    gate->over = reply_event_ends(event);
    gate->on_reply(event, gate->ctx);
}

void gate_keep(struct gate *gate, const struct reply_event *event) {
    struct kept *kept = MEM_NEW(struct kept);
    kept->event = reply_event_copy(event);
    list_append(&gate->kept, &kept->link);
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
        /* It leaves the list only after its callback: what comes meanwhile stays behind it. */
        struct kept *kept = CONTAINER_OF(gate->kept.next, struct kept, link);
        gate_pass(gate, kept->event);
        kept_free(kept);
    }
}
