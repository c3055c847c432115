/* run_find: read a run of this contract, live or stored, into a fold of its events.
 *
 *     live, journal complete ─▶ folded at once
 *     else a piece from the store ─▶ folded ─▶ look again, until nothing is left
 *
 * Memory   opaque; run_find_free() may be called at any time. The fold is the caller's.
 * Threads  the loop it was started on.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_RUN_FIND_H
#define WEIR_CONTRACT_NIMI_JOB_RUN_FIND_H

#include "contract/nimi/job/run_fold.h"
#include "session/session.h"
#include "store/store.h"

struct run_find;

/* Called once, later. failed: the store cannot tell. */
typedef void run_found_fn(const struct err *failed, void *ctx);

struct run_find_options {
    struct loop *loop;
    struct session_table *sessions;
    uint64_t run; /* 0: none, and nothing is folded */
    struct run_fold *fold;
    run_found_fn *on_found;
    void *ctx;
};

struct run_find *run_find_new(const struct run_find_options *options);
void run_find_free(struct run_find *find); /* no callback afterwards; NULL is fine */

#endif
