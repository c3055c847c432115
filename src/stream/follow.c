#include "stream/follow.h"

#include "base/mem.h"
#include "store/changes.h"

#include <stdlib.h>

#define PIECE_MAX_BYTES (1 * MIB)

struct follow {
    struct follow_options options;
    uint64_t seq;                    /* of the last event passed to the wire */
    struct stream *stream;           /* on a live journal or on a piece of a stored one */
    struct journal *piece;           /* events from the store, while they are read */
    struct task go_on;               /* looks for the next events */
    struct store_load load;          /* while `loading` */
    struct dormant_wake *wake;       /* the run waits for a human and is not in memory */
    struct changes_watcher *watcher; /* of a store that other replicas write to */
    struct timer beat;               /* while the run goes on at one of them */
    bool changed, waits;             /* since the store was asked; for a change */
    bool begun, loading, freed;
    bool over; /* the last callback has been made */
};

static void follow_look(void *ctx);

static void leave_changes(struct follow *follow) {
    changes_leave(follow->watcher);
    follow->watcher = NULL;
    timer_stop(&follow->beat);
}

/* --- the wire ----------------------------------------------------------------------------- */

static enum stream_verdict follow_judge(const struct event *event, void *ctx) {
    struct follow *follow = ctx;
    const struct stream_wire *wire = follow->options.wire;
    return wire->judge ? wire->judge(event, follow->options.ctx) : stream_judge(event);
}

static void project(const struct event *event, enum close_frame frame, void *ctx) {
    struct follow *follow = ctx;
    follow->seq = event->seq;
    if (follow->piece && follow->seq == journal_appended(follow->piece)) {
        loop_defer(follow->options.loop, &follow->go_on);
    }
    follow->options.wire->project(event, frame, follow->options.ctx);
}

static void project_texts(struct str texts, size_t count, void *ctx) {
    struct follow *follow = ctx;
    follow->seq += count;
    if (follow->piece && follow->seq == journal_appended(follow->piece))
        loop_defer(follow->options.loop, &follow->go_on);
    follow->options.wire->project_texts(texts, count, follow->options.ctx);
}

/* After a piece of a stored run more may follow. */
static bool may_leave_now(const struct follow *follow) {
    return follow->options.wire->gather && !follow->piece;
}

static void gather(void *ctx) {
    struct follow *follow = ctx;
    if (may_leave_now(follow)) follow->options.wire->gather(follow->options.ctx);
}

static void leave_now(void *ctx) {
    struct follow *follow = ctx;
    if (may_leave_now(follow)) follow->options.wire->leave_now(follow->options.ctx);
}

static size_t queued(void *ctx) {
    struct follow *follow = ctx;
    const struct stream_wire *wire = follow->options.wire;
    return wire->queued ? wire->queued(follow->options.ctx) : 0;
}

static void wake_at(size_t low, void *ctx) {
    struct follow *follow = ctx;
    follow->options.wire->wake_at(low, follow->options.ctx);
}

static uint64_t stalled_ms(void *ctx) {
    struct follow *follow = ctx;
    return follow->options.wire->stalled_ms(follow->options.ctx);
}

static void heartbeat(void *ctx) {
    struct follow *follow = ctx;
    if (follow->options.wire->heartbeat) follow->options.wire->heartbeat(follow->options.ctx);
}

static void ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx) {
    struct follow *follow = ctx;
    follow->over = true;
    leave_changes(follow);
    task_cancel(&follow->go_on);
    follow->options.wire->ended(ending, cause, last, follow->options.ctx);
}

/* Whether texts come at once is the wire's own choice. */
#define BETWEEN(texts)                                                                         \
    {                                                                                          \
        .judge = follow_judge, .project = project, .project_texts = (texts), .gather = gather, \
        .leave_now = leave_now, .queued = queued, .wake_at = wake_at,                          \
        .stalled_ms = stalled_ms, .heartbeat = heartbeat, .ended = ended,                      \
    }

