#include "stream/share.h"

#include "base/map.h"
#include "base/mem.h"
#include "store/changes.h"

#include <assert.h>
#include <stdlib.h>

#define LOAD_MAX_BYTES (128 * KIB) /* of events, from the store */
#define LOADS_MAX 4                /* on their way at a time */
#define PUT_BYTES (256 * KIB)      /* encoded at a time for late readers */
#define FILL_COST (64 * KIB)       /* of a pass */
#define EVENT_MAX_BYTES (128 * MIB)
#define REST_BYTES (1 * MIB) /* sent before: worth giving memory back */
#define REST_PAGES_BYTES (1 * MIB)

const struct state share_states[SHARE_STATE_COUNT] = {
    /* clang-format off */
    [SHARE_QUEUED] = {"queued", TO(SHARE_TAIL) | TO(SHARE_FULL) | TO(SHARE_LOAD) | TO(SHARE_OVER)},
    [SHARE_TAIL]   = {"tail",   TO(SHARE_QUEUED) | TO(SHARE_OVER)},
    [SHARE_FULL]   = {"full",   TO(SHARE_QUEUED) | TO(SHARE_OVER)},
    [SHARE_LOAD]   = {"load",   TO(SHARE_QUEUED) | TO(SHARE_TAIL) | TO(SHARE_OVER)},
    [SHARE_OVER]   = {"over",   0},
    /* clang-format on */
};

/* The readers of one run on this loop. */
struct audience {
    struct share *share;
    uint64_t run;
    struct pages_run *pages;
    size_t readers;
    struct list tail, loads; /* readers that wait */
    struct journal *journal; /* while it is alive */
    struct cursor *cursor;   /* at its newest event: puts what comes, and wakes the tail */
    struct dormant_wake *wake;
    /* One load at a time. */
    struct list link; /* in the list of loads to begin */
    struct store_load load;
    uint64_t generation;
    bool loading;
    bool changed; /* the store, since it was asked: what it answers may be old */
};

struct share_reader {
    struct list link; /* in the list that its state names */
    struct audience *audience;
    const struct share_wire *wire;
    void *ctx;
    struct pages_place place;
    uint64_t sent_ms, stall_ms, heartbeat_ms;
    struct timer timer; /* while FULL: the stall, else: the heartbeat */
    uint8_t state;
    bool begun;
};

/* What `scratch` holds: readers at the same place, as live ones mostly are, get the same bytes
 * without looking for them again. For one pass only: pages may be dropped. */
struct last_read {
    const struct audience *audience; /* NULL: nothing */
    struct pages_place from, to;
    enum pages_end end;
};

struct share {
    struct share_options options;
    struct map *audiences;
    struct list queue; /* readers whose turn comes */
    struct task pass;
    struct timer next_pass;
    size_t loads;
    struct list waiting_loads;
    struct buf scratch, encoded;
    struct last_read last;
    struct timer rest;
    struct changes_watcher *watcher;      /* of a store that other replicas write to */
    const struct share_reader *beginning; /* inside its `begun`; NULL once it was closed */
    size_t sent_bytes;
    bool freed;
};

/* --- states ------------------------------------------------------------------------------- */

/* The only function that writes reader->state. */
static void share_enter(struct share_reader *reader, enum share_state next) {
    assert(states_allow(share_states, reader->state, next));
    reader->state = (uint8_t)next;
}

static void pass_soon(struct share *share) {
    if (!timer_waits(&share->next_pass)) loop_defer(share->options.loop, &share->pass);
}

static void share_move(struct share_reader *reader, enum share_state next) {
    struct audience *audience = reader->audience;
    struct share *share = audience->share;
    struct list *const lists[SHARE_STATE_COUNT] = {[SHARE_QUEUED] = &share->queue,
                                                   [SHARE_TAIL] = &audience->tail,
                                                   [SHARE_LOAD] = &audience->loads};
    assert(share);
    share_enter(reader, next);
    if (list_linked(&reader->link)) list_remove(&reader->link);
    if (lists[next]) list_append(lists[next], &reader->link);
    if (next == SHARE_QUEUED) pass_soon(share);
    if (next == SHARE_OVER) timer_stop(&reader->timer);
}

