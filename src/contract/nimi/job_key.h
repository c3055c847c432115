/* job_key: what makes two submits the same.
 *
 * The caller's key counts within its app, subject, model and scenario type. It stands in the
 * job's first event as a digest of these, with the fingerprint of what was asked, and so holds
 * over restarts; see run/keyed.h. Under one key the same request gets the same job, another
 * request is a conflict.
 *
 * Memory   a plain value.
 * Threads  any.
 * Source   contracts/nimi.md 6.2, section 9 number 26.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_KEY_H
#define WEIR_CONTRACT_NIMI_JOB_KEY_H

#include "contract/nimi/envelope.h"
#include "run/claims.h"

#define JOB_KEY_HEAD "nimi-job:" /* apart from keys of other contracts */
#define JOB_KEY_MAX_CHARS 256

struct job_key {
    struct str key; /* in `spelled`, or empty: the caller has none */
    struct str print;
    char spelled[sizeof(JOB_KEY_HEAD) + 64];
    uint8_t printed[CLAIM_PRINT_BYTES];
};

/* Of the request's own key, else that of the envelope. `ret` must stay where it is. The request
 * has a head.
 * errors  AI_MEDIA_SPEC_INVALID the request's key is too long */
MUST_CHECK bool job_key_read(const struct nimi_submit_scenario_job_request *request,
                             const struct envelope *envelope, struct job_key *ret,
                             struct fault *fault);

#endif
