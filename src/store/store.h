/* store: what survives a restart.
 *
 * One append-only log of packed events is the truth. Tables of runs, sessions and usage are
 * projections: the store's own thread fills them from the log, and catches up at start. Writes
 * that arrive during a commit share the next one (group commit).
 *
 * A row of the log holds sections, each a stretch of one run's events in their encoding:
 *
 *     row = section+     section = run varint · first seq varint · length varint · events
 *
 * The store packs rows that are committed together into one (row.h), which changes nothing here.
 *
 * The first row of a run is its own, and so is a row that ends it, calls a tool or has a tool's
 * result. Text in between shares a row with all other live runs (run column 0).
 *
 * The folder holds weir.db, SQLite's weir.db-wal and -shm, weir.lock (the owner) and weir.mark
 * (how much was acknowledged). docs/internals/store.md draws how they relate.
 *
 * A failed sync stops the store: nothing is acknowledged, and the sync is not tried again. The
 * store closes the database, opens it again as at a start and looks at what is there. It then
 * answers the interrupted commit by what it found, and goes on. Requests that arrive meanwhile
 * wait.
 *
 * Memory   said at each call.
 * Threads  store_write, store_load: any loop; answers come as mail to the loop they name.
 * Source   design.md, "The journal"; checks.md groups T and R.
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"
#include "loop/loop.h"
#include "wire/event.h"

struct bucket;
struct store;
struct changes;

enum store_durability {
    STORE_FULL,   /* acknowledged means on disk: fsync in every commit */
    STORE_NORMAL, /* survives kill -9, not a power cut */
    STORE_OFF,    /* survives nothing; for measurements */
};

#define STORE_DOUBT_MS 3000

#define STORE_SEARCHES 4

struct store_options {
    struct str folder; /* created if missing, mode 0700; the database is folder/weir.db */
    /* The address of a PostgreSQL server, as in postgres/postgres.h: the store is there, in
     * tables that `weir migrate` has made, and nothing is in the folder. Empty: SQLite. */
    struct str postgres;
    struct str schema; /* where its tables are, one name; empty: the server's search path */
    /* The name of this process among several that share the store (core_replica.h); empty: it
     * is the only one. Only with `postgres`. */
    struct str replica;
    /* Connections to the server for searches of memories, beside the one of the store's thread; 0:
     * STORE_SEARCHES. */
    size_t searches;
    uint64_t lease_ms; /* how long what it holds stays its own without a word from it */
    /* Of a replica, and called on a thread of the store's, which must not be held up: a replica
     * has died (takeover.h; again until one has taken over), and this one was fenced: nothing
     * can be written any more. The context is `ctx`. */
    void (*on_died)(void *ctx);
    void (*on_lost)(void *ctx);
    enum store_durability durability;
    struct bucket *bucket; /* has the bytes of artifacts; NULL: the database. Outlives it */
    struct loop *loop;     /* where on_open is called */
    /* Called once: with NULL when reads and writes can begin, or with an error when they never
     * will: ERR_FAILED_PRECONDITION (another process has it; a newer schema), ERR_DATA_LOSS (a
     * damaged file), ERR_UNAVAILABLE (cannot be opened). The text names the file and the
     * fix. */
    void (*on_open)(const struct err *failed, void *ctx); /* failed is NULL on success */
    void *ctx;
    uint64_t doubt_ms; /* after a failed sync: how long requests wait for the store to open
                          again before they are answered; 0: STORE_DOUBT_MS */
    /* NULL, except in tests: called at each named step, on the store's thread. Tests kill the
     * process there. */
    void (*at_step)(const char *step, void *ctx);
};

/* Writes and loads may be queued at once; they are answered after on_open, or fail with its error.
 * Nothing is opened before store_begin(). */
struct store *store_new(const struct store_options *options);

/* Start the store's thread, which opens the database in the background. Once. */
void store_begin(struct store *store);

/* Both. */
struct store *store_open(const struct store_options *options);

/* Finish what is queued, checkpoint, close, and end the thread. Blocks. NULL is fine. Call it
 * on the loop given for on_open. Answers already on their way still arrive when their loops
 * turn, except on_open, which is dropped. No request may follow. What is queued in a store that
 * was never begun fails with ERR_UNAVAILABLE. */
void store_close(struct store *store);

/* Valid after on_open: 1 in a new store, incremented at every start. */
uint64_t store_epoch(const struct store *store);

/* As in the options. Any loop. */
struct bucket *store_bucket(const struct store *store);

/* Whether other processes write to the store, too; and, valid after on_open, a number below 256
 * that no other living one of them has. */
bool store_is_shared(const struct store *store);
unsigned store_slot(const struct store *store);

/* How many of them there are, this one included, a moment ago; at least 1. Any thread. */
size_t store_living(const struct store *store);

/* Tell when others have written (changes.h). Of a store that is not shared: never. */
struct changes *store_changes(struct store *store);

/* Delete idempotency keys older than `kept_ms`, in small steps, now and once an hour. With 0,
 * and until this is called, they stay. Any loop. */
void store_keep_keys(struct store *store, uint64_t kept_ms);

/* Delete records of the audit log that are older than `kept_ms`, and the oldest beyond
 * `kept_bytes`, in small steps beside new records. 0, and until this is called: no such limit.
 * Any loop. */
void store_keep_audit(struct store *store, uint64_t kept_ms, uint64_t kept_bytes);

/* --- writing ------------------------------------------------------------------------------ */

struct store_row {
    uint64_t run;     /* the run that the row belongs to, or 0 for a shared row */
    struct buf bytes; /* sections, made with store_section_append() */
};

struct store_write;
typedef void store_written_fn(struct store_write *write, const struct err *failed, void *ctx);

