/* run_find: read a run of this contract, live or stored, into a fold of its events.
 *
 *     live, journal complete ─▶ folded at once
 *     else a piece from the store ─▶ folded ─▶ look again, until nothing is left
 *
 * Memory   opaque; run_find_free() may be called at any time. The fold is the caller's.
 * Threads  the loop it was started on.
 */
#ifndef WEIR_CONTRACT_NIMI_RUN_FIND_H
#define WEIR_CONTRACT_NIMI_RUN_FIND_H

#include "session/session.h"
#include "store/store.h"

/* A fold, as run_find needs it. */
struct run_fold {
    void (*take)(const struct event *event, void *fold);
    uint64_t (*seq)(const void *fold); /* of the last event that was folded */
    bool (*done)(const void *fold);    /* nothing more is to come, or it is damaged */
};

/* Fold all events of these sections that come next. False: a section is incomplete. */
MUST_CHECK bool run_fold_sections(const struct run_fold *kind, void *fold,
                                  const struct store_section *sections, size_t count);

struct run_find;

/* Called once, later. failed: the store cannot tell. */
typedef void run_found_fn(const struct err *failed, void *ctx);

struct run_find_options {
    struct loop *loop;
    struct session_table *sessions;
    uint64_t run; /* 0: none, and nothing is folded */
    const struct run_fold *kind;
    void *fold;
    run_found_fn *on_found;
    void *ctx;
};

struct run_find *run_find_new(const struct run_find_options *options);
void run_find_free(struct run_find *find); /* no callback afterwards; NULL is fine */

#endif
