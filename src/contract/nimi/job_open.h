/* job_open: a call about one job finds it, and whether its caller may see it.
 *
 * Memory   the work of a call; closing it frees it.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2 "owner check", section 9 number 27.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_OPEN_H
#define WEIR_CONTRACT_NIMI_JOB_OPEN_H

#include "contract/nimi/call.h"
#include "contract/nimi/job_find.h"

/* What a call about a job begins with; each kind of call has more behind it. */
struct job_open {
    struct nimi_call *call;
    uint64_t run;          /* of the id that was asked for */
    struct job_find *find; /* while it is looked for */
    /* The job is there, and is shown to this caller; `*fold` is lent. */
    void (*on_open)(struct job_open *open, struct job_fold *fold);
};

/* Look for it; who may not see it, or finds none, is refused. */
void job_open_start(struct job_open *open, struct str job_id, enum job_fold_depth depth);

/* The call is closed. */
void job_open_done(struct job_open *open);

/* There is no such job, or (`failed`) nobody can say now: end the call. */
void job_open_missing(struct job_open *open, const struct err *failed);

#endif
