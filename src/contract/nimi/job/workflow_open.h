/* workflow_open: find the workflow that a call is about, and let its owner alone see it.
 *
 * Memory   a member of the call's work; workflow_open_done() ends it.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.3 "owner check"; section 9 numbers 27, 28.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_OPEN_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_OPEN_H

#include "contract/nimi/call.h"
#include "contract/nimi/job/workflow_fold.h"

struct workflow_open {
    struct nimi_call *call;
    struct run_find *find;     /* while the search runs */
    struct workflow_fold fold; /* what was found */
    uint64_t run;              /* of the id that was asked for */
    char id[ULID_LEN + 1];     /* empty: any */
    /* Called once, later, unless the call is over or was refused. found: NULL, there is none. */
    void (*on_open)(struct workflow_open *open, const struct workflow_fold *found);
};

/* Look for it by its id (at == NULL: by `run`). A caller who may not see it is refused. */
void workflow_open_start(struct workflow_open *open, struct str task_id, uint64_t run);
void workflow_open_done(struct workflow_open *open);

#endif
