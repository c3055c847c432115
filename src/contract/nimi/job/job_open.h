/* job_open: find the job that a call is about, and check that its caller may see it.
 *
 * Memory   part of the work of a call, and freed with it when the call closes.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2 "owner check", section 9 number 27.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_OPEN_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_OPEN_H

#include "contract/nimi/call.h"
#include "contract/nimi/job/job_find.h"

/* The first member of the work of a call about a job. Each kind of call adds its own. */
struct job_open {
    struct nimi_call *call;
    uint64_t run;          /* of the id that was asked for */
    struct job_find *find; /* while the search runs */
    /* The job exists and this caller may see it. `*fold` is lent. */
    void (*on_open)(struct job_open *open, struct job_fold *fold);
};

/* Look for the job. The call is refused if there is none or its caller may not see it. */
void job_open_start(struct job_open *open, struct str job_id, enum job_fold_depth depth);

/* The call is closed. */
void job_open_done(struct job_open *open);

/* End the call: there is no such job, or (`failed`) it cannot be read now. */
void job_open_missing(struct job_open *open, const struct err *failed);

#endif
