#include "run/recall.h"

#include "base/arena.h"
#include "base/mem.h"
#include "run/effect.h"
#include "run/inner.h"
#include "wire/json.h"

#include <stdlib.h>

#define ANSWERS_MAX_BYTES (16 * MIB)

/* One run, as it is put together. */
struct recalled {
    uint64_t run, parent;
    int64_t started_ms;
    bool done;
    bool unknown;     /* it was cut short while a call was out: who asks on must know */
    bool starts_anew; /* it begins with a summary of all before it */
    struct message *messages;
    int64_t *at_ms; /* when each message came, UTC */
    size_t count, room;
};

struct recalling {
    struct arena *answers; /* what humans said, without its escapes */
    struct recalled *runs;
    size_t count, room;
};

static void add_message(struct recalled *run, struct message message, int64_t at_ms) {
    if (run->count == run->room) {
        run->room = run->room ? run->room * 2 : 8;
        run->messages = mem_resize(run->messages, run->room * sizeof(struct message));
        run->at_ms = mem_resize(run->at_ms, run->room * sizeof(int64_t));
    }
    run->messages[run->count] = message;
    run->at_ms[run->count++] = at_ms;
}

static struct recalled *run_of(struct recalling *all, uint64_t id) {
    for (size_t i = all->count; i-- > 0;) {
        if (all->runs[i].run == id) return &all->runs[i];
    }
    if (all->count == all->room) {
        all->room = all->room ? all->room * 2 : 16;
        all->runs = mem_resize(all->runs, all->room * sizeof(struct recalled));
    }
    struct recalled *run = &all->runs[all->count++];
    *run = (struct recalled){.run = id};
    return run;
}

/* Put `count` messages in at `place`, each with its time. */
static void insert(struct recalled *run, size_t place, const struct message *messages,
                   const int64_t *at_ms, size_t count) {
    size_t behind = run->count - place;
    for (size_t i = 0; i < count; i++) add_message(run, (struct message){0}, 0);
    memmove(run->messages + place + count, run->messages + place,
            behind * sizeof(struct message));
    memmove(run->at_ms + place + count, run->at_ms + place, behind * sizeof(int64_t));
    memcpy(run->messages + place, messages, count * sizeof(struct message));
    memcpy(run->at_ms + place, at_ms, count * sizeof(int64_t));
}

/* The next time that `agent` hands the turn over, from `place` on, or the end. */
static size_t next_transfer(const struct recalled *run, size_t place, struct str agent) {
    for (; place < run->count; place++) {
        const struct message *message = &run->messages[place];
        if (message->role == MESSAGE_TOOL_CALL && str_equal(message->agent, agent) &&
            str_equal(message->tool, STR(TRANSFER_TOOL)))
            break;
    }
    return place;
}

/* What an agent said before it handed the turn over stands before that call, as it did when it
 * was said; what was said last stands last. */
static void add_done(struct recalled *run, const struct event *event) {
    struct str turns = event->done.turns;
    struct event_turn turn;
    size_t place = 0;
    while (event_turn_next(&turns, &turn)) {
        struct message message = {
            .role = MESSAGE_AGENT, .agent = turn.agent, .text = turn.text};
        place = turns.len ? next_transfer(run, place, turn.agent) : run->count;
        int64_t at_ms = run->started_ms + event->at_ms;
        if (place < run->count) at_ms = run->at_ms[place];
        insert(run, place, &message, &at_ms, 1);
        place += 2; /* behind the call */
        if (place > run->count) place = run->count;
    }
    run->done = true;
}

/* An edited call says what was really done. */
static void add_edit(struct recalling *all, struct recalled *run, const struct event *event) {
    struct json result;
    struct err e;
    struct str call_id = event->tool_result.call_id;
    if (!str_starts(call_id, STR(APPROVAL_ID))) return;
    if (!json_read(event->tool_result.result, &result, &e)) return;
    struct json args = json_find(result, STR("args"));
    for (size_t i = run->count; args.kind == JSON_OBJECT && i-- > 0;) {
        struct message *call = &run->messages[i];
        bool meant = call->role == MESSAGE_TOOL_CALL &&
                     str_equal(call->call_id, str_skip(call_id, strlen(APPROVAL_ID)));
        if (meant && arena_str(all->answers, args.raw, &call->text)) break;
    }
}

/* The answer to a question is a result for the model, and the human's words. */
static void add_result(struct recalling *all, struct recalled *run, const struct event *event) {
    int64_t at_ms = run->started_ms + event->at_ms;
    struct message message = {.role = MESSAGE_TOOL_RESULT,
                              .error = event->tool_result.error,
                              .agent = event->agent,
                              .text = event->tool_result.result,
                              .call_id = event->tool_result.call_id};
    for (size_t i = run->count; i-- > 0 && !message.tool.len;) {
        const struct message *call = &run->messages[i];
        bool asked =
            call->role == MESSAGE_TOOL_CALL && str_equal(call->call_id, message.call_id);
        if (asked) message.tool = call->tool;
    }
    run->unknown = run->unknown || effect_is_unknown(message.text);
    if (message.tool.len == 0) { /* a human's word about a call: not for the model */
        add_edit(all, run, event);
        return;
    }
    add_message(run, message, at_ms);
    struct message words = {.role = MESSAGE_USER};
    struct json result;
    struct err e;
    if (str_equal(message.tool, STR(APPROVAL_TOOL)) && json_read(message.text, &result, &e) &&
        json_str(json_find(result, STR("answer")), all->answers, &words.text)) {
        add_message(run, words, at_ms);
    }
}

