/* reason: the reason codes of nimi.runtime.v1.
 *
 * A code is sent as its name in a status and as its number in a message. One table holds both
 * and the status that belongs to the code. The failures of our own modules (an err_code, a
 * provider's stable reason) are mapped to codes here and nowhere else.
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
    enum err_code code; /* its status, unless a rule requires another */
};

/* The row of a number; REASON_CODE_UNSPECIFIED for an unknown one. */
const struct reason *reason_get(int number);

/* Iterate over all rows by rising number. Start with *cursor = 0. */
bool reason_next(size_t *cursor, const struct reason **ret);

/* The reason code of a failure. `said` is the stable reason that a run or provider gave. */
int reason_of_failure(struct str said, enum err_code code);

/* The same for a job: a failure without a reason of its own is the provider's fault. */
int reason_of_job_failure(struct str said, enum err_code code);

#endif