static void wake_all(struct list *waiting) {
    while (!list_empty(waiting)) {
        share_move(CONTAINER_OF(waiting->next, struct share_reader, link), SHARE_QUEUED);
    }
}

/* All at once, however many they are: each becomes QUEUED when its turn comes. */
static void wake_tail(struct audience *audience) {
    if (list_empty(&audience->tail)) return;
    list_move(&audience->tail, &audience->share->queue);
    pass_soon(audience->share);
}

/* The callbacks below may close the reader: nothing of it is touched afterwards. */
static void share_finish(struct share_reader *reader, enum close_cause cause) {
    bool inside = reader->begun && reader->place.skip > 0;
    share_move(reader, SHARE_OVER);
    reader->wire->ended(cause, inside, reader->ctx);
}

static void tell_missing(struct share_reader *reader, const struct err *failed) {
    if (reader->begun) {
        /* It was there a moment ago: nothing better can be said than that it broke off. */
        share_move(reader, SHARE_OVER);
        reader->wire->ended(CAUSE_FAILED, true, reader->ctx);
        return;
    }
    share_move(reader, SHARE_OVER);
    reader->wire->missing(failed, reader->ctx);
}

/* False when the reader ended, or is gone: `begun` may end it, and its last call close it. */
static bool share_begin(struct share_reader *reader) {
    struct share *share = reader->audience->share;
    if (reader->begun) return true;
    reader->begun = true;
    timer_start(&reader->timer, reader->heartbeat_ms);
    share->beginning = reader;
    reader->wire->begun(reader->ctx);
    bool stays = share->beginning && reader->state != SHARE_OVER;
    share->beginning = NULL;
    return stays;
}

/* --- encoding ----------------------------------------------------------------------------- */

static enum pages_end share_end_of(const struct event *event) {
    if (event->kind == EVENT_DONE) return PAGES_FINISHED;
    return event_is_terminal(event->kind) ? PAGES_FAILED : PAGES_GOES_ON;
}

/* Encode the event and put it, unless it is there. Returns how many bytes it added. */
static size_t share_put(struct audience *audience, uint64_t generation,
                        const struct event *event) {
    struct share *share = audience->share;
    struct buf *out = &share->encoded;
    if (pages_has(audience->pages, event->seq)) return 0;
    buf_clear(out);
    share->options.encode(event, out, share->options.ctx);
    const struct pages_event encoded = {.seq = event->seq,
                                        .bytes = buf_str(out),
                                        .end = share_end_of(event),
                                        .code = event->kind == EVENT_FAILED ? event->failed.code
                                                                            : ERR_NONE};
    size_t len = out->len;
    bool kept = pages_put(audience->pages, generation, &encoded);
    if (out->room > 4 * PAGE_BYTES) buf_release(out);
    return kept ? len : 0;
}

/* What a reader needs first must not be dropped by what is put after it. */
static size_t put_most(const struct share *share) {
    size_t part = pages_max(share->options.pages) / 8;
    return part < PUT_BYTES ? part : PUT_BYTES;
}

/* --- the live run ------------------------------------------------------------------------- */

/* New events are encoded once, for all readers. */
static void share_on_ready(void *ctx) {
    struct audience *audience = ctx;
    struct event event;
    uint64_t generation = pages_generation(audience->share->options.pages);
    while (cursor_next(audience->cursor, &event)) share_put(audience, generation, &event);
    wake_tail(audience);
}

static void leave_journal(struct audience *audience) {
    cursor_close(audience->cursor);
    journal_unref(audience->journal);
    audience->cursor = NULL;
    audience->journal = NULL;
}

