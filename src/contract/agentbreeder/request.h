/* request: parse the bodies of /invoke, /stream and /resume, in every spelling that real
 * callers use.
 *
 * Memory   results are views into the body or lie in the caller's arena.
 * Threads  none.
 * Source   contracts/agentbreeder.md 1.2, 1.7; checks.md K7, K23, K31 and row P9.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_REQUEST_H
#define WEIR_CONTRACT_AGENTBREEDER_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "provider/provider.h"
#include "wire/json.h"

struct runtime_request {
    struct str text; /* the user's input; of a message list, the last user message */
    const struct message *messages; /* if the input is a message list; else NULL */
    size_t message_count;
    struct str schema; /* config.output_schema, or empty */
    struct str extras; /* {"input":...,"config":{...},"metadata":{...}} of the body, compact, or
                          * empty; input only where it is no text */
    bool wants_text;   /* the input was a string, so the output must be one */
    struct str session;  /* from the request, or a new UUID */
    bool names_session;  /* it came from the request */
    bool used_thread_id; /* the request says thread_id; the response repeats it */
    struct str user;     /* config.configurable.user_id, or "anonymous" */
    struct str agent;    /* whom the caller addresses; empty: the first agent */
    struct str print;    /* with a key: of the input, the config, the named session and agent */
};

/* Parse the body of an /invoke or /stream. `header_session` is X-Session-Id, at == NULL when
 * absent. `keyed`: an idempotency key came with it, so its print is wanted; else that stays empty.
 * errors  ERR_MALFORMED no JSON, or no input (400); ERR_INVALID_ARGUMENT a field of the wrong
 *         type or an unacceptable message, with its place (422); ERR_RESOURCE_EXHAUSTED the
 *         arena's limit */
MUST_CHECK bool runtime_request_parse(struct str body, struct str header_session, bool keyed,
                                      struct arena *arena, struct runtime_request *ret,
                                      struct err *e);

struct resume_request {
    struct str thread; /* may be empty, which matches no thread */
    struct str text;   /* the decision; a value that is not a string, as compact JSON */
    bool wants_text;   /* it was a string */
};

/* Parse the body of a /resume.
 * errors  ERR_MALFORMED no JSON (400); ERR_INVALID_ARGUMENT a field that is missing or of the
 *         wrong type (422); ERR_RESOURCE_EXHAUSTED the arena's limit */
MUST_CHECK bool resume_request_parse(struct str body, struct arena *arena,
                                     struct resume_request *ret, struct err *e);

#endif
