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
    bool open;           /* opened, or opened again */
    int64_t doubted;     /* the newest row of the transaction that was committed last */
    int wal_pages;       /* after the latest commit */
    bool purging;        /* deleted text may still stand in the write-ahead log */
    int64_t learned;     /* sessions up to this id are in `known` */
    int64_t opened_with; /* the newest row then */
};

MUST_CHECK bool core_open(struct core *core, const struct store_options *options,
                          struct known *known, struct err *e);
void core_close(struct core *core);

/* A sync failed, somewhere. Nothing may be written, read or acknowledged any more: what was
 * asked fails and changes nothing, until core_reopen(). */
bool core_stopped(const struct core *core);

/* Close all but the lock, without folding or syncing anything; write the log over with its own
 * bytes, open and inspect the database as at a start, and fold all of the log into it. When
 * that is done, what can be read is on the disk.
 * errors  any of core_open(): it is still stopped; try again later */
MUST_CHECK bool core_reopen(struct core *core, const struct store_options *options,
                            struct err *e);

/* After that: whether the transaction whose commit stopped the store is there. */
static inline bool core_kept_doubted(const struct core *core) {
    return core->rows.newest >= core->doubted;
}

/* One transaction: every row of the writes from `first` up to `end` (not included), or none;
 * which of the two, when the store has stopped, core_kept_doubted() will tell. */
MUST_CHECK bool core_commit(struct core *core, const struct store_write *first,
                            const struct store_write *end, struct err *e);

/* Run every task, in order; each says itself whether that failed. Those that write share
 * transactions where they stand side by side. Returns those that were not begun because the
 * store has stopped: a tail of `tasks`, mostly NULL. Before it stand those of which
 * core_kept_doubted() will tell, with ERR_OUTCOME_UNKNOWN. */
struct store_task *core_run(struct core *core, struct store_task *tasks);

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
