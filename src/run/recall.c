#include "run/recall.h"

#include "base/mem.h"

#include <stdlib.h>

/* One run, as it is put together. */
struct recalled {
    uint64_t run, parent;
    int64_t started_ms;
    bool done;
    struct message *messages;
    int64_t *at_ms; /* when each message came, UTC */
    size_t count, room;
};

struct recalling {
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

static void add_done(struct recalled *run, const struct event *event) {
    struct str turns = event->done.turns;
    struct event_turn turn;
    while (event_turn_next(&turns, &turn)) {
        struct message message = {
            .role = MESSAGE_AGENT, .agent = turn.agent, .text = turn.text};
        add_message(run, message, run->started_ms + event->at_ms);
    }
    run->done = true;
}

static void add_event(struct recalled *run, const struct event *event) {
    int64_t at_ms = run->started_ms + event->at_ms;
    struct message message = {.agent = event->agent};
    switch (event->kind) {
    case EVENT_STARTED:
        run->parent = event->started.parent;
        run->started_ms = event->started.unix_ms;
        message.role = MESSAGE_USER;
        message.text = event->started.text;
        add_message(run, message, run->started_ms);
        break;
    case EVENT_TOOL_CALL:
        message.role = MESSAGE_TOOL_CALL;
        message.call_id = event->tool_call.call_id;
        message.tool = event->tool_call.tool;
        message.text = event->tool_call.args;
        add_message(run, message, at_ms);
        break;
    case EVENT_TOOL_RESULT:
        message.role = MESSAGE_TOOL_RESULT;
        message.call_id = event->tool_result.call_id;
        message.text = event->tool_result.result;
        message.error = event->tool_result.error;
        add_message(run, message, at_ms);
        break;
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
        add_event(run_of(all, section->run), &event);
    }
    return true;
}

/* Where a child that started at `at_ms` stands among its parent's messages: behind the tool
 * results that the parent waited for then. */
static size_t place_of_child(const struct recalled *parent, int64_t at_ms) {
    size_t place = 0;
    while (place < parent->count && parent->at_ms[place] <= at_ms) place++;
    while (place < parent->count && parent->messages[place].role == MESSAGE_TOOL_RESULT)
        place++;
    return place;
}

static void insert_child(struct recalled *parent, const struct recalled *child) {
    size_t place = place_of_child(parent, child->started_ms);
    size_t behind = parent->count - place;
    for (size_t i = 0; i < child->count; i++) add_message(parent, (struct message){0}, 0);
    memmove(parent->messages + place + child->count, parent->messages + place,
            behind * sizeof(struct message));
    memmove(parent->at_ms + place + child->count, parent->at_ms + place,
            behind * sizeof(int64_t));
    memcpy(parent->messages + place, child->messages, child->count * sizeof(struct message));
    memcpy(parent->at_ms + place, child->at_ms, child->count * sizeof(int64_t));
}

static struct history *assemble(struct recalling *all) {
    /* A child started after its parent: from the end on, so that grandchildren come first. */
    for (size_t i = all->count; i-- > 0;) {
        struct recalled *child = &all->runs[i];
        if (!child->parent || !child->done) continue;
        for (size_t p = i; p-- > 0;) {
            if (all->runs[p].run == child->parent) insert_child(&all->runs[p], child);
        }
    }
    struct history *history = history_new();
    for (size_t i = 0; i < all->count; i++) {
        struct recalled *run = &all->runs[i];
        bool inside = false;
        for (size_t p = 0; p < i && run->parent; p++)
            inside |= all->runs[p].done && all->runs[p].run == run->parent;
        if (!run->done || inside) continue;
        struct history *longer =
            history_with(history, turn_record_new(run->run, run->messages, run->count));
        history_unref(history);
        history = longer;
    }
    return history;
}

bool recall_history(const struct store_section *sections, size_t count, struct history **ret,
                    struct err *e) {
    struct recalling all = {0};
    bool whole = true;
    for (size_t i = 0; i < count && whole; i++) whole = add_section(&all, &sections[i], e);
    if (whole) *ret = assemble(&all);
    for (size_t i = 0; i < all.count; i++) {
        free(all.runs[i].messages);
        free(all.runs[i].at_ms);
    }
    free(all.runs);
    return whole;
}
