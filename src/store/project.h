/* project: fill the tables of sessions, runs, keys and usage from the log.
 *
 *     log   1 2 3 4 5 │ 6 7 8 9        meta.projected = 5: what follows is pending
 *           projected     pending
 *
 * The tables depend only on the log's rows and on themselves, and their progress is written in
 * the same transaction, so a row counts exactly once however often the process dies. The
 * effects of a batch on a run, a session or a sum are gathered first: one insert per run, one
 * write per session.
 *
 * While the tables keep up, this is gathered as rows are written, from the bytes in memory. The
 * log is read back only at start, or after a failure.
 *
 * Each table is a projection: a row of a table of functions; see projection.h.
 *
 * Memory   what a batch gathers lives in the batch's own arena.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_PROJECT_H
#define WEIR_STORE_PROJECT_H

#include "store/idempotency_key.h"
#include "store/row.h"
#include "store/run.h"
#include "store/session_filter.h"
#include "store/store.h"
#include "store/usage.h"
#include "wire/event.h"

struct project {
    struct database *db;
    struct rows *rows;
    struct runs *runs;
    struct session_filter *known;
    struct prepared *note;
    void **tables;                         /* of each projection; see projection.h */
    struct batch *seen;                    /* gathered from every row after `done`, or NULL */
    struct batch *written, **last_written; /* in the open transaction */
    int64_t done;    /* rows up to here are in the tables, but for sums of usage that wait */
    int64_t reached; /* like `done`, in the open transaction */
};

MUST_CHECK bool project_open(struct project *project, struct database *db, struct rows *rows,
                             struct runs *runs, struct session_filter *known, struct err *e);
void project_close(struct project *project);

static inline int64_t project_pending(const struct project *project) {
    return project->rows->newest - project->done;
}

/* Gather from the rows of a commit while they are in memory. Call project_watch() before the
 * first row; then for every row, for each section of it, project_see_section(), the section's
 * events other than texts and project_see_section_end(), with one more than the last event's
 * number; and project_see_end(), `bad` when the row holds bytes that are no section. They do
 * nothing while `seen` is NULL. Call project_forget() when the commit fails. */
void project_watch(struct project *project);
void project_see_section(struct project *project, const struct row *row,
                         const struct store_section *section);
void project_see_event(struct project *project, const struct event *event);
void project_see_unknown(const struct project *project, const struct row *row,
                         const struct err *unknown);
void project_see_section_end(struct project *project, uint64_t seq);
void project_see_end(struct project *project, const struct row *row, bool bad);
void project_forget(struct project *project);

/* The bytes of the rows that were seen and are pending, and what writing them takes: about as much
 * as so many runs. */
size_t project_pending_bytes(const struct project *project);
size_t project_pending_cost(const struct project *project);

/* Project pending rows within the caller's transaction: all that were seen, or else at most
 * `count`. After the transaction call project_keep(), or project_drop() if it was rolled
 * back. */
MUST_CHECK bool project_batch(struct project *project, size_t count, struct err *e);
void project_keep(struct project *project);
void project_drop(struct project *project);

/* Sums of usage are written less often than the other tables (project_usage.c). Settled: all
 * that `done` says are written. Read: those that are not are in memory, as always but after a
 * crash. Due: enough wait to be written. */
bool project_usage_is_settled(const struct project *project);
bool project_usage_is_read(const struct project *project);
bool project_usage_is_due(const struct project *project);

/* Read some of the rows whose sums are neither in memory nor in the table. */
MUST_CHECK bool project_usage_read(struct project *project, size_t count, struct err *e);

/* Within a transaction like project_batch(), after it, once they are read: write all sums. */
MUST_CHECK bool project_usage_settle(struct project *project, struct err *e);

/* In a shared store (core_replica.h): whether the tables are where they were left, by the marks
 * of the store; and go on from where others have left them. Forgets what was gathered. */
bool project_is_at(const struct project *project, int64_t projected, int64_t usage);
void project_move(struct project *project, int64_t projected, int64_t usage);

/* The tables that are also read, through their own modules. */
struct usage_table *project_usage(const struct project *project);
struct key_table *project_keys(const struct project *project);

/* Find a session's id and newest run. */
MUST_CHECK bool project_session(struct project *project, struct str workspace, struct str user,
                                struct str name, int64_t *ret_id, uint64_t *ret_newest,
                                struct err *e);

/* A task may have erased a session: what is remembered of them counts for nothing. */
void project_forget_sessions(struct project *project);

#endif
