/* core: an open store, without its threads and mail: open, commit, project, answer, close.
 *
 * Memory   owns all that it opened; core_close() also after a failed core_open().
 * Threads  the store's.
 */
#ifndef WEIR_STORE_CORE_H
#define WEIR_STORE_CORE_H

#include "store/answer.h"
#include "store/checkpoint.h"
#include "store/mark.h"
#include "store/task.h"

struct core {
    enum store_durability durability;
    struct database db;
    struct mark mark;
    int lock;
    int64_t epoch;
    struct known *known; /* lent by who opens */
    struct rows rows;
    struct runs runs;
    struct project project;
    struct answer answer;
    struct checkpoint *checkpoint;
    sqlite3_stmt *begin, *commit, *learn;
    int wal_pages;       /* after the latest commit */
    bool purging;        /* deleted text may still stand in the write-ahead log */
    int64_t learned;     /* sessions up to this id are in `known` */
    int64_t opened_with; /* the newest row then */
};

MUST_CHECK bool core_open(struct core *core, const struct store_options *options,
                          struct known *known, struct err *e);
void core_close(struct core *core);

/* One transaction: every row of the writes from `first` up to `end` (not included), or none. */
MUST_CHECK bool core_commit(struct core *core, const struct store_write *first,
                            const struct store_write *end, struct err *e);

/* Run every task, in order; each says itself whether that failed. Those that write share
 * transactions where they stand side by side. */
void core_run(struct core *core, struct store_task *tasks);

/* Cut away what the write-ahead log has of deleted text. False: later, then. */
bool core_purge(struct core *core);

/* Rows that are not in the tables yet. */
static inline int64_t core_pending(const struct core *core) {
    return project_pending(&core->project);
}

/* Bring some of them there, in a transaction that need not be on disk. */
MUST_CHECK bool core_project(struct core *core, struct err *e);

/* Answer all of `loads`; each says itself whether that failed. What is pending is projected
 * first, and kept if the disk lets us. */
void core_answer(struct core *core, struct store_load *loads);

/* Delete some of the idempotency keys that are older than `kept_ms`; *ret_end: that was the
 * last of them, for now. */
MUST_CHECK bool core_prune(struct core *core, uint64_t kept_ms, bool *ret_end, struct err *e);

/* Put some more sessions into `known`; *ret_all: every session is there now. */
MUST_CHECK bool core_learn(struct core *core, bool *ret_all, struct err *e);

#endif
