/* message_error: failures as Anthropic's API words them.
 *
 *     {"type":"error","error":{"type":"invalid_request_error","message":"..."}}
 *
 * The official libraries choose the class of their exception by the status, and repeat a request
 * after 408, 409, 429 and 5xx unless x-should-retry says otherwise.
 *
 * Memory   texts are borrowed during the call.
 * Threads  none.
 * Source   Anthropic API reference, "Errors".
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_MESSAGE_ERROR_H
#define WEIR_CONTRACT_ANTHROPIC_MESSAGE_ERROR_H

#include "route/route.h"
#include "wire/json.h"

struct message_error {
    int status;
    bool retry; /* whether the same request may succeed later */
};

/* Of a request that was refused before its run began. */
struct message_error message_error_of_code(enum err_code code);

/* Of a run that failed; `acted`: it made a call that must not be repeated. */
struct message_error message_error_of_failure(enum err_code code, struct str reason,
                                              bool acted);

/* What is said of a run that failed: clients look for the words that Anthropic has for a long
 * conversation. */
struct str message_error_sentence(struct str reason, struct str message);

/* Answer a call with it. */
void message_error_answer(struct route_call *call, struct message_error error,
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
