/* run_open: find the job or workflow that a call is about, and check that its caller may see it.
 *
 * Without issuers of tokens a caller is only the app it claims to be, and every caller that
 * claims the app sees its jobs. With issuers a job is its subject's; one that was submitted
 * anonymously is seen by all callers of the app.
 *
 * Memory   part of the work of a call, and ended with it when the call closes.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2, 6.3 "owner check"; section 9 numbers 27, 28.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_RUN_OPEN_H
#define WEIR_CONTRACT_NIMI_JOB_RUN_OPEN_H

#include "contract/nimi/call.h"
#include "contract/nimi/job/run_find.h"

struct run_open {
    struct nimi_call *call; /* must be the first member */
    const struct run_kind *kind;
    enum run_fold_depth depth;
    struct run_fold *fold; /* what is found; zeroed before */
    uint64_t run;          /* of the id that was asked for */
    char id[ULID_LEN + 1]; /* empty: any */
    struct run_find *find; /* while the search runs */
    /* One of these is called once, unless the call is over or was refused: it is there and this
     * caller may see it, or there is none. */
    void (*on_open)(struct run_open *open);
    void (*on_missing)(struct run_open *open);
};

/* Look for it by its id (at == NULL: by `run`). The call is refused if its caller may not see it,
 * or it cannot be read now. */
void run_open_start(struct run_open *open, struct str id);

/* The call is closed. */
void run_open_done(struct run_open *open);

/* Let the fold be as before the first event. */
void run_open_refold(struct run_open *open);

/* Refuse the call: it cannot be read now. */
void run_open_failed(const struct run_open *open, const struct err *failed);

#endif
