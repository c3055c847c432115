#include "session/history_read.h"

#include "base/mem.h"
#include "conversation/conversation.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (256 * MIB) /* for copies: far less than the sections hold */

/* One run while it is rebuilt. */
struct recalled {
    uint64_t run, parent;
    bool ended;
    struct conversation conversation;
    struct turn_record **inside; /* records of turns that ended inside it */
    size_t inside_count;
};

/* A moment at which the session remembers something: a run ends, or it parks and passes on what
 * ended inside it. */
struct moment {
    int64_t row;
    size_t run; /* index */
    bool ends;
};

struct recalling {
    struct arena *arena;
    struct recalled *runs;
    size_t count, room;
    struct moment *moments;
    size_t moment_count;
    struct history *history;
};

/* --- reading ------------------------------------------------------------------------------ */

/* The sections of a run are together. */
static size_t history_read_run_of(struct recalling *all, uint64_t id) {
    if (all->count && all->runs[all->count - 1].run == id) return all->count - 1;
    if (all->count == all->room) {
        all->room = all->room ? all->room * 2 : 16;
        all->runs = mem_resize(all->runs, all->room * sizeof(struct recalled));
    }
    struct recalled *run = &all->runs[all->count];
    *run = (struct recalled){.run = id};
    conversation_init(&run->conversation, all->arena, ARENA_MAX_BYTES);
    return all->count++;
}

static void note_moment(struct recalling *all, size_t run, int64_t row, bool ends) {
    all->moments = mem_resize(all->moments, (all->moment_count + 1) * sizeof(struct moment));
    all->moments[all->moment_count++] = (struct moment){row, run, ends};
}

static bool history_read_add_event(struct recalling *all, size_t index,
                                   const struct event *event, int64_t row) {
    struct recalled *run = &all->runs[index];
    if (event->kind == EVENT_STARTED) run->parent = event->started.parent;
    if (event->kind == EVENT_APPROVAL) note_moment(all, index, row, false);
    if (event_is_terminal(event->kind)) note_moment(all, index, row, true);
    return conversation_apply(&run->conversation, event, TEXTS_KEPT);
}

static bool history_read_add_section(struct recalling *all, const struct store_section *section,
                                     struct err *e) {
    struct str rest = section->events;
    struct event event = {0};
    while (rest.len) {
        if (!event_decode(&rest, &event, e))
            return err_add(e, "recall run %llu", (unsigned long long)section->run);
        if (!history_read_add_event(all, history_read_run_of(all, section->run), &event,
                                    section->row))
            return err_set(e, ERR_RESOURCE_EXHAUSTED, "recall run %llu: it is too large",
                           (unsigned long long)section->run);
    }
    return true;
}

/* --- order of the records ----------------------------------------------------------------- */

/* The nearest enclosing run that has not ended, or NULL. A run that ended earlier passes its
 * children to its own lender, as a lease does. */
static struct recalled *lender_of(struct recalling *all, const struct recalled *run) {
    uint64_t parent = run->parent;
    for (size_t i = all->count; parent && i-- > 0;) { /* a lender began before its children */
        struct recalled *other = &all->runs[i];
        if (other->run != parent) continue;
        if (!other->ended) return other;
        parent = other->parent;
    }
    return NULL;
}

static void remember(struct recalling *all, struct turn_record *record) {
    struct history *longer = history_with(all->history, record);
    history_unref(all->history);
    all->history = longer;
}

static void hand_up(struct recalling *all, struct recalled *lender,
                    struct turn_record *record) {
    if (!lender) {
        remember(all, record);
        return;
    }
    record->inside = true;
    size_t size = (lender->inside_count + 1) * sizeof(struct turn_record *);
    lender->inside = mem_resize(lender->inside, size);
    lender->inside[lender->inside_count++] = record;
}

static void hand_up_inside(struct recalling *all, struct recalled *run,
                           struct recalled *lender) {
    for (size_t i = 0; i < run->inside_count; i++) hand_up(all, lender, run->inside[i]);
    free(run->inside);
    run->inside = NULL;
    run->inside_count = 0;
}

static struct turn_record *history_read_record_of(const struct recalled *run) {
    const struct conversation *c = &run->conversation;
    struct turn_record *record = turn_record_ended(run->run, c->messages, c->count);
    record->starts_anew = c->starts_anew;
    record->vain = c->ended != EVENT_DONE;
    return record;
}

/* The same as session_release(). */
static void history_read_pass(struct recalling *all, const struct moment *moment) {
    struct recalled *run = &all->runs[moment->run];
    struct recalled *lender = lender_of(all, run);
    if (run->ended) return; /* a log has one end per run */
    if (moment->ends) {
        run->ended = true;
        hand_up(all, lender, history_read_record_of(run));
    }
    hand_up_inside(all, run, lender);
}

static int by_row(const void *a, const void *b) {
    const struct moment *left = a, *right = b;
    if (left->row != right->row) return left->row < right->row ? -1 : 1;
    return left->run < right->run ? -1 : left->run > right->run;
}

static void assemble(struct recalling *all) {
    all->history = history_new();
    if (all->moment_count)
        qsort(all->moments, all->moment_count, sizeof(struct moment), by_row);
    for (size_t i = 0; i < all->moment_count; i++) history_read_pass(all, &all->moments[i]);
    for (size_t i = 0; i < all->count; i++) hand_up_inside(all, &all->runs[i], NULL);
}

bool history_read(const struct store_section *sections, size_t count, struct history **ret,
                  struct err *e) {
    struct recalling all = {.arena = arena_new(ARENA_MAX_BYTES)};
    bool whole = true;
    for (size_t i = 0; i < count && whole; i++)
        whole = history_read_add_section(&all, &sections[i], e);
    if (whole) {
        assemble(&all);
        *ret = all.history;
    }
    for (size_t i = 0; i < all.count; i++) conversation_done(&all.runs[i].conversation);
    free(all.runs);
    free(all.moments);
    arena_free(all.arena);
    return whole;
}

/* --- up to a run -------------------------------------------------------------------------- */

size_t history_read_until(struct store_section *sections, size_t count, uint64_t run) {
    int64_t end = 0;
    size_t kept = 0;
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (sections[i].run != run) continue;
        if (!found || sections[i].row > end) end = sections[i].row;
        found = true;
    }
    for (size_t i = 0; i < count && found; i++) {
        if (sections[i].row <= end) sections[kept++] = sections[i];
    }
    return kept;
}
