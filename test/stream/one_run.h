/* one_run: a run to read: a live journal, events in a fake store, or both, as the test says. */
#ifndef WEIR_TEST_STREAM_ONE_RUN_H
#define WEIR_TEST_STREAM_ONE_RUN_H

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "session/directory.h"

#include <stdlib.h>

#define RUN 77

struct one_run {
    struct loop *loop;
    struct directory *directory;
    struct store *store;
    struct journal *journal; /* NULL: not alive */
    struct live live;
};

static inline void one_run_init(struct one_run *run) {
    *run = (struct one_run){
        .loop = loop_new_fake(), .directory = directory_new(), .store = fake_store_new()};
}

static inline void one_run_answer_loads(struct one_run *run) {
    while (fake_store_loads(run->store)) fake_store_answer(run->store, 0);
    loop_turn(run->loop);
}

/* The run is alive in this process, from after `after_seq` on. */
static inline void one_run_enter(struct one_run *run, uint64_t after_seq, size_t window) {
    run->journal = journal_new(&(struct journal_options){.loop = run->loop,
                                                         .run = RUN,
                                                         .after_seq = after_seq,
                                                         .window_max_bytes = window,
                                                         .pace_max_bytes = MIB});
    run->live = (struct live){.run = RUN, .journal = run->journal, .loop = run->loop};
    list_init(&run->live.link);
    directory_add(run->directory, &run->live);
}

static inline void one_run_leave(struct one_run *run) {
    if (!run->journal) return;
    directory_remove(run->directory, &run->live);
    journal_leave(run->journal);
    journal_unref(run->journal);
    run->journal = NULL;
}

static inline void one_run_done(struct one_run *run) {
    one_run_leave(run);
    loop_turn(run->loop);
    directory_free(run->directory);
    fake_store_free(run->store);
    loop_free(run->loop);
}

static inline struct event one_run_event(enum event_kind kind, struct str text) {
    struct event event = {.kind = kind, .agent = STR("a")};
    if (kind == EVENT_TEXT) event.text.text = text;
    if (kind == EVENT_FAILED) event.failed.code = ERR_ABORTED;
    return event;
}

static inline void one_run_happen(struct one_run *run, enum event_kind kind) {
    struct event event = one_run_event(kind, STR_EMPTY);
    journal_append(run->journal, &event);
}

static inline void one_run_say(struct one_run *run, size_t count, size_t len) {
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    for (size_t i = 0; i < count; i++) {
        struct event event = one_run_event(EVENT_TEXT, str_of(text, len));
        journal_append(run->journal, &event);
        loop_turn(run->loop);
    }
    free(text);
}

/* Put the events first..last into the log, in one row; the last is `kind`. */
static inline void one_run_store(struct one_run *run, uint64_t first, uint64_t last,
                                 enum event_kind kind, size_t len) {
    struct buf events;
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    buf_init(&events, 32 * MIB);
    for (uint64_t seq = first; seq <= last; seq++) {
        struct event event = one_run_event(seq == last ? kind : EVENT_TEXT, str_of(text, len));
        assert_true(event_encode(&event, &events));
    }
    fake_store_put(run->store, RUN, first, buf_str(&events));
    buf_done(&events);
    free(text);
}

#endif