/* The turn's own words come behind the summary that it begins with. */
static void add_summary(struct recalled *run, const struct event *event) {
    if (!str_equal(event->item.type, STR(SUMMARY_ITEM))) return;
    struct message summary = {.role = MESSAGE_USER, .text = event->item.bytes};
    insert(run, 0, &summary, &run->started_ms, 1);
    run->starts_anew = true;
}

static void add_event(struct recalling *all, struct recalled *run, const struct event *event) {
    int64_t at_ms = run->started_ms + event->at_ms;
    struct message message = {.agent = event->agent};
    switch (event->kind) {
    case EVENT_STARTED:
        run->parent = event->started.parent;
        run->started_ms = event->started.unix_ms;
        message = (struct message){.role = MESSAGE_USER, .text = event->started.text};
        add_message(run, message, run->started_ms);
        break;
    case EVENT_TOOL_CALL:
        message.role = MESSAGE_TOOL_CALL;
        message.call_id = event->tool_call.call_id;
        message.tool = event->tool_call.tool;
        message.text = event->tool_call.args;
        add_message(run, message, at_ms);
        break;
    case EVENT_APPROVAL:
        if (event->approval.guards.len) break;
        message.role = MESSAGE_TOOL_CALL;
        message.call_id = event->approval.call_id;
        message.tool = STR(APPROVAL_TOOL);
        message.text = event->approval.args;
        add_message(run, message, at_ms);
        break;
    case EVENT_TOOL_RESULT: add_result(all, run, event); break;
    case EVENT_ITEM: add_summary(run, event); break;
    case EVENT_DONE: add_done(run, event); break;
    default: break;
    }
}

static bool add_section(struct recalling *all, const struct store_section *section,
                        struct err *e) {
    struct str rest = section->events;
    struct event event = {0};
    while (rest.len) {
        if (!event_decode(&rest, &event, e)) {
            return err_add(e, "recall run %llu", (unsigned long long)section->run);
        }
        add_event(all, run_of(all, section->run), &event);
    }
    return true;
}

/* Where a child that started at `at_ms` stands among its parent's messages: behind the results
 * that the parent waited for then, and so before the first thing the parent heard or said
 * after them. (Times of one millisecond cannot tell two such places apart.) */
static size_t place_of_child(const struct recalled *parent, int64_t at_ms) {
    for (size_t place = 1; place < parent->count; place++) {
        bool gap = parent->messages[place - 1].role == MESSAGE_TOOL_RESULT &&
                   parent->messages[place].role != MESSAGE_TOOL_RESULT;
        if (gap && parent->at_ms[place] >= at_ms) return place;
    }
    return parent->count;
}

static bool is_remembered(const struct recalled *run) {
    return run->done || run->unknown;
}

/* The nearest run around `child` that is remembered, or NULL: a run that failed leaves its
 * children to whoever lent it the session. */
static struct recalled *lender_of(struct recalling *all, const struct recalled *child) {
    uint64_t parent = child->parent;
    for (size_t i = (size_t)(child - all->runs); parent && i-- > 0;) {
        struct recalled *run = &all->runs[i];
        if (run->run != parent) continue;
        if (is_remembered(run)) return run;
        parent = run->parent;
    }
    return NULL;
}

static struct history *assemble(struct recalling *all) {
    /* A child started after its parent: from the end on, so that grandchildren come first. */
    for (size_t i = all->count; i-- > 0;) {
        struct recalled *child = &all->runs[i];
        struct recalled *lender = is_remembered(child) ? lender_of(all, child) : NULL;
        if (!lender) continue;
        size_t place = place_of_child(lender, child->started_ms);
        insert(lender, place, child->messages, child->at_ms, child->count);
    }
    struct history *history = history_new();
    for (size_t i = 0; i < all->count; i++) {
        struct recalled *run = &all->runs[i];
        if (!is_remembered(run) || lender_of(all, run)) continue;
        struct turn_record *record = turn_record_new(run->run, run->messages, run->count);
        record->starts_anew = run->starts_anew;
        struct history *longer = history_with(history, record);
        history_unref(history);
        history = longer;
    }
    return history;
}

bool recall_history(const struct store_section *sections, size_t count, struct history **ret,
                    struct err *e) {
    struct recalling all = {.answers = arena_new(ANSWERS_MAX_BYTES)};
    bool whole = true;
    for (size_t i = 0; i < count && whole; i++) whole = add_section(&all, &sections[i], e);
    if (whole) *ret = assemble(&all);
    for (size_t i = 0; i < all.count; i++) {
        free(all.runs[i].messages);
        free(all.runs[i].at_ms);
    }
    free(all.runs);
    arena_free(all.answers);
    return whole;
}
