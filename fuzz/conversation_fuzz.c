/* Whatever stands in a log: it folds to the same messages whether texts are lent or stay and
 * wherever the log is cut into sections; no result stands without its call, and at the end no
 * call is open. */
#include "base/mem.h"
#include "conversation/conversation.h"
#include "conversation/import.h"

#include <assert.h>
#include <stdlib.h>

#define EVENTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_same_messages(const struct conversation *one,
                                 const struct conversation *other) {
    assert(one->count == other->count && one->ended == other->ended);
    assert(one->own_from == other->own_from && one->turn_start == other->turn_start);
    assert(one->open_calls == other->open_calls && one->refused == other->refused);
    for (size_t i = 0; i < one->count; i++) {
        const struct message *left = &one->messages[i], *right = &other->messages[i];
        assert(left->role == right->role && left->error == right->error);
        assert(str_equal(left->agent, right->agent) && str_equal(left->text, right->text));
        assert(str_equal(left->call_id, right->call_id));
        assert(str_equal(left->tool, right->tool) && str_equal(left->parts, right->parts));
    }
}

static bool has_call_before(const struct conversation *c, size_t index) {
    for (size_t i = index; i-- > 0;) {
        if (c->messages[i].role == MESSAGE_TOOL_CALL &&
            str_equal(c->messages[i].call_id, c->messages[index].call_id))
            return true;
    }
    return false;
}

/* brought  by the caller: nobody looked whether that list goes up */
static void check(const struct conversation *c, bool started, bool brought) {
    assert(!started || (c->own_from <= c->turn_start && c->turn_start < c->count));
    assert(c->reply_from <= c->count && c->answer_from <= c->count);
    for (size_t i = 0; i < c->count && !brought; i++) {
        if (c->messages[i].role == MESSAGE_TOOL_RESULT) assert(has_call_before(c, i));
        assert(!c->ended || !conversation_is_open(c, i));
    }
    assert(!c->ended || c->open_calls == 0);
}

/* The bytes of the events that are looked at: a run starts once, before all else. */
static size_t readable(struct str log) {
    struct str rest = log;
    struct event event = {0};
    struct err e;
    for (size_t count = 0; rest.len && count < EVENTS_MAX; count++) {
        struct str before = rest;
        if (!event_decode(&rest, &event, &e) || (event.kind == EVENT_STARTED && count))
            return log.len - before.len;
    }
    return log.len - rest.len;
}

/* Each event from bytes of its own, which are gone when it was applied. */
static void fold_lent(struct conversation *c, struct str log) {
    bool started = false, brought = false;
    while (log.len) {
        struct str rest = log;
        struct event event = {0};
        struct err e;
        assert(event_decode(&rest, &event, &e));
        size_t len = log.len - rest.len;
        char *copy = mem_alloc(len);
        memcpy(copy, log.at, len);
        struct str bytes = str_of(copy, len);
        assert(event_decode(&bytes, &event, &e));
        assert(conversation_apply(c, &event, TEXTS_LENT));
        started = started || event.kind == EVENT_STARTED;
        brought = brought ||
                  (event.kind == EVENT_ITEM && str_starts(event.item.type, STR(BROUGHT_ITEM)));
        free(copy);
        check(c, started, brought);
        log = rest;
    }
}

static void fold_kept(struct conversation *c, struct str section) {
    struct event event = {0};
    struct err e;
    while (section.len) {
        assert(event_decode(&section, &event, &e));
        assert(conversation_apply(c, &event, TEXTS_KEPT));
    }
}

/* As a store gives it back: two sections, whose bytes stay. */
static void check_cut(const struct conversation *expected, struct str log, size_t at) {
    char *first = mem_alloc(at), *second = mem_alloc(log.len - at);
    if (at) memcpy(first, log.at, at);
    if (log.len > at) memcpy(second, log.at + at, log.len - at);
    struct arena *arena = arena_new(64 * log.len + MIB);
    struct conversation c;
    conversation_init(&c, arena, log.len);
    fold_kept(&c, str_of(first, at));
    fold_kept(&c, str_of(second, log.len - at));
    assert_same_messages(expected, &c);
    conversation_done(&c);
    arena_free(arena);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str log = str_of((const char *)data, size);
    log = str_head(log, readable(log));
    struct arena *arena = arena_new(64 * log.len + MIB);
    struct conversation c;
    conversation_init(&c, arena, log.len);
    fold_lent(&c, log);
    for (struct str rest = log;;) {
        struct event event = {0};
        struct err e;
        check_cut(&c, log, log.len - rest.len);
        if (rest.len == 0) break;
        assert(event_decode(&rest, &event, &e));
    }
    conversation_done(&c);
    arena_free(arena);
    return 0;
}
