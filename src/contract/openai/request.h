/* request: what a caller of OpenAI's API asks, and the members that both of its forms share.
 *
 * Memory   results are views into the body or lie in the caller's arena.
 * Threads  none.
 * Source   OpenAI API reference, "Chat Completions" and "Responses"; checks.md K23, K31.
 */
#ifndef WEIR_CONTRACT_OPENAI_REQUEST_H
#define WEIR_CONTRACT_OPENAI_REQUEST_H

#include "contract/caller_options.h"
#include "contract/guest_turn.h"
#include "wire/json.h"

struct openai_request {
    struct guest_request turn;
    bool wants_usage;
};

/* A request while it is read. */
struct request_reading {
    struct arena *arena;
    struct err *e;
    struct str param; /* the member that was refused: a constant, or in the arena; or empty */
    uint64_t approval_run, approval_seq; /* as struct guest_request has them */
};

/* Refuse the member `param`, a constant. Returns false. */
PRINTF_LIKE(3, 4)
bool request_refuse(struct request_reading *reading, const char *param, const char *format,
                    ...);
bool request_too_large(struct request_reading *reading);

/* Read a member that may be absent or null; *ret stays as it is then. */
MUST_CHECK bool request_take_text(struct request_reading *reading, struct json value,
                                  const char *param, struct str *ret);
MUST_CHECK bool request_take_bool(struct request_reading *reading, struct json value,
                                  const char *param, bool *ret);

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

/* Read what is said of the reply, by the names of this table. */
MUST_CHECK bool request_take_options(struct request_reading *reading, struct json body,
                                     const struct caller_option *table, size_t count,
                                     struct guest_request *ret);

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