static const struct stream_wire between = BETWEEN(NULL);
static const struct stream_wire between_with_texts = BETWEEN(project_texts);

/* --- streams ------------------------------------------------------------------------------ */

static void follow_begin(struct follow *follow) {
    if (follow->begun) return;
    follow->begun = true;
    if (follow->options.begun) follow->options.begun(follow->options.ctx);
}

/* Read `journal` (borrowed) from the wire's position. */
static bool follow_read_on(struct follow *follow, struct journal *journal, struct err *e) {
    const struct follow_options *options = &follow->options;
    const struct stream_wire *wire =
        options->wire->project_texts ? &between_with_texts : &between;
    return stream_open(&(struct stream_options){.loop = options->loop,
                                                .journal = journal,
                                                .after_seq = follow->seq,
                                                .mode = options->mode,
                                                .stall_ms = options->stall_ms,
                                                .heartbeat_ms = options->heartbeat_ms,
                                                .wire = wire,
                                                .ctx = follow},
                       &follow->stream, e);
}

/* False: the run is not alive, or its journal does not go back that far. */
static bool follow_read_live(struct follow *follow) {
    struct live_view view;
    struct err e;
    if (!directory_find(follow->options.directory, follow->options.run, &view)) return false;
    bool opened = follow_read_on(follow, view.journal, &e);
    live_view_done(&view);
    if (opened) follow_begin(follow);
    return opened;
}

/* --- pieces ------------------------------------------------------------------------------- */

/* The answer's events as a journal of their own. Events after a gap are left out. */
static struct journal *piece_of(const struct follow *follow) {
    struct journal *piece =
        journal_new(&(struct journal_options){.loop = follow->options.loop,
                                              .run = follow->options.run,
                                              .after_seq = follow->seq,
                                              .window_max_bytes = SIZE_MAX});
    for (size_t i = 0; i < follow->load.section_count; i++) {
        struct str rest = follow->load.sections[i].events;
        uint64_t seq = follow->load.sections[i].first_seq;
        struct event event = {0};
        struct err e;
        for (; rest.len && event_decode(&rest, &event, &e); seq++) {
            if (seq == journal_appended(piece) + 1) journal_append(piece, &event);
        }
    }
    return piece;
}

static void tell_missing(struct follow *follow, const struct err *failed) {
    follow->over = true;
    leave_changes(follow);
    if (follow->begun) {
        /* It existed a moment ago, so all that can be reported is that the stream broke off. */
        follow->options.wire->ended((struct close_ending){FRAME_NONE, ERR_UNAVAILABLE},
                                    CAUSE_FAILED, NULL, follow->options.ctx);
    } else {
        follow->options.missing(failed, follow->options.ctx);
    }
}

/* --- a run of another replica ------------------------------------------------------------- */

static void follow_on_written(void *ctx) {
    struct follow *follow = ctx;
    follow->changed = true;
    if (follow->waits) loop_defer(follow->options.loop, &follow->go_on);
}

/* Heard from before the store is asked, so that nothing is missed in between. */
static void hear_changes(struct follow *follow) {
    struct store *store = follow->options.store;
    follow->changed = false;
    if (!follow->watcher && store_is_shared(store))
        follow->watcher = changes_watch(store_changes(store), CHANGE_WRITTEN,
                                        follow->options.loop, follow_on_written, follow);
}

static void on_beat(void *ctx) {
    struct follow *follow = ctx;
    if (follow->waits) heartbeat(follow);
    timer_start(&follow->beat, follow->options.heartbeat_ms);
}

/* It goes on there: what it has committed so far was read. `begun` may end and free it. */
static void wait_for_more(struct follow *follow) {
    follow->waits = true;
    if (follow->options.heartbeat_ms && !timer_waits(&follow->beat))
        timer_start(&follow->beat, follow->options.heartbeat_ms);
    if (follow->changed) loop_defer(follow->options.loop, &follow->go_on);
    follow_begin(follow);
}

