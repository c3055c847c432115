/* record: one recorded execution: a turn, a job, or a single model call.
 *
 * Each has a journal, can be found by its id while it is alive, and is over when its last event
 * is on disk. This module holds what is common to all of them; the work itself belongs to the
 * owner.
 *
 *     fresh ─▶ live ─▶ ending ─▶ over      live: in the directory; the owner appends
 *                ▲       │ ▲               ending: the last event is on its way to the disk
 *                └─ lost ┘ └─ lingering    over: no longer in the directory
 *
 * The owner appends events and gets these callbacks, all on its loop:
 *
 *     on_durable  everything appended so far is on disk; no terminal event was appended
 *     on_lost     the store refused a write. Events that no reader has seen are dropped, a
 *                 terminal one included. The owner appends what is true instead, in memory
 *     on_over     the last event is on disk, or never will be
 *
 * A terminal event is the last one; the record is ending from then on. Without a keeper, and
 * after a loss, nothing goes to the disk: the same callbacks come at the end of the loop's
 * turn. Such a record may linger: it is over, but can still be found for a while, since the
 * store does not know how it ended.
 *
 * Memory   lives inside its owner, which calls record_done() last. It keeps a reference to the
 *          engine. The names in `live` and `claim` are borrowed while it is alive.
 * Threads  the loop of its host. The journal may be read from any.
 * Source   design.md "The journal"; directory.h; idempotency_claims.h. */
#ifndef WEIR_RECORD_RECORD_H
#define WEIR_RECORD_RECORD_H

#include "base/states.h"
#include "engine/engine.h"
#include "record/run_state.h"
#include "session/directory.h"
#include "session/idempotency_claims.h"
#include "session/session.h"

enum record_state {
    RECORD_FRESH,
    RECORD_LIVE,
    RECORD_ENDING,
    RECORD_LINGERING,
    RECORD_OVER,
    RECORD_STATE_COUNT,
};

extern const struct state record_states[RECORD_STATE_COUNT];

/* None is called from inside a call to this header. on_lost, on_over and `leave` are required;
 * the others may be NULL. */
struct record_events {
    void (*on_durable)(uint64_t seq, void *ctx);
    void (*on_lost)(const struct err *why, void *ctx);
    void (*on_pace)(bool hold, void *ctx); /* stop the source, or let it go on */
    void (*on_over)(void *ctx); /* the last call; the owner may free itself and the record */
    /* As struct live has them. */
    void (*leave)(struct leaving leaving, struct str why, void *ctx);
    void (*say)(struct str words, struct str print, void *ctx);
};

struct record_options {
    const char *what; /* for the log: "job" */
    struct run_host *host;
    struct engine *engine;   /* a reference is taken */
    bool in_memory;          /* even if the host has a keeper */
    uint64_t run, after_seq; /* continue one that an earlier process left; 0: a new id */
    size_t window_max_bytes, pace_max_bytes; /* as struct journal_options has them */
    struct str agent;                        /* default agent of its events; borrowed */
    const struct record_events *events;
    void *ctx;
};

struct record {
    const char *what;
    struct run_host *host;
    struct engine *engine; /* a reference */
    struct journal *journal;
    struct str agent;
    struct claim claim; /* of the caller's key; the owner sets it, and may leave it empty */
    uint64_t begun_ms;  /* by the loop's clock */
    int64_t begun_unix_ms;
    int64_t before_ms;  /* how long it lived in earlier processes */
    uint64_t linger_ms; /* how long it lingers, if in memory; 0: not at all */
    bool lost;          /* the store refused it: it is unknown which part is on disk */
    bool unsure;        /* and all of it may be on disk */

    /* The record's own. */
    enum record_state state;
    bool in_memory;        /* what is appended from now on does not go to the disk */
    uint64_t ending_seq;   /* of the terminal event, the newest if one was lost; 0: none */
    enum run_state ending; /* the state it leads to */
    struct live live;
    struct task settle; /* stands in for the disk where there is none */
    struct timer linger;
    const struct record_events *events;
    void *ctx;
};

/* A new id. Any thread. */
uint64_t record_new_id(struct engine *engine);

/* New ids are higher than this one, also if the clock was set back since it was made. */
void record_continue_after(struct engine *engine, uint64_t id);

/* When the id was issued: Unix time in milliseconds. */
int64_t record_numbered_ms(uint64_t id);

/* Open its journal. The record cannot be found yet. */
void record_init(struct record *record, const struct record_options *options);

/* Make it findable by its id, in the state `shown`. No effect when it is live. */
void record_enter(struct record *record, const struct session_name *name, enum run_state shown);

/* Remove it from the directory although it is not over: the next process continues it, or it
 * was never started. No callbacks follow. No effect when it is over. */
void record_leave(struct record *record);

/* Remove a live record from the directory, to see whether a caller has found it; and put it
 * back. */
void record_hide(struct record *record);
void record_unhide(struct record *record);

/* It must not be alive: see record_leave(). Drops the engine and the journal. */
void record_done(struct record *record);

static inline uint64_t record_id(const struct record *record) {
    return journal_run(record->journal);
}

/* Milliseconds since it began, in this process. */
static inline uint64_t record_took_ms(const struct record *record) {
    return loop_now_ms(record->host->loop) - record->begun_ms;
}

/* Set the state that callers see in the directory. */
void record_show(struct record *record, enum run_state state);

/* --- its key ------------------------------------------------------------------------------ */

/* Reserve the key in `claim` until record_claimed(). Between the two calls the record is
 * entered, or not started at all. Without a key both do nothing.
 * errors  ERR_ALREADY_EXISTS the key was taken since the look-up: look again */
MUST_CHECK bool record_claim(struct record *record, uint64_t key_mark, struct err *e);
void record_claimed(struct record *record, bool started);

/* Let another run take the key while this one ends: see idempotency_claims_give_back(). */
void record_give_back_key(struct record *record);

/* --- its events --------------------------------------------------------------------------- */

/* Start its clock and return the first event, for the owner to append. It has the names of
 * record_enter() and the key of `claim`. */
struct event record_started(struct record *record, struct str text, struct str contract);

/* Called by record_append() when the event at `seq` is the last. */
void record_ends(struct record *record, enum run_state ending, uint64_t seq);

/* Append a copy, with its time. Returns its seq. Inline because it is a turn's most frequent
 * call. */
static inline uint64_t record_append(struct record *record, struct event *event) {
    event->at_ms = record->before_ms + (int64_t)record_took_ms(record);
    if (!event->agent.at) event->agent = record->agent;
    uint64_t seq = journal_append(record->journal, event);
    switch (event->kind) {
    case EVENT_DONE: record_ends(record, RUN_DONE, seq); break;
    case EVENT_FAILED: record_ends(record, RUN_FAILED, seq); break;
    case EVENT_CANCELLED: record_ends(record, RUN_CANCELLED, seq); break;
    default: break;
    }
    return seq;
}

/* Append several texts with the current time; `agent` and `text` of *texts are set, as are the
 * lengths. Returns the seq of the first. */
static inline uint64_t record_append_texts(struct record *record, struct event_texts *texts) {
    texts->at_ms = record->before_ms + (int64_t)record_took_ms(record);
    return journal_append_texts(record->journal, texts);
}

/* Hide the event appended last, and all that follow, until it is on disk; on_durable then
 * comes. */
void record_gate(struct record *record);

/* Drop the events that no reader has seen. What follows stays in memory. */
void record_retract(struct record *record);

static inline bool record_is_ending(const struct record *record) {
    return record->state >= RECORD_ENDING;
}

#endif