static bool share_is_live(struct audience *audience) {
    struct share *share = audience->share;
    struct live_view view;
    struct err e;
    if (audience->journal) return true;
    if (!directory_find(share->options.directory, audience->run, &view)) return false;
    if (cursor_open(view.journal, journal_visible(view.journal), share->options.loop,
                    share_on_ready, audience, &audience->cursor, &e)) {
        audience->journal = journal_ref(view.journal);
    }
    live_view_done(&view);
    return audience->journal != NULL;
}

/* Encode what follows `after_seq` from the journal. False when that is not there any more. */
static bool fill(struct audience *audience, uint64_t after_seq) {
    struct share *share = audience->share;
    uint64_t generation = pages_generation(share->options.pages);
    struct cursor *cursor;
    struct event event;
    struct err e;
    size_t bytes = 0;
    if (!cursor_open(audience->journal, after_seq, share->options.loop, NULL, NULL, &cursor,
                     &e)) {
        return false;
    }
    size_t most = put_most(share);
    while (bytes < most && cursor_next(cursor, &event)) {
        bytes += share_put(audience, generation, &event) + 1;
    }
    cursor_close(cursor);
    return true;
}

static bool at_tail(const struct share_reader *reader) {
    const struct audience *audience = reader->audience;
    return audience->journal && reader->place.seq >= cursor_seq(audience->cursor);
}

/* --- the store ---------------------------------------------------------------------------- */

static void start_loads(struct share *share);

static void audience_free_if_left(struct audience *audience);

/* Returns whether there was an event after `after_seq`. */
static bool put_loaded(struct audience *audience) {
    const struct store_load *load = &audience->load;
    uint64_t next = load->after_seq + 1;
    size_t bytes = 0, most = put_most(audience->share);
    for (size_t i = 0; i < load->section_count && bytes < most; i++) {
        struct str rest = load->sections[i].events;
        struct event event = {.seq = load->sections[i].first_seq};
        struct err e;
        for (; rest.len && bytes < most && event_decode(&rest, &event, &e); event.seq++) {
            if (event.seq != next) continue; /* it does not follow on */
            bytes += share_put(audience, audience->generation, &event);
            next++;
        }
    }
    return next > load->after_seq + 1;
}

/* --- runs of other replicas --------------------------------------------------------------- */

/* Something was written: perhaps more of these runs. */
static void share_on_written(void *ctx) {
    const struct share *share = ctx;
    size_t cursor = 0;
    struct str key;
    void *value;
    while (map_next(share->audiences, &cursor, &key, &value)) {
        struct audience *audience = value;
        if (audience->journal) continue;
        audience->changed = true;
        wake_tail(audience);
    }
}

/* Nothing more of it was committed when the store was asked; it goes on. */
static void wait_for_more(struct share_reader *reader) {
    const struct audience *audience = reader->audience;
    if (share_begin(reader)) share_move(reader, audience->changed ? SHARE_QUEUED : SHARE_TAIL);
}

/* It was brought to memory after the load had begun. */
static bool came_back(struct share_reader *reader) {
    struct audience *audience = reader->audience;
    return share_is_live(audience) && (at_tail(reader) || fill(audience, reader->place.seq));
}

static void on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct audience *audience = ctx;
    struct share *share = audience->share;
    audience->loading = false;
    share->loads--;
    if (share->freed) {
        arena_free(load->arena);
        if (share->loads == 0) share_free(share);
        return;
    }
    bool current = audience->generation == pages_generation(share->options.pages);
    bool more = !failed && (put_loaded(audience) || !current);
    bool goes_on = !failed && load->open && share->watcher;
    arena_free(load->arena);
    audience->readers++; /* it stays while its readers are called */
    struct list waiting;
    list_init(&waiting);
    list_move(&audience->loads, &waiting);
    while (!list_empty(&waiting)) {
        struct share_reader *reader = CONTAINER_OF(waiting.next, struct share_reader, link);
        if (!failed && (more || reader->place.seq < load->after_seq || came_back(reader))) {
            share_move(reader, SHARE_QUEUED);
        } else if (goes_on) {
            wait_for_more(reader);
        } else {
            tell_missing(reader, failed);
        }
    }
    audience->readers--;
    audience_free_if_left(audience);
    start_loads(share);
}

