/* core: an open store, without its threads and mail: open, commit, project, answer, close.
 *
 * Memory   owns everything it opened; call core_close() also after a failed core_open().
 * Threads  the store's.
 */
#ifndef WEIR_STORE_CORE_H
#define WEIR_STORE_CORE_H

#include "store/answer.h"
#include "store/audit.h"
#include "store/checkpoint.h"
#include "store/mark.h"
#include "store/store_folder.h"
#include "store/task.h"

struct core {
    enum store_durability durability;
    struct database db;
    struct mark mark;
    int lock;
    struct store_folder_watch watch;
    int64_t epoch;
    struct session_filter *known; /* borrowed from the caller of core_open() */
    struct rows rows;
    struct runs runs;
    struct project project;
    struct answer answer;
    struct audit audit;
    struct checkpoint *checkpoint;
    struct long_reader *reader; /* borrowed like `known`; NULL: none */
    struct prepared *begin, *commit, *learn;
    struct {
        bool shared;           /* the store has other processes: core_replica.h */
        bool lost;             /* this one was fenced: nothing can be written any more */
        bool gone;             /* and its count of commits is not there any more */
        uint64_t lease_ms;     /* how long it is alive without a renewal */
        unsigned slot;         /* a number that no other living replica has, below 256 */
        int64_t commits, kept; /* counted here; found on the server when it was opened again */
        struct prepared *look, *count;
    } replica;
    bool open;           /* core_open() or core_reopen() succeeded */
    int64_t doubted;     /* the newest row of the last transaction; shared: its count */
    int wal_pages;       /* after the latest commit */
    bool purging;        /* deleted text may still be in the write-ahead log */
    uint64_t purge_ms;   /* not tried again before this */
    int64_t learned;     /* sessions up to this id are in `known` */
    int64_t opened_with; /* the newest row at that time */
};

MUST_CHECK bool core_open(struct core *core, const struct store_options *options,
                          struct session_filter *known, struct long_reader *reader,
                          struct err *e);
void core_close(struct core *core);

/* Whether a sync has failed. Until core_reopen() nothing may be written, read or acknowledged:
 * requests fail and change nothing. */
bool core_stopped(const struct core *core);

/* Before new work: notice that a server closed its connection meanwhile. Does not block. */
void core_look(struct core *core);

/* Close everything but the lock, without folding or syncing. Overwrite the log with its own
 * bytes, open and inspect the database as at a start, and fold the whole log into it.
 * Afterwards everything that can be read is on disk.
 * errors  as core_open(): the store is still stopped; try again later */
MUST_CHECK bool core_reopen(struct core *core, const struct store_options *options,
                            struct err *e);

/* After core_reopen(): whether the transaction whose commit stopped the store is there. */
static inline bool core_kept_doubted(const struct core *core) {
    int64_t kept = core->replica.shared ? core->replica.kept : core->rows.newest;
    return kept >= core->doubted;
}

/* Commit the rows of the writes from `first` up to `end` (not included) in one transaction: all
 * or none. If the store has stopped, core_kept_doubted() says which later. */
MUST_CHECK bool core_commit(struct core *core, const struct store_write *first,
                            const struct store_write *end, struct err *e);

/* Run every task in order; each task holds its own result. Adjacent tasks that write share a
 * transaction. Returns the tasks that were not begun because the store has stopped: a tail of
 * `tasks`, usually NULL. Tasks before it that have ERR_OUTCOME_UNKNOWN are settled by
 * core_kept_doubted(). */
struct store_task *core_run(struct core *core, struct store_task *tasks);

/* Remove deleted text from the write-ahead log. False: not possible now, try again later. */
bool core_purge(struct core *core);

/* Rows that are not in the tables yet; one more while sums of usage wait. */
static inline int64_t core_pending(const struct core *core) {
    return project_pending(&core->project) + !project_usage_is_settled(&core->project);
}

/* Project some of them, in a transaction that need not be on disk. */
MUST_CHECK bool core_project(struct core *core, struct err *e);

/* Answer all of `loads`; each load holds its own result. Pending rows are projected first, and
 * that is kept if the disk allows. */
void core_answer(struct core *core, struct store_load *loads);

/* Delete some of the idempotency keys older than `kept_ms`. *ret_end: those were the last, for
 * now. */
MUST_CHECK bool core_prune(struct core *core, uint64_t kept_ms, bool *ret_end, struct err *e);

/* Add some more sessions to `known`. *ret_all: all sessions are there now. */
MUST_CHECK bool core_learn(struct core *core, bool *ret_all, struct err *e);

#endif
