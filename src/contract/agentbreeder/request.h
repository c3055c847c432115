/* request: what /invoke, /stream and /resume are asked, in all the spellings that real callers
 * use.
 *
 * Memory   views into the body, or in the arena that parsing was given.
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
    struct str text; /* what the turn is about: of a list, its last message of a user */
    const struct message *messages; /* where the input is a list of them; else NULL */
    size_t message_count;
    struct str schema;   /* config.output_schema, or empty */
    bool wants_text;     /* input was a string: so must the output be */
    struct str session;  /* the caller's, or a new UUID */
    bool names_session;  /* the caller's */
    bool used_thread_id; /* the caller says thread_id: he is answered with it too */
    struct str user;     /* config.configurable.user_id, or "anonymous" */
    struct str print;    /* fingerprint of what is asked: input, config and the named session */
};

/* `header_session` is X-Session-Id, at == NULL when absent.
 * errors  ERR_MALFORMED no JSON, or no input (400); ERR_INVALID_ARGUMENT a field of the wrong
 *         type, or a message that cannot be taken, with its place (422); ERR_RESOURCE_EXHAUSTED
 *         the arena's limit */
MUST_CHECK bool runtime_request_parse(struct str body, struct str header_session,
                                      struct arena *arena, struct runtime_request *ret,
                                      struct err *e);

struct resume_request {
    struct str thread; /* may be empty: then it is nobody's */
    struct str text;   /* the human's words; what is no string, as compact JSON */
    bool wants_text;   /* they were a string */
};

/* errors  ERR_MALFORMED no JSON (400); ERR_INVALID_ARGUMENT a field that is missing or of the
 *         wrong type (422); ERR_RESOURCE_EXHAUSTED the arena's limit */
MUST_CHECK bool resume_request_parse(struct str body, struct arena *arena,
                                     struct resume_request *ret, struct err *e);

#endif