static void start_loads(struct share *share) {
    while (share->loads < LOADS_MAX && !list_empty(&share->waiting_loads)) {
        struct audience *audience =
            CONTAINER_OF(list_pop(&share->waiting_loads), struct audience, link);
        if (list_empty(&audience->loads)) continue;
        const struct share_reader *first =
            CONTAINER_OF(audience->loads.next, struct share_reader, link);
        share->loads++;
        audience->loading = true;
        audience->changed = false;
        audience->generation = pages_generation(share->options.pages);
        audience->load = (struct store_load){.question = STORE_RUN,
                                             .run = audience->run,
                                             .after_seq = first->place.seq,
                                             .max_bytes = LOAD_MAX_BYTES,
                                             .home = share->options.loop,
                                             .on_loaded = on_loaded,
                                             .ctx = audience};
        store_load(share->options.store, &audience->load);
    }
}

static void share_on_awake(const struct err *failed, void *ctx) {
    struct audience *audience = ctx;
    audience->wake = NULL;
    if (!failed) {
        wake_all(&audience->loads);
        return;
    }
    audience->readers++;
    while (!list_empty(&audience->loads)) {
        tell_missing(CONTAINER_OF(audience->loads.next, struct share_reader, link), failed);
    }
    audience->readers--;
    audience_free_if_left(audience);
}

/* The run waits for a human and has left memory: only a live one says how it goes on. */
static bool wake_dormant(struct audience *audience) {
    struct share *share = audience->share;
    const struct dormant_filter filter = {.run = audience->run};
    audience->wake = dormant_wake_start(share->options.directory, &filter, 1,
                                        share->options.loop, share_on_awake, audience);
    return audience->wake != NULL;
}

static void wait_for_load(struct share_reader *reader) {
    struct audience *audience = reader->audience;
    struct share *share = audience->share;
    bool busy = audience->loading || audience->wake || list_linked(&audience->link);
    share_move(reader, SHARE_LOAD);
    if (busy || wake_dormant(audience)) return;
    list_append(&share->waiting_loads, &audience->link);
    start_loads(share);
}

/* --- turns -------------------------------------------------------------------------------- */

/* What the reader needs is in no page. */
static void bring(struct share_reader *reader) {
    struct audience *audience = reader->audience;
    struct share *share = audience->share;
    if (share_is_live(audience)) {
        if (at_tail(reader)) {
            if (share_begin(reader)) share_move(reader, SHARE_TAIL);
            return;
        }
        if (fill(audience, reader->place.seq)) {
            list_append(&share->queue, &reader->link);
            return;
        }
    }
    if (share->options.store) {
        wait_for_load(reader);
    } else {
        tell_missing(reader, NULL);
    }
}

static void share_on_timer(void *ctx);

static void wait_for_room(struct share_reader *reader) {
    share_move(reader, SHARE_FULL);
    timer_start(&reader->timer, reader->stall_ms);
    reader->wire->wake_at(SHARE_LOW_BYTES, reader->ctx);
}

/* Read to `scratch` what the reader gets in this turn, and move its place. False: it is in no
 * page. */
static bool share_read(struct share_reader *reader) {
    struct audience *audience = reader->audience;
    struct share *share = audience->share;
    struct last_read *last = &share->last;
    bool same = last->audience == audience && last->from.seq == reader->place.seq &&
                last->from.skip == reader->place.skip;
    if (!same) {
        enum err_code code; /* the event itself says it */
        *last = (struct last_read){.from = reader->place, .to = reader->place};
        buf_clear(&share->scratch);
        if (!pages_read(audience->pages, &last->to, SHARE_TURN_BYTES, &share->scratch,
                        &last->end, &code)) {
            return false;
        }
        last->audience = audience;
    }
    reader->place = last->to;
    return true;
}

