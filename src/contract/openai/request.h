/* request: what a caller of OpenAI's API asks, and the members that both of its forms share.
 *
 * Memory   results are views into the body or lie in the caller's arena.
 * Threads  none.
 * Source   OpenAI API reference, "Chat Completions" and "Responses"; checks.md K23, K31.
 */
#ifndef WEIR_CONTRACT_OPENAI_REQUEST_H
#define WEIR_CONTRACT_OPENAI_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "provider/provider.h"
#include "wire/json.h"

struct openai_request {
    struct str model;   /* the agent's slug; empty: the first one */
    struct str session; /* named by the caller, or empty */
    struct str user;    /* of the caller's own, or empty */
    struct str text;    /* of the last user message */
    const struct message *messages;
    size_t message_count;
    struct str schema; /* of the answer, or empty */
    struct str extras; /* {"metadata":{...}}, or empty */
    const struct tool_offer *tools;
    size_t tool_count;
    struct str tool_choice;              /* as struct run_request has it */
    uint64_t approval_run, approval_seq; /* the question that it decides; 0: none is named */
    bool streams, wants_usage;
};

#define OPENAI_REQUEST_NONE                                                                    \
    ((struct openai_request){.model = STR_EMPTY,                                               \
                             .session = STR_EMPTY,                                             \
                             .user = STR_EMPTY,                                                \
                             .text = STR_EMPTY,                                                \
                             .schema = STR_EMPTY,                                              \
                             .extras = STR_EMPTY,                                              \
                             .tool_choice = STR_EMPTY})

/* A request while it is read. */
struct request_reading {
    struct arena *arena;
    struct err *e;
    struct str param; /* the member that was refused; a constant, or in the arena */
    uint64_t approval_run, approval_seq; /* as struct openai_request has them */
};

/* Refuse the member `param`, a constant. Returns false. */
PRINTF_LIKE(3, 4)
bool request_refuse(struct request_reading *reading, const char *param, const char *format,
                    ...);
bool request_too_large(struct request_reading *reading);

bool request_is_absent(struct json value);

/* Read a member that may be absent or null; *ret stays as it is then. */
MUST_CHECK bool request_take_text(struct request_reading *reading, struct json value,
                                  const char *param, struct str *ret);
MUST_CHECK bool request_take_bool(struct request_reading *reading, struct json value,
                                  const char *param, bool *ret);

/* {"type":"json_schema",...} with the schema in it or under `holder`; {"type":"json_object"};
 * {"type":"text"}. */
MUST_CHECK bool request_take_format(struct request_reading *reading, struct json value,
                                    const char *param, struct str *ret_schema);

/* `tools` and `tool_choice`, in the form of Chat Completions ({"function":{...}}) or of
 * Responses (the same members beside "type"). */
MUST_CHECK bool request_take_tools(struct request_reading *reading, struct json tools,
                                   struct json choice, struct openai_request *ret);

/* The caller's session, from `metadata.session_id` or the header (at == NULL: none), and the
 * metadata as extras. */
MUST_CHECK bool request_take_metadata(struct request_reading *reading, struct json metadata,
                                      struct str header_session, struct openai_request *ret);

/* Read a list of messages of Chat Completions; `param` is the member that it came in. `goes_on`:
 * a session has what was before it. */
MUST_CHECK bool request_take_messages(struct request_reading *reading, struct json list,
                                      const char *param, bool goes_on,
                                      struct openai_request *ret);

/* Read one JSON object. `keys` must not come twice; it ends with NULL. */
MUST_CHECK bool request_read_body(struct request_reading *reading, struct str text,
                                  const char *const *keys, struct json *ret);

/* Parse the body of POST /v1/chat/completions.
 * errors  ERR_MALFORMED, ERR_INVALID_ARGUMENT; reading->param names the member. ERR_TOO_LARGE
 *         the arena's limit */
MUST_CHECK bool chat_request_parse(struct request_reading *reading, struct str body,
                                   struct str header_session, struct openai_request *ret);

#endif
