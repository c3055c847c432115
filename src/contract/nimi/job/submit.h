/* submit: a call that begins work which outlives it, once for each idempotency key.
 *
 *     start ─▶ look up the key ─▶ free ──▶ begin() ─▶ submit_kept() ─▶ show()
 *       │           ▲         └─▶ known ────────────────────────────▶ show()
 *       │           └───────────── submit_missing() ◀───────────────────┘
 *       └─▶ no key ─▶ begin()
 *
 * Jobs and workflows are submitted this way. A struct submit_kind holds the difference.
 *
 * Memory   a member of the call's work; submit_done() ends it.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2, section 9 number 26.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_SUBMIT_H
#define WEIR_CONTRACT_NIMI_JOB_SUBMIT_H

#include "contract/nimi/call.h"
#include "session/idempotency_lookup.h"

#define SUBMIT_ID_MAX_BYTES 1024 /* of an app, a subject and so on; events repeat them */

struct submit;

struct submit_kind {
    const char *noun; /* in sentences: "job" */
    int conflict;     /* the reason when a key was used for another request, and its status */
    enum err_code conflict_code;
    void (*begin)(struct submit *submit, uint64_t key_mark);
    void (*show)(struct submit *submit, uint64_t run); /* reply with the work of this run */
};

struct submit {
    const struct submit_kind *kind;
    struct nimi_call *call;
    struct buf request; /* encoded */
    struct str app, user;
    struct str key, print; /* as in struct run_request; empty: the caller sent no key */
    struct idempotency_lookup *lookup;
    struct timer again; /* for the next look-up */
    unsigned agains;
};

void submit_init(struct submit *submit, const struct submit_kind *kind, struct nimi_call *call,
                 size_t request_max_bytes);
void submit_done(struct submit *submit);

/* Look the key up, or begin at once without one. begin() may call it again when the key was
 * taken since the look-up. */
void submit_start(struct submit *submit);

/* What was begun is on disk as this run. 0: it could not be written. */
void submit_kept(struct submit *submit, uint64_t run);

/* The run cannot be found. With a key it may still be on its way to the disk, for another call:
 * the key is looked up again a little later. */
void submit_missing(struct submit *submit);

void submit_refuse(struct submit *submit, int reason, enum err_code code, const char *why);
void submit_refuse_unread(struct submit *submit); /* the run cannot be read */

#endif
