/* audit_run: what the audit log knows of runs that have begun and not ended. Private to store/.
 *
 * A table by the runs' ids, which are ours, so no peer can choose them. A run that waits for a
 * human leaves it once its owner is in the tables of the store, and is looked up there later;
 * what stays is its question (audit_question.h).
 *
 * Memory   the table owns its entries, at most AUDIT_RUNS_MAX_BYTES of them.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_AUDIT_RUN_H
#define WEIR_STORE_AUDIT_RUN_H

#include "base/list.h"
#include "store/audit_question.h"

#define AUDIT_RUNS_MAX_BYTES (8 * MIB)
#define AUDIT_RUNS_SLOTS 1024

/* Its owner. */
struct audit_run {
    struct audit_run *next; /* in its slot */
    struct list waiting;    /* among those that wait for a human */
    uint64_t id;
    int64_t row;                          /* of the question, while it waits */
    struct str workspace, user, contract; /* in `room` */
    char room[];
};

struct audit_runs {
    size_t bytes;        /* of the entries */
    struct list waiting; /* entries that may leave */
    struct audit_questions questions;
    struct audit_run *slots[AUDIT_RUNS_SLOTS];
};

void audit_runs_init(struct audit_runs *runs);
void audit_runs_clear(struct audit_runs *runs);

/* NULL: unknown. */
struct audit_run *audit_runs_find(const struct audit_runs *runs, uint64_t id);

/* Texts are copied. An entry of the same run is replaced; a full table is emptied first. */
struct audit_run *audit_runs_put(struct audit_runs *runs, uint64_t id, struct str workspace,
                                 struct str user, struct str contract);

/* The run's entry and its question. */
void audit_runs_remove(struct audit_runs *runs, uint64_t id);

/* The tables have all rows up to `projected`: free the entries of runs that wait, as far as
 * their questions are in those rows. */
void audit_runs_leave(struct audit_runs *runs, int64_t projected);

#endif
