/* job_key: the idempotency key of a submit.
 *
 * The caller's key is valid within its app, subject, model and scenario type. The job's first
 * event holds a digest of these and the fingerprint of the request, so the key survives
 * restarts; see session/idempotency_lookup.h. With the same key, the same request gets the same
 * job, and a different request is a conflict.
 *
 * Memory   a plain value.
 * Threads  any.
 * Source   contracts/nimi.md 6.2, section 9 number 26.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_KEY_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_KEY_H

#include "contract/nimi/envelope.h"
#include "session/idempotency_claims.h"

#define JOB_KEY_HEAD "nimi-job:" /* keeps its keys apart from other contracts' */
#define JOB_KEY_MAX_CHARS 256

struct job_key {
    struct str key; /* points into `spelled`; empty: the caller sent none */
    struct str print;
    char spelled[sizeof(JOB_KEY_HEAD) + 64];
    uint8_t printed[CLAIM_PRINT_BYTES];
};

/* Read the request's own key, else the envelope's. `ret` must not move afterwards. The request
 * must have a head.
 * errors  AI_MEDIA_SPEC_INVALID the request's key is too long */
MUST_CHECK bool job_key_read(const struct nimi_submit_scenario_job_request *request,
                             const struct envelope *envelope, struct job_key *ret,
                             struct fault *fault);

#endif
