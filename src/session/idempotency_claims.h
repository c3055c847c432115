/* idempotency_claims: which live run holds which of its caller's idempotency keys.
 *
 * The store knows the keys that are on disk. This table has the keys of live runs, from the
 * moment they start, so that of two requests with the same key only one starts a run, on any
 * loops:
 *
 *     look ─▶ taken: its run               begin ─▶ (locked) run_start ─▶ end
 *          └▶ free: ask the store ─▶ free: ┘  └▶ false: taken meanwhile, or one of these keys
 *                                                was given back: look again
 *
 * A claim is removed once all of its run is on disk. A caller that looked here, and asked the
 * store, before the run was in either place must then look again: the mark has changed.
 *
 * A run that fails, or is cancelled because its caller left, gives its key back at once, unless
 * repeating the request would repeat an effect. Another run may take the key while the first
 * one is still ending. The first run's claim stays until then, because the store may not know
 * its outcome yet.
 *
 * A human's answer may have a key as well. It stands for what came of that answer, that is, the
 * run after the event `seq`, and is never given back.
 *
 * Memory   a claim lives inside its run. The claim of an answer is allocated, and the run frees
 *          it.
 * Threads  any; striped locks inside. idempotency_claims_begin() keeps a lock until
 *          idempotency_claims_end(): only start the run between them.
 * Source   contracts/agentbreeder.md 1.2; checks.md R-1.
 */
#ifndef WEIR_SESSION_IDEMPOTENCY_CLAIMS_H
#define WEIR_SESSION_IDEMPOTENCY_CLAIMS_H

#include "base/list.h"
#include "base/str.h"

#define CLAIM_KEY_MAX_BYTES 255
#define CLAIM_PRINT_BYTES 32 /* of a request's fingerprint */

struct idempotency_claims;

/* Whose key. */
struct claim_name {
    struct str workspace, user, key;
};

struct claim {
    struct list link;
    struct claim_name name; /* valid as long as the claim */
    struct str print;
    uint64_t run, seq;  /* seq: of the approval that was answered; 0: the run's beginning */
    bool given_back;    /* claims' own */
    struct claim *next; /* of an answer: its run's */
};

struct claim_view {
    uint64_t run, seq;   /* run 0: no live run holds the key */
    uint64_t given_back; /* the newest live run that gave it back; 0: none */
    uint64_t mark;
    size_t print_len;
    char print[CLAIM_PRINT_BYTES];
};

struct idempotency_claims *idempotency_claims_new(void);
void idempotency_claims_free(
    struct idempotency_claims *claims); /* must be empty; NULL is fine */

void idempotency_claims_look(struct idempotency_claims *claims, const struct claim_name *name,
                             struct claim_view *ret);

/* True: the key is reserved until idempotency_claims_end(). */
bool idempotency_claims_begin(struct idempotency_claims *claims, const struct claim_name *name,
                              uint64_t mark);

/* Enter `claim`. NULL: nothing was started. */
void idempotency_claims_end(struct idempotency_claims *claims, const struct claim_name *name,
                            struct claim *claim);

/* Its run is ending, and the key no longer stands for it. */
void idempotency_claims_give_back(struct idempotency_claims *claims, struct claim *claim);

void idempotency_claims_remove(struct idempotency_claims *claims, struct claim *claim);

/* A claim for an answer, with copies of the texts. */
struct claim *claim_new(const struct claim_name *name, struct str print);
void claim_mean(struct claim *claim, uint64_t run, uint64_t seq);
void claim_free(struct claim *claim); /* it must not be entered; NULL is fine */

#endif
