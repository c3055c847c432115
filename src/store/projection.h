/* projection: one table that is filled from the log. Private to project*.c.
 *
 *     open ─▶ begin, take, take ... write, end ─▶ begin ... ─▶ close
 *             └─────────── a batch ──────────┘
 *
 * A projection is a struct of functions and a row of `projections` (project.c). It keeps two
 * things of its own there: its table, open as long as the store, and what it has gathered from
 * the rows of one batch. A new one is a file that fills the struct, a row, and a migration.
 *
 * Memory   both begin as zero bytes, and are given to each function; what is gathered may lie
 *          in the batch's arena.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_PROJECTION_H
#define WEIR_STORE_PROJECTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "store/project.h"
#include "wire/event.h"

/* What a batch does to a run. */
struct run_change {
    struct run_change *next;
    struct run_entry entry;
    struct str user; /* set with `started` */
    bool started;    /* by an event of this batch */
    bool begins;     /* by the event that is shown now */
    bool fresh;      /* not in the table yet */
    bool repeated;   /* once runs are written: it was fresh, and there already is one */
};

/* When that was, by Unix time. */
int64_t run_change_time_ms(const struct run_change *run, const struct event *event);

/* What the projections share while rows are gathered. */
struct batch {
    struct project *project;
    struct arena *arena;
    struct map *run_map;
    struct run_change *runs, **last_run;
    struct buf key;  /* room to put one together */
    void **gathered; /* of each projection */
    int64_t reached;
    size_t bytes;
    bool enough;
};

#define TAKES(kind) (1u << (kind))

struct projection {
    const char *name;
    unsigned takes;     /* TAKES() of the kinds of events that it is shown */
    size_t table_bytes; /* of what it keeps open */
    size_t batch_bytes; /* of what it gathers */
    /* Any of these may be missing. `open` may fail halfway: `close` takes what there is. */
    bool (*open)(void *table, struct database *db, struct err *e);
    void (*close)(void *table);
    void (*begin)(void *gathered);
    bool (*take)(struct batch *batch, void *gathered, struct run_change *run,
                 const struct event *event, struct err *e);
    bool (*write)(struct batch *batch, const void *gathered, void *table, struct err *e);
    void (*end)(void *gathered);
};

extern const struct projection project_sessions, project_keys_of_requests, project_usage_sums;

/* What a projection keeps open. */
void *project_table(const struct project *project, const struct projection *projection);

/* --- for those that gather ---------------------------------------------------------------- */

/* ERR_RESOURCE_EXHAUSTED; false. */
bool batch_is_full(struct err *e);

/* One zeroed object in the batch's arena, or NULL and ERR_RESOURCE_EXHAUSTED. */
void *batch_alloc(struct batch *batch, size_t size, struct err *e);

/* Let *text be a copy in the batch's arena. */
MUST_CHECK bool batch_keep(struct batch *batch, struct str *text, struct err *e);

/* Texts of any bytes as one key: clear batch->key, then add each behind its length. */
void batch_key_add(struct batch *batch, struct str text);

#endif
