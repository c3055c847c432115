/* message_error: failures as Anthropic's API words them.
 *
 *     {"type":"error","error":{"type":"invalid_request_error","message":"..."}}
 *
 * Memory   texts are borrowed during the call.
 * Threads  none.
 * Source   Anthropic API reference, "Errors".
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_MESSAGE_ERROR_H
#define WEIR_CONTRACT_ANTHROPIC_MESSAGE_ERROR_H

#include "contract/api_failure.h"
#include "wire/json.h"

/* What is said of a run that failed: clients look for the words that Anthropic has for a long
 * conversation. */
struct str message_error_sentence(struct str reason, struct str message);

/* Answer a call with it. */
void message_error_answer(struct route_call *call, struct api_failure error,
                          struct str message);

/* Refuse a request. */
void message_error_of_request(struct route_call *call, const struct err *why);

/* {"type":"error","error":{...}} */
void message_error_write(int status, struct str message, struct buf *out);

/* For struct route_table: the fields anthropic-ratelimit-requests-*. */
void message_error_rated(struct route_call *call, const struct rate_room *room,
                         struct route_failure *refused);

/* For struct route_table. */
void message_error_failure_body(const struct route_failure *failure, struct buf *out);

#endif
