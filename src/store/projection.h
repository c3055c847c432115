/* projection: one table that is filled from the log. Private to project*.c.
 *
 *     open ─▶ begin, take, take ... write, end ─▶ begin ... ─▶ close
 *             └─────────── a batch ──────────┘
 *
 * A projection is a struct of functions and a row of `projections` (project.c). It has two
 * objects of its own: its table, open as long as the store, and what it has gathered from one
 * batch of rows. To add a projection, write a file that fills the struct, a row, and a
 * migration.
 *
 * Memory   both objects start as zero bytes and are passed to each function; gathered data may
 *          live in the batch's arena.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_PROJECTION_H
#define WEIR_STORE_PROJECTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "store/project.h"
#include "wire/event.h"

struct usage_change;

/* What a batch does to a run. */
struct run_change {
    struct run_change *next, *next_in_slot;
    struct run_entry entry;
    struct str user;             /* set with `started` */
    struct usage_change **usage; /* with `started`: the sum of its session's newest call */
    bool started;                /* by an event of this batch */
    bool begins;                 /* by the current event */
    bool fresh;                  /* not in the table yet */
    bool repeated;               /* once runs are written: it was fresh, but exists already */
};

/* The Unix time of the event. */
int64_t run_change_time_ms(const struct run_change *run, const struct event *event);

#define BATCH_RUN_SLOTS 1024 /* a power of two; a batch has some 2,500 runs */

/* What projections share while rows are gathered. */
struct batch {
    struct batch *next; /* among those that were written in the open transaction */
    struct project *project;
    int64_t from, upto; /* the rows after `from`; up to `upto`, or 0: as many as there are */
    bool again; /* for a table that is filled later than the others, which have these rows */
    struct arena *arena;
    struct run_change *slots[BATCH_RUN_SLOTS]; /* by number */
    struct run_change *runs, **last_run;
    size_t run_count;
    size_t cost;            /* of writing it: 1 for a run, SESSION_COST for a session */
    struct run_change *run; /* of the section that is being seen */
    struct buf key;         /* scratch for building a key */
    void **gathered;        /* of each projection */
    int64_t reached;
    size_t bytes;
    bool enough;
};

#define SESSION_COST 2

#define TAKES(kind) (1u << (kind))

struct projection {
    const char *name;
    unsigned takes;     /* TAKES() of the kinds of events it receives */
    size_t table_bytes; /* the size of its table */
    size_t batch_bytes; /* the size of what it gathers */
    bool lags;          /* it is written less often, and rows may be read for it again */
    /* Any of these may be NULL. `open` may fail halfway: `close` must accept that. */
    bool (*open)(void *table, struct database *db, struct err *e);
    void (*close)(void *table);
    void (*begin)(void *gathered);
    bool (*take)(struct batch *batch, void *gathered, struct run_change *run,
                 const struct event *event, struct err *e);
    bool (*write)(struct batch *batch, const void *gathered, void *table, struct err *e);
    /* What was written with this batch is committed; the batch goes. */
    void (*keep)(const struct batch *batch, const void *gathered, void *table);
    void (*end)(void *gathered);
};

extern const struct projection project_sessions, project_keys_of_requests, project_usage_sums;

/* The table of a projection. */
void *project_table(const struct project *project, const struct projection *projection);

/* What a projection has gathered in a batch. */
const void *batch_gathered(const struct batch *batch, const struct projection *projection);

/* --- for projections ---------------------------------------------------------------------- */

/* One zeroed object in the batch's arena, or NULL and ERR_RESOURCE_EXHAUSTED. */
void *batch_alloc(struct batch *batch, size_t size, struct err *e);

/* Replace *text by a copy in the batch's arena. */
MUST_CHECK bool batch_keep(struct batch *batch, struct str *text, struct err *e);

/* Build one key of several texts, of any bytes: clear it, such as batch->key, then add each text.
 * Its length is written before it. */
void projection_key_add(struct buf *key, struct str text);

#endif
