/* request: what a caller of OpenAI's API asks, and the members that both of its forms share.
 *
 * Memory   results are views into the body or lie in the caller's arena.
 * Threads  none.
 * Source   OpenAI API reference, "Chat Completions" and "Responses"; checks.md K23, K31.
 */
#ifndef WEIR_CONTRACT_OPENAI_REQUEST_H
#define WEIR_CONTRACT_OPENAI_REQUEST_H

#include "contract/request_reading.h"

struct openai_request {
    struct guest_request turn;
    bool wants_usage;
};

/* {"type":"json_schema",...} with the schema and `strict` in it or under "json_schema";
 * {"type":"json_object"}; {"type":"text"}. Without `strict: true` the schema is loose. */
MUST_CHECK bool request_take_format(struct request_reading *reading, struct json value,
                                    const char *param, struct guest_request *ret);

/* `tools` and `tool_choice`, in the form of Chat Completions ({"function":{...}}) or of
 * Responses (the same members beside "type"). */
MUST_CHECK bool request_take_tools(struct request_reading *reading, struct json tools,
                                   struct json choice, struct guest_request *ret);

/* The caller's session, from `metadata.session_id` or the header (at == NULL: none), and the
 * metadata as extras. A named session has what was before. */
MUST_CHECK bool request_take_metadata(struct request_reading *reading, struct json metadata,
                                      struct str header_session, struct guest_request *ret);

/* Read a list of messages of Chat Completions; `param` is the member that it came in. `goes_on`:
 * a session has what was before it. */
MUST_CHECK bool request_take_messages(struct request_reading *reading, struct json list,
                                      const char *param, bool goes_on,
                                      struct guest_request *ret);

/* Read one JSON object. `keys` must not come twice; it ends with NULL. */
MUST_CHECK bool request_read_body(struct request_reading *reading, struct str text,
                                  const char *const *keys, struct json *ret);

/* Parse the body of POST /v1/chat/completions.
 * errors  ERR_MALFORMED, ERR_INVALID_ARGUMENT; reading->param names the member. ERR_TOO_LARGE
 *         the arena's limit */
MUST_CHECK bool chat_request_parse(struct request_reading *reading, struct str body,
                                   struct str header_session, struct openai_request *ret);

#endif
