#include "agent/answer.h"

#define MODEL_SHOWN_BYTES 200

void answer_init(struct answer *answer, reply_event_fn *on_reply, void *ctx,
                 void (*free)(struct answer *answer)) {
    *answer = (struct answer){.usage = USAGE_UNKNOWN, .free = free};
    buf_init(&answer->model, KIB);
    gate_init(&answer->gate, on_reply, ctx);
}

void answer_done(struct answer *answer) {
    gate_done(&answer->gate);
    buf_done(&answer->model);
}

/* --- the listener ------------------------------------------------------------------------- */

static bool answer_leave(struct answer *answer) {
    bool alive = !answer->dropped;
    if (--answer->inside == 0 && (answer->dropped || answer->gate.over)) answer->free(answer);
    return alive;
}

/* The agent has used its tokens whatever the ending is. */
static void give_usage(struct answer *answer) {
    answer->usage.model = buf_str(&answer->model);
    const struct reply_event event = {.kind = REPLY_USAGE, .usage = &answer->usage};
    if (answer->counted) gate_take(&event, &answer->gate);
}

bool answer_give(struct answer *answer, const struct reply_event *event) {
    answer->inside++;
    if (reply_event_ends(event)) give_usage(answer);
    if (!answer->dropped) gate_take(event, &answer->gate);
    return answer_leave(answer);
}

bool answer_release(struct answer *answer) {
    answer->inside++;
    gate_release(&answer->gate);
    return answer_leave(answer);
}

void answer_drop(struct answer *answer) {
    answer->dropped = answer->gate.shut = true;
    if (!answer->inside) answer->free(answer);
}

/* --- tokens ------------------------------------------------------------------------------- */

/* A count that one of the calls did not report is taken as 0. */
static int64_t sum_known(int64_t a, int64_t b) {
    if (a < 0) return b;
    return b < 0 ? a : usage_sum(a, b);
}

void answer_count(struct answer *answer, const struct event_usage *usage, struct str model) {
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->type != USAGE_TOKENS) continue;
        int64_t *sum = usage_at(&answer->usage, field);
        *sum = sum_known(*sum, usage_get(usage, field));
    }
    answer->counted = true;
    buf_clear(&answer->model);
    buf_append(&answer->model, str_head(model, MODEL_SHOWN_BYTES));
}