/* Give one reader its turn. Returns what it cost. */
static size_t share_serve(struct share_reader *reader) {
    struct share *share = reader->audience->share;
    const struct buf *out = &share->scratch;
    if (reader->state == SHARE_TAIL) share_enter(reader, SHARE_QUEUED);
    if (reader->begun && reader->wire->queued(reader->ctx) >= SHARE_HIGH_BYTES) {
        wait_for_room(reader);
        return 0;
    }
    struct pages_place before = reader->place;
    if (!share_read(reader)) {
        bring(reader);
        return FILL_COST;
    }
    size_t cost = SHARE_SEND_BYTES + out->len;
    if (!reader->begun) {
        reader->place = before; /* it may be over before it has begun */
        if (share_begin(reader)) list_append(&share->queue, &reader->link);
        return SHARE_SEND_BYTES;
    }
    enum pages_end end = share->last.end;
    reader->sent_ms = loop_now_ms(share->options.loop);
    share->sent_bytes += out->len;
    if (out->len) reader->wire->send(buf_str(out), reader->ctx);
    if (end != PAGES_GOES_ON) {
        share_finish(reader, end == PAGES_FINISHED ? CAUSE_FINISHED : CAUSE_FAILED);
    } else if (at_tail(reader)) {
        share_move(reader, SHARE_TAIL);
    } else {
        list_append(&share->queue, &reader->link);
    }
    return cost;
}

/* Serve readers until the pass is spent; the rest in the loop's next turn. */
static void on_pass(void *ctx) {
    struct share *share = ctx;
    size_t cost = 0;
    share->last.audience = NULL;
    while (cost < SHARE_PASS_BYTES && !list_empty(&share->queue)) {
        cost += share_serve(CONTAINER_OF(list_pop(&share->queue), struct share_reader, link));
    }
    if (!list_empty(&share->queue)) timer_start(&share->next_pass, 0);
    if (share->sent_bytes >= REST_BYTES) timer_start(&share->rest, SHARE_REST_MS);
}

/* --- time --------------------------------------------------------------------------------- */

static void share_on_stall(struct share_reader *reader) {
    uint64_t stalled_ms = reader->wire->stalled_ms(reader->ctx);
    if (stalled_ms >= reader->stall_ms) {
        share_finish(reader, CAUSE_STALLED);
    } else {
        timer_start(&reader->timer, reader->stall_ms - stalled_ms);
    }
}

/* Never inside an event. */
static void share_on_timer(void *ctx) {
    struct share_reader *reader = ctx;
    if (reader->state == SHARE_FULL) {
        share_on_stall(reader);
        return;
    }
    uint64_t quiet_ms = loop_now_ms(reader->timer.loop) - reader->sent_ms;
    if (quiet_ms >= reader->heartbeat_ms) {
        if (reader->place.skip == 0) reader->wire->heartbeat(reader->ctx);
        quiet_ms = 0;
    }
    timer_start(&reader->timer, reader->heartbeat_ms - quiet_ms);
}

/* The readers are quiet. */
static void on_rest(void *ctx) {
    struct share *share = ctx;
    share->sent_bytes = 0;
    buf_release(&share->scratch);
    buf_release(&share->encoded);
    pages_shrink(share->options.pages, REST_PAGES_BYTES);
}

/* --- creating and freeing ----------------------------------------------------------------- */