/* One all-or-nothing part of a commit. It fails with ERR_UNAVAILABLE while the disk is full or
 * broken (nothing was kept: try again later), with ERR_OUTCOME_UNKNOWN when a sync failed and
 * the outcome could not be read in time (it may have been kept: a caller that repeats it must
 * be able to recognise it), and with ERR_TOO_LARGE when a row exceeds 64 MiB. Writes of one
 * loop are answered in order. The caller owns the struct and keeps it unchanged until
 * on_written has run on `home`; the store never frees it. */
struct store_write {
    struct store_write *next; /* the store's */
    struct mail mail;         /* the store's */
    struct err failed;        /* the store's */
    struct store_row *rows;
    size_t row_count;
    struct loop *home;
    store_written_fn *on_written; /* failed is NULL when it is durable as configured */
    void *ctx;
};

void store_write(struct store *store, struct store_write *write);

/* Append one section to a row's bytes. False at the buffer's limit. */
bool store_section_append(struct buf *row, uint64_t run, uint64_t first_seq, struct str events);

/* Begin a section of `len` bytes of events, at least one, which the caller appends next; there is
 * room for them. False at the buffer's limit. */
MUST_CHECK bool store_section_begin(struct buf *row, uint64_t run, uint64_t first_seq,
                                    size_t len);

/* Walk a row's sections. False at the end; or, with *ret_bad set, at bytes that are no
 * section. */
struct store_section {
    uint64_t run, first_seq;
    struct str events;
    int64_t row; /* of STORE_SESSION: what was written later has a higher number */
};
bool store_section_next(struct str *row, struct store_section *ret, bool *ret_bad);

/* --- reading ------------------------------------------------------------------------------ */

/* All loads: the caller keeps the struct until on_loaded has run on `home`, then frees
 * `arena` with arena_free(). Results borrow that arena. */

struct store_load;
typedef void store_loaded_fn(struct store_load *load, const struct err *failed, void *ctx);

enum store_question {
    STORE_SESSION,      /* sections of the newest finished runs of a session, oldest run first.
                           Leaves out shared rows, and runs that do not fit max_bytes whole; the
                           newest may have 32 MiB. An unknown session is an empty answer, not an
                           error, and mostly costs a microsecond */
    STORE_SESSION_RUNS, /* the ids of those runs, and of unfinished ones, whatever their size:
                           one section each, without events, oldest first */
    STORE_RUN, /* every section of one run after `after_seq`, in order, at most max_bytes:
                  the first and last are cut between events, but one event always fits. `open`
                  says whether the run is there and has no end */
    STORE_UNFINISHED, /* one entry for each run without a terminal event: run id, last seq */
    STORE_USAGE,      /* sums of model calls, ordered by workspace, agent, model and day. All of
                         them, or none with ERR_RESOURCE_EXHAUSTED: an incomplete sum is wrong */
    STORE_KEY,        /* the run that an idempotency key of a user stands for */
    STORE_THREAD, /* the newest run of each user's session of that name: sections whose `events`
                     are the user. With a user, only that user's. If user.at is NULL, only the
                     THREADS_LOOK_MAX newest sessions of all are searched */
};

#define THREADS_LOOK_MAX 5000

/* What a key stands for. */
struct store_key {
    uint64_t run; /* 0: nothing */
    int64_t started_ms;
    struct str print; /* the fingerprint of the request */
    uint64_t seq;     /* of the approval answered with this key; 0: the key began the run */
    bool left;        /* the run was cancelled because its caller left */
    bool failed;      /* it failed, or its process died */
    bool acted;       /* with either: a call that must not be repeated had been made */
};

/* An agent's calls to one model on one day. The sums leave out the tokens of uncounted calls
 * and the cost of calls without a price; the number of such calls is given separately. */
struct store_usage {
    struct str workspace, agent;
    int64_t day; /* since 1970-01-01, UTC */
    int64_t calls, tokens_unknown, cost_unknown;
    struct event_usage sums; /* the model, and the sum of each count */
    /* Estimates for some of the uncounted calls; not in the sums above. */
    int64_t estimated, estimate_tokens, estimate_cost_nano;
};

struct store_load {
    struct store_load *next; /* the store's */
    struct mail mail;        /* the store's */
    struct err failed;       /* the store's */
    enum store_question question;
    struct str workspace, user, session; /* STORE_SESSION*; STORE_USAGE: the workspace */
    size_t runs_max;                     /* STORE_SESSION*: the most runs in the answer */
    struct str key;                      /* STORE_KEY, with workspace and user */
    uint64_t run, after_seq;             /* STORE_RUN */
    size_t place;             /* STORE_RUN: where an earlier answer ended; 0: unknown */
    bool all_workspaces;      /* STORE_USAGE */
    int64_t from_day, to_day; /* STORE_USAGE: both included */
    size_t max_bytes;         /* of the answer */
    struct loop *home;
    store_loaded_fn *on_loaded;
    void *ctx;
    /* The answer. */
    struct arena *arena;
    struct store_section *sections; /* STORE_UNFINISHED: first_seq is the last seq on disk */
    size_t section_count;
    bool more;           /* cut at max_bytes or runs_max */
    bool open;           /* STORE_RUN; `place` is where this answer ended */
    uint64_t newest_run; /* STORE_UNFINISHED: the highest id of all runs; 0: there is none */
    struct store_usage *usages;
    size_t usage_count;
    struct store_key key_means;
};

void store_load(struct store *store, struct store_load *load);

/* --- resting ------------------------------------------------------------------------------ */

/* The store's thread frees the memory of cached pages, which will not be needed for a while; then it
 * calls fn(ctx). Any loop. */
void store_rest(struct store *store, struct loop *home, task_fn *fn, void *ctx);

#endif
