/* fault: what a storage's refusal means, why it happened, and what to do about it.
 *
 * Threads  any; values only.
 * Source   Amazon S3 API Reference, "Error responses".
 */
#ifndef WEIR_OBJECT_FAULT_H
#define WEIR_OBJECT_FAULT_H

#include "object/bucket.h"

struct object_fault_facts {
    const struct bucket *bucket;
    struct str method, key;
    unsigned status;
    struct str body;         /* of the refusal; may be empty, as after HEAD */
    struct str region;       /* x-amz-bucket-region, or empty */
    int64_t date_ms, now_ms; /* the server's clock (0: unknown) and ours, Unix time */
};

/* Fill `ret` with the error; *ret_again: a repeated request may succeed.
 * errors  ERR_NOT_FOUND no such object; ERR_FAILED_PRECONDITION settings, bucket, region or
 *         clock; ERR_PERMISSION_DENIED; ERR_ABORTED it was changed meanwhile; ERR_OUT_OF_RANGE;
 *         ERR_RESOURCE_EXHAUSTED; ERR_UNAVAILABLE */
void object_fault(const struct object_fault_facts *facts, struct err *ret, bool *ret_again);

#endif
