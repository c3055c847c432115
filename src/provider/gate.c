#include "provider/gate.h"

#include "base/mem.h"

#include <stdlib.h>

#define PARTS_MAX 4

/* One callback and its arguments, as the functions below name them. */
struct said;
typedef void say_fn(const struct gate *gate, const struct said *said);

struct said {
    struct list link;
    say_fn *say;
    struct str parts[PARTS_MAX];
    struct event_usage usage; /* its model is in parts */
};

void gate_init(struct gate *gate, const struct provider_sink *sink, void *ctx) {
    *gate = (struct gate){.sink = *sink, .ctx = ctx};
    list_init(&gate->kept);
}

void gate_done(struct gate *gate) {
    LIST_EACH(&gate->kept, link) free(CONTAINER_OF(link, struct said, link));
}

/* --- keeping ------------------------------------------------------------------------------ */

/* A copy whose text stands behind it in the same block. */
static struct said *said_copy(const struct said *said) {
    size_t len = 0;
    for (size_t i = 0; i < PARTS_MAX; i++) len += said->parts[i].len;
    struct said *copy = mem_alloc(sizeof(*copy) + len);
    *copy = *said;
    char *at = (char *)(copy + 1);
    for (size_t i = 0; i < PARTS_MAX; i++) {
        struct str part = said->parts[i];
        if (part.len) memcpy(at, part.at, part.len);
        copy->parts[i] = str_of(at, part.len);
        at += part.len;
    }
    return copy;
}

static void pass(struct gate *gate, const struct said *said) {
    if (gate->shut) return;
    if (!gate->closed && gate_is_empty(gate)) {
        said->say(gate, said);
    } else {
        list_append(&gate->kept, &said_copy(said)->link);
    }
}

void gate_release(struct gate *gate) {
    while (!gate->closed && !gate->shut && !gate_is_empty(gate)) {
        /* It leaves the list only after it was said: what comes meanwhile stays behind it. */
        struct said *said = CONTAINER_OF(gate->kept.next, struct said, link);
        said->say(gate, said);
        list_remove(&said->link);
        free(said);
    }
}

/* --- one pair for each callback ----------------------------------------------------------- */

static void say_text(const struct gate *gate, const struct said *said) {
    gate->sink.on_text(said->parts[0], gate->ctx);
}

static void on_text(struct str text, void *ctx) {
    pass(ctx, &(struct said){.say = say_text, .parts = {text}});
}

static void say_thinking(const struct gate *gate, const struct said *said) {
    gate->sink.on_thinking(said->parts[0], gate->ctx);
}

static void on_thinking(struct str text, void *ctx) {
    pass(ctx, &(struct said){.say = say_thinking, .parts = {text}});
}

static void say_tool_call(const struct gate *gate, const struct said *said) {
    gate->sink.on_tool_call(said->parts[0], said->parts[1], said->parts[2], gate->ctx);
}

static void on_tool_call(struct str call_id, struct str tool, struct str args, void *ctx) {
    pass(ctx, &(struct said){.say = say_tool_call, .parts = {call_id, tool, args}});
}

static void say_usage(const struct gate *gate, const struct said *said) {
    struct event_usage usage = said->usage;
    usage.model = said->parts[0];
    gate->sink.on_usage(&usage, gate->ctx);
}

static void on_usage(const struct event_usage *usage, void *ctx) {
    pass(ctx, &(struct said){.say = say_usage, .parts = {usage->model}, .usage = *usage});
}

static void say_opaque(const struct gate *gate, const struct said *said) {
    gate->sink.on_opaque(said->parts[0], said->parts[1], gate->ctx);
}

static void on_opaque(struct str dialect, struct str bytes, void *ctx) {
    pass(ctx, &(struct said){.say = say_opaque, .parts = {dialect, bytes}});
}

static void say_note(const struct gate *gate, const struct said *said) {
    gate->sink.on_note(said->parts[0], gate->ctx);
}

static void on_note(struct str text, void *ctx) {
    pass(ctx, &(struct said){.say = say_note, .parts = {text}});
}

static void say_approval(const struct gate *gate, const struct said *said) {
    const struct str *parts = said->parts;
    gate->sink.on_approval(parts[0], parts[1], parts[2], parts[3], gate->ctx);
}

static void on_approval(struct str call_id, struct str question, struct str tool,
                        struct str args, void *ctx) {
    pass(ctx, &(struct said){.say = say_approval, .parts = {call_id, question, tool, args}});
}

const struct provider_sink gate_sink = {
    .on_text = on_text,
    .on_thinking = on_thinking,
    .on_tool_call = on_tool_call,
    .on_usage = on_usage,
    .on_opaque = on_opaque,
    .on_note = on_note,
    .on_approval = on_approval,
};
