/* remote: a provider that calls a model API over HTTP, in any dialect.
 *
 *     asking ─▶ streaming ─▶ done | failed
 *       ▲ │ refused, 429 or 5xx before the first byte: retry after Retry-After or
 *       └─┘ after a growing, jittered pause, at most retries_max times
 *
 * Memory   the options are copied; the pool must outlive the provider.
 * Threads  as provider.h.
 * Source   checks.md group U.
 */
#ifndef WEIR_PROVIDER_REMOTE_H
#define WEIR_PROVIDER_REMOTE_H

#include "provider/dialect.h"

/* A server that is not a model's provider: how its failures are reported. */
struct remote_party {
    const char *noun; /* "agent" */
    /* The first row that fits: `of` is a reason of dialect.h, or REMOTE_CUT. */
    const struct remote_reason {
        const char *of, *reason;
        const char *sentence; /* after its name, for callers; NULL: its own message */
    } * reasons;
    size_t reason_count;
};

#define REMOTE_CUT "" /* the connection broke in the middle of the response */

struct remote_options {
    struct str name; /* as configured */
    /* NULL: a model's provider. For others, a silence is one without a complete line, also
     * before a whole answer, and no request is ever sent twice. */
    const struct remote_party *party;
    const struct dialect *dialect;
    struct dialect_settings settings;
    const struct http_header *headers; /* further ones, from the settings */
    size_t header_count;
    struct http_pool *pool;
    enum http_reach reach;  /* HTTP_ANYWHERE */
    bool http2;             /* calls share a connection where the server has it */
    uint64_t connect_ms;    /* 10 s */
    uint64_t first_byte_ms; /* 60 s: until the response head */
    uint64_t stall_ms;      /* 60 s: between two pieces of the body */
    uint64_t total_ms;      /* 10 min */
    unsigned retries_max;   /* 2 */
    uint64_t pause_ms;      /* 500: before the first retry; doubles, plus or minus a quarter */
    uint64_t pause_max_ms;  /* 30 s: a longer Retry-After fails the call at once */
    size_t reply_max_bytes; /* 16 MiB: one response on the wire */
    size_t event_max_bytes; /* of a stream; 0: reply_max_bytes */
};

/* The defaults above; nothing else is set. */
extern const struct remote_options remote_defaults;

struct provider *remote_provider_new(const struct remote_options *options);

#endif
