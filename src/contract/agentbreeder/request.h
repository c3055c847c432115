/* request: what /invoke and /stream are asked, in all the spellings that real callers use.
 *
 * Memory   views into the body, or in the arena that parsing was given.
 * Threads  none.
 * Source   contracts/agentbreeder.md 1.2, 1.7; checks.md K7, K23 and row P9.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_REQUEST_H
#define WEIR_CONTRACT_AGENTBREEDER_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/json.h"

struct runtime_request {
    struct str text;     /* what the turn is about */
    struct json input;   /* as it came */
    bool wants_text;     /* input was a string: so must the output be */
    struct str session;  /* the caller's, or a new UUID */
    bool used_thread_id; /* the caller says thread_id: he is answered with it too */
    struct str user;     /* config.configurable.user_id, or "anonymous" */
};

/* `header_session` is X-Session-Id, at == NULL when absent.
 * errors  ERR_MALFORMED no JSON, or no input (400); ERR_INVALID_ARGUMENT a field of the wrong
 *         type (422); ERR_RESOURCE_EXHAUSTED the arena's limit */
MUST_CHECK bool runtime_request_parse(struct str body, struct str header_session,
                                      struct arena *arena, struct runtime_request *ret,
                                      struct err *e);

#endif
