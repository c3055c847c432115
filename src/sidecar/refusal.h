/* refusal: the sidecar's own answers.
 *
 * A failure has the contract's envelope, with the trace id. 401 and 403 have `detail` as well, because
 * sources of the contract differ.
 *
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 1.4 and 1.12.
 */
#ifndef WEIR_SIDECAR_REFUSAL_H
#define WEIR_SIDECAR_REFUSAL_H

#include "server/exchange.h"

#define CONTRACT_VERSION STR("1")

struct refusal {
    int status;
    struct str code, message;
    struct str details;     /* JSON, or empty */
    struct str rule;        /* of a guardrail, or empty */
    struct str trace_id;    /* or empty */
    uint64_t retry_after_s; /* 0: not sent */
};

/* Answer and end the exchange. */
void refusal_send(struct exchange *exchange, const struct refusal *refusal);

/* Append its body. */
void refusal_write(const struct refusal *refusal, struct buf *out);

/* Answer with a body of ours. HEAD gets the head alone. */
void refusal_reply(struct exchange *exchange, int status, struct str content_type,
                   struct str body, struct str trace_id);

#endif
