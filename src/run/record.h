/* record: one execution that is kept: a turn, a job, a question to a model.
 *
 * Each of them has a journal, can be found by its number while it is alive, and is over when
 * its last event is on disk. That much is the same for all of them, and is here; what an
 * execution does meanwhile is the work of its owner.
 *
 *     fresh ─▶ live ─▶ ending ─▶ over      live: in the directory; the owner appends
 *                ▲       │ ▲               ending: the last event is on its way to the disk
 *                └─ lost ┘ └─ lingering    over: no longer in the directory
 *
 * The events of one life, all on the owner's loop:
 *
 *     append      any event. A terminal one is the last; the record is ending from then on
 *     on_durable  what was appended so far is on disk, before there is an end
 *     on_lost     the store refused it. What no reader has seen is gone, also the end if there
 *                 was one. The owner appends what is true instead; that stays in memory
 *     on_over     the last event is on disk, or will never be
 *
 * Without a keeper, and after a loss, nothing goes to the disk: the same calls come at the end
 * of the loop's turn. A record of that kind may linger: it is over, and can still be found for
 * a while, since the store cannot tell how it ended.
 *
 * Memory   lives inside its owner, which calls record_done() last. It keeps a reference to the
 *          engine; the names in `live` and `claim` are borrowed for as long as it is alive.
 * Threads  the loop of its host. The journal may be read from any.
 * Source   design.md "The journal"; directory.h; claims.h.
 */
#ifndef WEIR_RUN_RECORD_H
#define WEIR_RUN_RECORD_H

#include "run/claims.h"
#include "run/directory.h"
#include "run/engine.h"
#include "run/run.h"

enum record_state {
    RECORD_FRESH,
    RECORD_LIVE,
    RECORD_ENDING,
    RECORD_LINGERING,
    RECORD_OVER,
    RECORD_STATE_COUNT,
};

struct str record_state_name(enum record_state state);
bool record_may_become(enum record_state state, enum record_state next);

/* None of them comes from inside a call to this header; on_lost, on_over and `leave` must be
 * there, the others may be NULL. */
struct record_events {
    void (*on_durable)(uint64_t seq, void *ctx);
    void (*on_lost)(const struct err *why, void *ctx);
    void (*on_pace)(bool hold, void *ctx); /* stop the source, let it go on */
    void (*on_over)(void *ctx); /* the last call; the owner may free itself and the record */
    /* As struct live has them. */
    void (*leave)(struct leaving leaving, struct str why, void *ctx);
    void (*say)(struct str words, void *ctx);
};

struct record_options {
    const char *what; /* for the log: "job" */
    struct run_host *host;
    struct engine *engine;   /* a reference is taken */
    bool in_memory;          /* whether or not the host has a keeper */
    uint64_t run, after_seq; /* of one that an earlier process left; 0: a new number */
    size_t window_max_bytes, pace_max_bytes; /* as struct journal_options has them */
    struct str agent; /* who does what its events say, unless they name one; borrowed */
    const struct record_events *events;
    void *ctx;
};

struct record {
    const char *what;
    struct run_host *host;
    struct engine *engine; /* a reference */
    struct journal *journal;
    struct str agent;
    struct claim claim; /* of the caller's key, which its owner sets; no key: none */
    uint64_t begun_ms;  /* by the loop */
    int64_t before_ms;  /* of its life, in earlier processes */
    uint64_t linger_ms; /* so long it lingers, if it is in memory; 0: not at all */
    bool lost;          /* the store refused it: what of it is on disk is not known */
    bool unsure;        /* not even whether all of it is */

    /* The record's own. */
    enum record_state state;
    bool in_memory;        /* nothing that is appended from now on goes to the disk */
    uint64_t ending_seq;   /* of the terminal event, the last one if one was lost; 0: none */
    enum run_state ending; /* what that means */
    struct live live;
    struct task settle; /* stands for the disk where there is none */
    struct timer linger;
    const struct record_events *events;
    void *ctx;
};

/* A number for one: it rises with time, and is given once. */
uint64_t record_next_id(struct engine *engine);

/* When the number was given: milliseconds of UTC. */
int64_t record_numbered_ms(uint64_t id);

/* Open its journal. Nobody finds it yet. */
void record_init(struct record *record, const struct record_options *options);

/* From now on it is found by its number, in the state `shown`. Harmless when it is live. */
void record_enter(struct record *record, const struct session_name *name, enum run_state shown);

/* Nobody finds it any more, and it is not over: the next process takes it up, or it never was.
 * No call comes any more. Harmless when it is over. */
void record_leave(struct record *record);

/* Take a live one out of the directory, to see whether anybody has found it; and back. */
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

/* What it is doing, for whoever finds it. */
void record_show(struct record *record, enum run_state state);

/* --- its key ------------------------------------------------------------------------------ */

/* Nobody else can take the key in `claim` before record_claimed(): between the two the record
 * is entered, or not started at all. Without a key both do nothing.
 * errors  ERR_ALREADY_EXISTS the key was taken since it was looked at: look again */
MUST_CHECK bool record_claim(struct record *record, uint64_t key_mark, struct err *e);
void record_claimed(struct record *record, bool started);

/* Another run may take the key while this one ends: see claims_give_back(). */
void record_give_back_key(struct record *record);

/* --- its events --------------------------------------------------------------------------- */

/* Its clock begins now. The first event, for the owner to append; the names are those of
 * record_enter(), the key is that of `claim`. */
struct event record_started(struct record *record, struct str text, struct str contract);

/* Of record_append(): the event at `seq` is the last. */
void record_ends(struct record *record, enum run_state ending, uint64_t seq);

/* Append a copy, with its time. Returns its seq. Inline: a turn does nothing more often. */
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

/* What was appended last counts only on the disk: until then it is hidden, with all that
 * follows, and on_durable is due. */
void record_gate(struct record *record);

/* Drop what no reader has seen; what follows stays in memory. */
void record_retract(struct record *record);

static inline bool record_is_ending(const struct record *record) {
    return record->state >= RECORD_ENDING;
}

#endif
