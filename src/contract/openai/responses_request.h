/* responses_request: what a caller of the Responses API asks.
 *
 * Memory   results are views into the body or lie in the caller's arena.
 * Threads  none.
 * Source   OpenAI API reference, "Create a model response".
 */
#ifndef WEIR_CONTRACT_OPENAI_RESPONSES_REQUEST_H
#define WEIR_CONTRACT_OPENAI_RESPONSES_REQUEST_H

#include "contract/openai/request.h"
#include "contract/openai/response.h"

struct responses_request {
    struct guest_request common;
    struct str previous; /* the id of the response to go on from, or empty */
    uint64_t previous_run;
    struct str metadata; /* a JSON object, or empty */
    bool store, background;
};

/* Parse the body of POST /v1/responses. As chat_request_parse(). */
MUST_CHECK bool responses_request_parse(struct request_reading *reading, struct str body,
                                        struct str header_session,
                                        struct responses_request *ret);

#endif
