/* api_failure: how a failure is shown by the APIs of models that agents are served through.
 *
 * One table gives each failure its status, its type and its code; the last two are OpenAI's words. The
 * official libraries choose the class of their exception by the status, and repeat a request that may
 * help on a second try: 409, 429 and 5xx. Where a repetition cannot help or may act twice, the answer
 * says so in x-should-retry.
 *
 * Memory   constant texts.
 * Threads  none.
 * Source   OpenAI API reference, "Error codes"; Anthropic API reference, "Errors".
 */
#ifndef WEIR_CONTRACT_API_FAILURE_H
#define WEIR_CONTRACT_API_FAILURE_H

#include "route/route.h"

#define API_FAILURE_INVALID "invalid_request_error"
#define API_FAILURE_SERVER "server_error"
#define PREVIOUS_SUPERSEDED "previous_response_superseded" /* it is not the newest one */
#define CONTEXT_LENGTH_EXCEEDED "context_length_exceeded"  /* the conversation is too long */

struct api_failure {
    int status;
    struct str type, code; /* code empty: null */
    bool retry;            /* whether the same request may succeed later */
};

/* Of a request that was refused before its run began. */
struct api_failure api_failure_of_code(enum err_code code);

/* Of a run that failed; `acted`: it made a call that must not be repeated. */
struct api_failure api_failure_of_run(enum err_code code, struct str reason, bool acted);

/* Add the fields of its answer: x-should-retry, and retry-after with a 503. */
void api_failure_fields(struct route_call *call, const struct api_failure *failure);

#endif
