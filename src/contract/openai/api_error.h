/* api_error: failures as OpenAI's API words them.
 *
 *     {"error":{"message":"...","type":"invalid_request_error","param":"model","code":"..."}}
 *
 * One table gives each failure its status, its type and its code. The official libraries choose
 * the class of their exception by the status, and repeat a request that may help on a second
 * try: 409, 429 and 5xx. Where a repetition cannot help or may act twice, the answer says so in
 * x-should-retry.
 *
 * Memory   texts are borrowed during the call.
 * Threads  none.
 * Source   OpenAI API reference, "Error codes".
 */
#ifndef WEIR_CONTRACT_OPENAI_API_ERROR_H
#define WEIR_CONTRACT_OPENAI_API_ERROR_H

#include "route/route.h"
#include "wire/json.h"

#define CONTEXT_LENGTH_EXCEEDED "context_length_exceeded" /* the conversation is too long */

/* How a failure is shown. */
struct api_error {
    int status;
    struct str type, code; /* code empty: null */
    bool retry;            /* whether the same request may succeed later */
};

/* Of a request that was refused before its run began. */
struct api_error api_error_of_code(enum err_code code);

/* Of a run that failed; `acted`: it made a call that must not be repeated. */
struct api_error api_error_of_failure(enum err_code code, struct str reason, bool acted);

/* {"message","type","param","code"} */
void api_error_write(struct json_writer *json, const struct api_error *refusal,
                     struct str message, struct str param);

/* Answer a call with it. */
void api_error_answer(struct route_call *call, const struct api_error *refusal,
                      struct str message, struct str param);

/* Refuse a request; `param` names the member at fault, or is empty. */
void api_error_of_request(struct route_call *call, const struct err *why, struct str param);

/* 404: no agent has the name that was given as the model. */
void api_error_of_model(struct route_call *call, const struct err *why);

/* For struct route_table: x-ratelimit-limit-requests, -remaining-requests and -reset-requests. */
void api_error_rated(struct route_call *call, const struct rate_room *room,
                     struct route_failure *refused);

/* For struct route_table: `details` of the failure is the param, as a JSON string. */
void api_error_failure_body(const struct route_failure *failure, struct buf *out);

#endif
