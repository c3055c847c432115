/* job_find: a job by its id, as it is now.
 *
 *     live, and its journal reaches back ─▶ folded at once
 *     else a piece from the store ─▶ folded ─▶ look again, until nothing is left
 *
 * Memory   opaque; job_find_free() at any time. What is found is lent for the callback.
 * Threads  the loop that looks.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_FIND_H
#define WEIR_CONTRACT_NIMI_JOB_FIND_H

#include "contract/nimi/job_fold.h"
#include "run/session.h"

struct job_find;

/* Once, later. fold is NULL when there is no such job, or with `failed` when the store cannot
 * say. `*fold` may be changed, but not kept. */
typedef void job_found_fn(struct job_fold *fold, const struct err *failed, void *ctx);

struct job_find_options {
    struct loop *loop;
    struct session_table *sessions;
    struct str job_id; /* looked at until this returns; at == NULL: whatever id `run` has */
    uint64_t run;      /* without a job_id */
    enum job_fold_depth depth;
    job_found_fn *on_found;
    void *ctx;
};

struct job_find *job_find_new(const struct job_find_options *options);
void job_find_free(struct job_find *find); /* no callback afterwards; NULL is fine */

#endif