struct share *share_new(const struct share_options *options) {
    struct share *share = MEM_NEW(struct share);
    share->options = *options;
    share->audiences = map_new();
    list_init(&share->queue);
    list_init(&share->waiting_loads);
    buf_init(&share->scratch, SHARE_TURN_BYTES);
    buf_init(&share->encoded, EVENT_MAX_BYTES);
    task_init(&share->pass, on_pass, share);
    timer_init(&share->next_pass, options->loop, on_pass, share);
    timer_init(&share->rest, options->loop, on_rest, share);
    if (options->store && store_is_shared(options->store))
        share->watcher = changes_watch(store_changes(options->store), CHANGE_WRITTEN,
                                       options->loop, share_on_written, share);
    return share;
}

static struct str audience_key(const uint64_t *run) {
    return str_of((const char *)run, sizeof(*run));
}

static struct audience *audience_of(struct share *share, uint64_t run) {
    struct audience *audience = map_find(share->audiences, audience_key(&run));
    if (audience) return audience;
    audience = MEM_NEW(struct audience);
    *audience = (struct audience){
        .share = share, .run = run, .pages = pages_open(share->options.pages, run)};
    list_init(&audience->tail);
    list_init(&audience->loads);
    list_init(&audience->link);
    map_put(share->audiences, audience_key(&run), audience);
    return audience;
}

/* A load on its way still needs it. */
static void audience_free_if_left(struct audience *audience) {
    if (audience->readers) return;
    leave_journal(audience);
    dormant_wake_cancel(audience->wake);
    audience->wake = NULL;
    if (audience->loading) return;
    if (audience->share->last.audience == audience) audience->share->last.audience = NULL;
    list_remove(&audience->link);
    pages_close(audience->pages);
    map_remove(audience->share->audiences, audience_key(&audience->run));
    free(audience);
}

void share_free(struct share *share) {
    if (!share) return;
    share->freed = true;
    changes_leave(share->watcher);
    share->watcher = NULL;
    task_cancel(&share->pass);
    timer_stop(&share->next_pass);
    timer_stop(&share->rest);
    size_t cursor = 0;
    struct str key;
    void *value;
    while (map_next(share->audiences, &cursor, &key, &value)) {
        struct audience *audience = value;
        assert(audience->readers == 0); /* a load on its way keeps it */
        pages_close(audience->pages);
        audience->pages = NULL;
        if (!share->loads) free(audience);
    }
    if (share->loads) return;
    map_free(share->audiences);
    buf_done(&share->scratch);
    buf_done(&share->encoded);
    free(share);
}

struct share_reader *share_open(struct share *share, const struct share_reading *reading) {
    struct share_reader *reader = MEM_NEW(struct share_reader);
    assert(reading->stall_ms && reading->heartbeat_ms);
    *reader = (struct share_reader){.audience = audience_of(share, reading->run),
                                    .wire = reading->wire,
                                    .ctx = reading->ctx,
                                    .place = {.seq = reading->after_seq},
                                    .sent_ms = loop_now_ms(share->options.loop),
                                    .stall_ms = reading->stall_ms,
                                    .heartbeat_ms = reading->heartbeat_ms,
                                    .state = SHARE_QUEUED};
    reader->audience->readers++;
    list_init(&reader->link);
    timer_init(&reader->timer, share->options.loop, share_on_timer, reader);
    list_append(&share->queue, &reader->link);
    pass_soon(share);
    return reader;
}

void share_close(struct share_reader *reader) {
    if (!reader) return;
    struct audience *audience = reader->audience;
    struct share *share = audience->share;
    if (share->beginning == reader) share->beginning = NULL;
    timer_stop(&reader->timer);
    if (list_linked(&reader->link)) list_remove(&reader->link);
    free(reader);
    audience->readers--;
    audience_free_if_left(audience);
}

void share_end(struct share_reader *reader, enum close_cause cause) {
    if (reader->state != SHARE_OVER) share_finish(reader, cause);
}

void share_drained(struct share_reader *reader) {
    if (reader->state != SHARE_FULL) return;
    timer_start(&reader->timer, reader->heartbeat_ms);
    share_move(reader, SHARE_QUEUED);
}
