/* fault: why a call is refused, in every form that a client may read.
 *
 *     grpc-status              the code
 *     grpc-message             one JSON object: reasonCode, actionHint, traceId, retryable,
 *                              message (the real SDK reads only this)
 *     grpc-status-details-bin  google.rpc.Status with one google.rpc.ErrorInfo (authoritative)
 *
 * Memory   a plain value.
 * Threads  the call's loop.
 * Source   contracts/nimi.md section 4.
 */
#ifndef WEIR_CONTRACT_NIMI_FAULT_H
#define WEIR_CONTRACT_NIMI_FAULT_H

#include "contract/nimi/reason.h"
#include "rpc/rpc.h"

#include <stdarg.h>

struct fault {
    int reason;       /* 0: only a status and a sentence */
    struct err why;   /* code and sentence; holds no secret */
    const char *hint; /* what to do, in lower_case_words; NULL: depends on whether to retry */
};

/* Set a fault with the status that belongs to its reason. Returns false. */
PRINTF_LIKE(3, 4) bool fault_set(struct fault *fault, int reason, const char *format, ...);

/* Set a fault with another status, where a rule requires it. Returns false. */
PRINTF_LIKE(4, 5)
bool fault_set_code(struct fault *fault, int reason, enum err_code code, const char *format,
                    ...);

PRINTF_LIKE(4, 0)
bool fault_set_list(struct fault *fault, int reason, enum err_code code, const char *format,
                    va_list values);

/* The two texts, for tests: the JSON object, and the bytes of the details. */
void fault_message(const struct fault *fault, struct str trace_id, struct buf *out);
void fault_details(const struct fault *fault, struct str trace_id, struct buf *out);

/* End the call with this fault. */
void fault_end(struct rpc_call *call, const struct fault *fault, struct str trace_id);

#endif
