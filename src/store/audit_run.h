/* audit_run: what the audit log knows of runs that have begun and not ended. Private to store/.
 *
 * A table by the runs' ids, which are ours, so no peer can choose them.
 *
 * Memory   the table owns its entries; there are at most AUDIT_RUNS_MAX.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_AUDIT_RUN_H
#define WEIR_STORE_AUDIT_RUN_H

#include "base/str.h"

#define AUDIT_RUNS_MAX 65536
#define AUDIT_RUNS_SLOTS 1024

/* Its owner, and the open question to a human. */
struct audit_run {
    struct audit_run *next; /* in its slot */
    uint64_t id;
    struct str workspace, user, contract; /* in `room` */
    uint8_t asked[32];                    /* SHA-256 of the question's id */
    bool asks;
    char room[];
};

struct audit_runs {
    size_t count;
    struct audit_run *slots[AUDIT_RUNS_SLOTS];
};

/* NULL: unknown. */
struct audit_run *audit_runs_find(const struct audit_runs *runs, uint64_t id);

/* Texts are copied. An entry of the same run is replaced; a full table is emptied first. */
struct audit_run *audit_runs_put(struct audit_runs *runs, uint64_t id, struct str workspace,
                                 struct str user, struct str contract);

void audit_runs_remove(struct audit_runs *runs, uint64_t id);
void audit_runs_clear(struct audit_runs *runs);

#endif
