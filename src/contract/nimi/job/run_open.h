/* run_open: whether a caller may see the job or workflow that was found for its call.
 *
 * Without issuers of tokens a caller is only the app it claims to be, and every caller that
 * claims the app sees its jobs. With issuers a job is its subject's; one that was submitted
 * anonymously is seen by all callers of the app.
 *
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2, 6.3 "owner check"; section 9 number 27.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_RUN_OPEN_H
#define WEIR_CONTRACT_NIMI_JOB_RUN_OPEN_H

#include "contract/nimi/call.h"

/* Whose it is. `what`: "job", "workflow". */
struct run_owner {
    const char *what;
    struct str app, subject;
};

/* False: the caller may not see it, and the call was refused. */
bool run_open_allowed(struct nimi_call *call, const struct run_owner *owner);

/* Refuse the call: it cannot be read now. */
void run_open_failed(struct nimi_call *call, const char *what, const struct err *failed);

#endif
