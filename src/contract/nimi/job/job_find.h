/* job_find: find a job by its id, in its current state (run_find.h).
 *
 * Memory   opaque; job_find_free() may be called at any time. The result is lent for the
 *          callback.
 * Threads  the loop it was started on.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_FIND_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_FIND_H

#include "contract/nimi/job/job_fold.h"
#include "session/session.h"

struct job_find;

/* Called once, later. fold is NULL when there is no such job, or when the store cannot tell
 * (`failed` says why). `*fold` may be changed, but not kept. */
typedef void job_found_fn(struct job_fold *fold, const struct err *failed, void *ctx);

struct job_find_options {
    struct loop *loop;
    struct session_table *sessions;
    struct str job_id; /* borrowed during the call; at == NULL: find by `run` alone */
    uint64_t run;      /* without a job_id */
    enum job_fold_depth depth;
    job_found_fn *on_found;
    void *ctx;
};

struct job_find *job_find_new(const struct job_find_options *options);
void job_find_free(struct job_find *find); /* no callback afterwards; NULL is fine */

#endif
