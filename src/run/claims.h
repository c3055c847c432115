/* claims: which live run has which idempotency key of its caller.
 *
 * What is on disk the store knows; here stand the keys of the runs that are alive, from the
 * moment they start. So that of two requests with one key only one starts a run, on whatever
 * loops they are:
 *
 *     look ─▶ taken: its run               begin ─▶ (locked) run_start ─▶ end
 *          └▶ free: ask the store ─▶ free: ┘  └▶ false: taken meanwhile, or one of these keys
 *                                                was given back: look again
 *
 * A claim goes when the run's last event is on disk, and so is its first: who looked before
 * that and asked the store before that may have seen it in neither, which the mark tells.
 *
 * A run that fails, or is cancelled because its caller left, gives its key back at once where
 * nothing that it did would be done twice: another run may take it while the first one still
 * ends. Its claim stays until then, because the store may not know yet what became of it.
 *
 * A human's answer may have a key as well: it stands for what became of that answer, the run
 * after the event `seq`, and is never given back.
 *
 * Memory   a claim lives inside its run, or, of an answer, is the run's to free.
 * Threads  any; striped locks inside. Between begin and end only that run is started.
 * Source   contracts/agentbreeder.md 1.2; checks.md R-1.
 */
#ifndef WEIR_RUN_CLAIMS_H
#define WEIR_RUN_CLAIMS_H

#include "base/list.h"
#include "base/str.h"

#define CLAIM_KEY_MAX_BYTES 255
#define CLAIM_PRINT_BYTES 32 /* of a request's fingerprint */

struct claims;

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
    uint64_t run, seq;   /* run 0: nobody alive has the key */
    uint64_t given_back; /* the newest run that gave it back and is alive; 0: none */
    uint64_t mark;
    size_t print_len;
    char print[CLAIM_PRINT_BYTES];
};

struct claims *claims_new(void);
void claims_free(struct claims *claims); /* must be empty; NULL is fine */

void claims_look(struct claims *claims, const struct claim_name *name, struct claim_view *ret);

/* True: nobody else can take this key before claims_end(). */
bool claims_begin(struct claims *claims, const struct claim_name *name, uint64_t mark);

/* `claim` is entered, unless it is NULL: then nothing was started. */
void claims_end(struct claims *claims, const struct claim_name *name, struct claim *claim);

/* Its run ends, and the key does not stand for it. */
void claims_give_back(struct claims *claims, struct claim *claim);

void claims_remove(struct claims *claims, struct claim *claim);

/* The claim of an answer, with copies of its texts. */
struct claim *claim_new(const struct claim_name *name, struct str print);
void claim_mean(struct claim *claim, uint64_t run, uint64_t seq);
void claim_free(struct claim *claim); /* it must not be entered; NULL is fine */

#endif