static void follow_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct follow *follow = ctx;
    struct err e;
    follow->loading = false;
    if (follow->freed || follow->over) {
        arena_free(load->arena);
        if (follow->freed) free(follow);
        return;
    }
    struct journal *piece = failed ? NULL : piece_of(follow);
    arena_free(load->arena);
    bool more = piece && journal_appended(piece) > follow->seq;
    if (more && follow_read_on(follow, piece, &e)) {
        follow->piece = piece;
        follow_begin(follow);
        return;
    }
    journal_unref(piece);
    if (!failed && load->open && follow->watcher)
        wait_for_more(follow);
    else
        tell_missing(follow, failed);
}

static void read_store(struct follow *follow) {
    if (!follow->options.store) {
        tell_missing(follow, NULL);
        return;
    }
    hear_changes(follow);
    follow->loading = true;
    follow->load = (struct store_load){.question = STORE_RUN,
                                       .run = follow->options.run,
                                       .after_seq = follow->seq,
                                       .max_bytes = PIECE_MAX_BYTES,
                                       .home = follow->options.loop,
                                       .on_loaded = follow_on_loaded,
                                       .ctx = follow};
    store_load(follow->options.store, &follow->load);
}

static void drop_stream(struct follow *follow) {
    stream_free(follow->stream);
    follow->stream = NULL;
    journal_unref(follow->piece);
    follow->piece = NULL;
}

static void follow_look(void *ctx);

static void follow_on_awake(const struct err *failed, void *ctx) {
    struct follow *follow = ctx;
    follow->wake = NULL;
    if (failed) {
        tell_missing(follow, failed);
    } else {
        follow_look(follow);
    }
}

/* The run waits for a human and has left memory. It must be woken to be followed. */
static bool stream_follow_wake(struct follow *follow) {
    const struct dormant_filter filter = {.run = follow->options.run};
    follow->wake = dormant_wake_start(follow->options.directory, &filter, 1,
                                      follow->options.loop, follow_on_awake, follow);
    return follow->wake != NULL;
}

/* Looks twice, because the run may come back into memory in between. */
static void follow_look(void *ctx) {
    struct follow *follow = ctx;
    follow->waits = false;
    drop_stream(follow);
    if (follow_read_live(follow) || stream_follow_wake(follow) || follow_read_live(follow))
        return;
    read_store(follow);
}

/* --- creating and freeing ----------------------------------------------------------------- */

struct follow *follow_new(const struct follow_options *options) {
    struct follow *follow = MEM_NEW(struct follow);
    follow->options = *options;
    follow->seq = options->after_seq;
    task_init(&follow->go_on, follow_look, follow);
    timer_init(&follow->beat, options->loop, on_beat, follow);
    loop_defer(options->loop, &follow->go_on);
    return follow;
}

void follow_free(struct follow *follow) {
    if (!follow) return;
    leave_changes(follow);
    task_cancel(&follow->go_on);
    dormant_wake_cancel(follow->wake);
    drop_stream(follow);
    follow->freed = true;
    if (!follow->loading) free(follow);
}

void follow_end(struct follow *follow, enum close_cause cause) {
    if (follow->stream) {
        stream_end(follow->stream, cause);
        return;
    }
    if (follow->over) return;
    follow->over = true;
    enum err_code status = cause == CAUSE_DEADLINE  ? ERR_DEADLINE_EXCEEDED
                           : cause == CAUSE_STALLED ? ERR_RESOURCE_EXHAUSTED
                                                    : ERR_CANCELLED;
    leave_changes(follow);
    task_cancel(&follow->go_on);
    dormant_wake_cancel(follow->wake);
    follow->wake = NULL;
    follow->options.wire->ended((struct close_ending){FRAME_NONE, status}, cause, NULL,
                                follow->options.ctx);
}

void follow_drained(struct follow *follow) {
    if (follow->stream) stream_drained(follow->stream);
}
