/* proxy_head: heads of requests and responses, as a proxy passes them on.
 *
 * Fields that concern one connection only are dropped: those of RFC 9110 7.6.1 and those that
 * Connection names. The framing is rewritten. Some fields belong to the sidecar, and their
 * values are its own.
 *
 * Memory   the head of a response owns its fields, in one arena.
 * Threads  one loop's.
 * Source   RFC 9110 7.6; RFC 9112 6; contracts/agentbreeder.md 1.3 and 4.6.
 */
#ifndef WEIR_SIDECAR_PROXY_HEAD_H
#define WEIR_SIDECAR_PROXY_HEAD_H

#include "base/arena.h"
#include "server/exchange.h"
#include "sidecar/trace.h"

/* --- requests --------------------------------------------------------------------------------- */

#define PROXY_BODY_NONE (-1)
#define PROXY_BODY_CHUNKED (-2)

struct proxy_request {
    const struct exchange *exchange;
    struct str base_url; /* of the server; its path comes before the request's */
    struct str path;     /* of the request, or what is left of it */
    int64_t body;        /* length of the body, or one of the above */
    bool plain;          /* the answer must not be compressed: it is read here */
    bool keeps_authorization;
    const struct trace *trace; /* NULL: the fields of tracing pass */
};

/* Append the head. `base_url` has been checked.
 * errors  ERR_TOO_LARGE */
MUST_CHECK bool proxy_write_request(const struct proxy_request *request, struct buf *out,
                                    struct err *e);

/* --- responses -------------------------------------------------------------------------------- */

#define PROXY_FIELDS_MAX 56 /* with ours, what a response may have */

struct proxy_response {
    struct arena *arena;
    int status; /* 0: no line yet */
    struct field fields[PROXY_FIELDS_MAX];
    size_t count;
    bool overflows; /* there were more, or they were too long */
};

void proxy_response_init(struct proxy_response *response);
void proxy_response_done(struct proxy_response *response);

/* Take one line of a head. A status line discards the head before it. True: the head is
 * complete, and is not an informational one. Its fields are then those that pass. */
MUST_CHECK bool proxy_response_line(struct proxy_response *response, struct str line);

/* The first field with this name, or an empty text. */
struct str proxy_response_find(const struct proxy_response *response, struct str name);

/* Remove the fields of this name, and set it to a value unless `value` is empty. False: there is
 * no room. */
bool proxy_response_set(struct proxy_response *response, struct str name, struct str value);

/* Whether a content type is, or ends as, JSON. */
bool proxy_is_json(struct str content_type);
bool proxy_is_type(struct str content_type, struct str wanted);

#endif
