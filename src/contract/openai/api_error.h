/* api_error: failures as OpenAI's API words them.
 *
 *     {"error":{"message":"...","type":"invalid_request_error","param":"model","code":"..."}}
 *
 * contract/api_failure.h gives each failure its status, its type and its code.
 *
 * Memory   texts are borrowed during the call.
 * Threads  none.
 * Source   OpenAI API reference, "Error codes".
 */
#ifndef WEIR_CONTRACT_OPENAI_API_ERROR_H
#define WEIR_CONTRACT_OPENAI_API_ERROR_H

#include "contract/api_failure.h"
#include "wire/json.h"

/* {"message","type","param","code"} */
void api_error_write(struct json_writer *json, const struct api_failure *refusal,
                     struct str message, struct str param);

/* Answer a call with it. */
void api_error_answer(struct route_call *call, const struct api_failure *refusal,
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
