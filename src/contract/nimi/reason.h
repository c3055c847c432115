/* reason: why something failed, in the codes of nimi.runtime.v1.
 *
 * A code travels as its name in a status and as its number in a message. One table says both,
 * and which status it comes with. What our own parts report (an err_code, a provider's stable
 * reason) is given its code here and nowhere else.
 *
 * Memory   constant.
 * Threads  any.
 * Source   contracts/nimi.md 3.9, 6.1 "In-stream error".
 */
#ifndef WEIR_CONTRACT_NIMI_REASON_H
#define WEIR_CONTRACT_NIMI_REASON_H

#include "base/err.h"
#include "proto/nimi.pb.h"

struct reason {
    int number;         /* NIMI_AI_PROVIDER_TIMEOUT, of the generated enum */
    const char *name;   /* "AI_PROVIDER_TIMEOUT" */
    enum err_code code; /* the status it comes with, unless a rule says another */
};

/* The row of a number; REASON_CODE_UNSPECIFIED for one that nobody knows. */
const struct reason *reason_get(int number);

/* Walk all rows by rising number; start with *cursor = 0. */
bool reason_next(size_t *cursor, const struct reason **ret);

/* What a failure is called: `said` is the stable reason that a run or provider gave it. */
int reason_of_failure(struct str said, enum err_code code);

/* The same of a job: what has no reason of its own is the provider's fault. */
int reason_of_job_failure(struct str said, enum err_code code);

#endif
