/* project: fill the tables of sessions, runs, keys and usage from the log behind them.
 *
 *     log   1 2 3 4 5 │ 6 7 8 9        meta.projected = 5: what follows is pending
 *           projected     pending
 *
 * The tables need nothing but the rows and themselves, and how far they are stands in the
 * same transaction, so a row counts exactly once however often the process dies. What a batch
 * does to a run, a session or a sum is gathered first: one insert a run, one write a session.
 *
 * While the tables keep up, that is gathered as the rows are written, from the bytes at hand;
 * the log is read back only at a start, or when something failed.
 *
 * Each table is a projection: a row of a table of functions; see projection.h.
 *
 * Memory   a batch's gathering lives in an arena of its own.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_PROJECT_H
#define WEIR_STORE_PROJECT_H

#include "store/key.h"
#include "store/known.h"
#include "store/row.h"
#include "store/run.h"
#include "store/usage.h"

struct project {
    struct database *db;
    struct rows *rows;
    struct runs *runs;
    struct known *known;
    sqlite3_stmt *note;
    void **tables;      /* of each projection; see projection.h */
    struct batch *seen; /* gathered from every row behind `done`, or NULL */
    int64_t done;       /* rows up to here are in the tables */
    int64_t reached;    /* as `done`, in the transaction that is open */
};

MUST_CHECK bool project_open(struct project *project, struct database *db, struct rows *rows,
                             struct runs *runs, struct known *known, struct err *e);
void project_close(struct project *project);

static inline int64_t project_pending(const struct project *project) {
    return project->rows->newest - project->done;
}

/* Gather from the rows of a commit while they are at hand: watch before the first one, and as
 * long as `seen` is not NULL then show every row. When the commit fails, forget it all. */
void project_watch(struct project *project);
void project_see(struct project *project, const struct row *row);
void project_forget(struct project *project);

/* Of the rows that were seen and are pending. */
size_t project_pending_bytes(const struct project *project);

/* Bring pending rows into the tables: all that were seen, or at most `count` of them, within
 * the caller's transaction. After it call project_keep(), or project_drop() when it was rolled
 * back. */
MUST_CHECK bool project_batch(struct project *project, size_t count, struct err *e);
void project_keep(struct project *project);
void project_drop(struct project *project);

/* The tables that are also read, by their own modules. */
struct usage_table *project_usage(const struct project *project);
struct key_table *project_keys(const struct project *project);

/* Whose session this is: its id and newest run. */
MUST_CHECK bool project_session(struct project *project, struct str workspace, struct str user,
                                struct str name, int64_t *ret_id, uint64_t *ret_newest,
                                struct err *e);

#endif
