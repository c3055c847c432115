#include "tape/take.h"

#include "base/mem.h"

#include <stdlib.h>

void take_begin(struct take *take, struct tape *tape, enum tape_kind kind,
                const struct loop *loop) {
    *take = (struct take){.tape = tape_ref(tape), .began_ms = loop_now_ms(loop)};
    take->call.kind = kind;
    take->call.started_us = tape_stamp(tape);
    take->arena = arena_new(TAPE_FILE_MAX_BYTES);
    buf_init(&take->request, TAPE_FILE_MAX_BYTES);
    buf_init(&take->who, MIB);
}

void take_done(struct take *take) {
    buf_done(&take->request);
    buf_done(&take->who);
    arena_free(take->arena);
    free(take->events);
    tape_unref(take->tape);
    *take = (struct take){0};
}

static bool take_keep(struct take *take, struct str *text) {
    if (text->len == 0) *text = STR_EMPTY;
    return text->len == 0 || arena_str(take->arena, *text, text);
}

static bool keep_usage(struct take *take, struct reply_event *event) {
    if (event->kind != REPLY_USAGE) return true;
    struct event_usage *usage = ARENA_NEW(take->arena, struct event_usage);
    if (!usage) return false;
    *usage = *event->usage;
    event->usage = usage;
    return take_keep(take, &usage->model);
}

static void take_hear_one(const struct reply_event *reply, void *ctx) {
    struct take *take = ctx;
    struct tape_event event = {take->heard_ms, *reply};
    struct reply_event *kept = &event.reply;
    if (!take_keep(take, &kept->call_id) || !take_keep(take, &kept->name) ||
        !take_keep(take, &kept->text) || !take_keep(take, &kept->args) ||
        !keep_usage(take, kept)) {
        take->overflowed = true;
        return;
    }
    if (take->call.event_count == take->room) {
        take->room = take->room ? 2 * take->room : 8;
        take->events = mem_resize(take->events, take->room * sizeof(event));
    }
    take->events[take->call.event_count++] = event;
}

void take_hear(struct take *take, const struct loop *loop, const struct reply_event *reply) {
    take->heard_ms = loop_now_ms(loop) - take->began_ms;
    reply_event_each(reply, take_hear_one, take);
}

void take_write(struct take *take) {
    struct err e;
    take->call.events = take->events;
    take->call.request = buf_str(&take->request);
    take->call.who = buf_str(&take->who);
    if (take->overflowed || !buf_ok(&take->request) || !buf_ok(&take->who)) {
        err_set(&e, ERR_TOO_LARGE, "a call is larger than %zu bytes",
                (size_t)TAPE_FILE_MAX_BYTES);
        tape_warn(take->tape, &e);
    } else {
        tape_write(take->tape, &take->call, &e);
    }
}
