/* dialect: how one vendor's model API is asked, and how its answer reads.
 *
 * A dialect turns a request into one JSON body and the server-sent events of the answer into
 * reply events. It has no socket and no clock, so a test drives it with a string and the fuzzer
 * with noise; provider/remote.c does the rest for all of them: connections,
 * retries, time limits, errors in place of a stream.
 *
 *     begin ─▶ feed, feed, ... | read ─▶ end ─▶ free
 *                     │ on_reply: text, thinking, tool calls, usage, opaque
 *                     └─ never an ending: the outcome of end() says which it is
 *
 * Rules for every dialect: a tool call is told when it is complete, in the order of the reply;
 * arguments that are no JSON object are told as they came, a call that names no tool with an
 * empty name; usage once, at the end, unknown counts TOKENS_UNKNOWN; event.call_sequence is not
 * the dialect's; a stream that ends without saying why is a failure; an error object inside a
 * stream is a failure; unknown events and fields are passed over.
 *
 * Memory   a reply owns what it gathers. Requests and settings are borrowed during the call.
 * Threads  a reply belongs to one loop; a dialect is constant.
 */
#ifndef WEIR_PROVIDER_DIALECT_H
#define WEIR_PROVIDER_DIALECT_H

#include "client/http.h"
#include "provider/provider.h"
#include "wire/json.h"
#include "wire/sse.h"

/* What one configured provider adds to every request in its dialect. */
struct dialect_settings {
    struct str base_url; /* "https://api.openai.com/v1", no slash at its end */
    struct str model;    /* asked when a request names none */
    struct str query;    /* "api-version=2024-10-21", or empty */
    struct str key;      /* the secret, or empty: none is sent */
    /* Carries the key as it is, in place of the dialect's own header (Azure: "api-key"); or
     * empty. */
    struct str key_header;
    bool whole; /* the answer is asked for as one JSON object, not as a stream */
    /* Of "openai": one message of as many users as follow each other, for chat templates of
     * small models (Mistral, Gemma) that refuse two in a row. */
    bool joins_users;
};

/* What a failed call says. The reasons are stable; the table is in dialect.c. */
struct reply_failure {
    struct err why;     /* for the operator: who said what, and what helps; holds no key */
    const char *reason; /* PROVIDER_... below */
};

#define PROVIDER_UNREACHABLE "PROVIDER_UNREACHABLE"   /* refused, DNS, TLS, reset */
#define PROVIDER_TIMEOUT "PROVIDER_TIMEOUT"           /* first byte, stall or total */
#define PROVIDER_AUTH "PROVIDER_AUTH"                 /* 401, 403 */
#define PROVIDER_RATE_LIMITED "PROVIDER_RATE_LIMITED" /* 429 */
#define PROVIDER_QUOTA "PROVIDER_QUOTA"           /* 402, or 429 that says no money is left */
#define PROVIDER_OVERLOADED "PROVIDER_OVERLOADED" /* 503, 529 */
#define PROVIDER_ERROR "PROVIDER_ERROR"           /* 5xx, error in the stream */
#define PROVIDER_REJECTED "PROVIDER_REJECTED"     /* other 4xx: the request */
#define PROVIDER_BROKEN "PROVIDER_BROKEN"         /* no stream, cut short, malformed */
#define MODEL_CONTEXT "MODEL_CONTEXT"             /* the conversation is too long for it */
#define MODEL_REFUSED "MODEL_REFUSED"             /* refusal, content filter, safety */
#define MODEL_CANNOT_CARRY "MODEL_CANNOT_CARRY"   /* a message that its API has no form for */

/* One sentence for the people whose question failed: nothing of the vendor's words, and no
 * advice that only an operator can follow. What they can do themselves stands behind a ';'. */
struct str reply_reason_sentence(struct str reason);

/* Whether it is the request that was refused, so that the same would be refused again, rather
 * than a provider that has no time, no money or no trust for anybody (K27). */
bool reply_reason_is_refusal(struct str reason);

enum reply_outcome {
    OUTCOME_DONE,   /* it said that it is complete */
    OUTCOME_CUT,    /* complete, but ended by its token limit */
    OUTCOME_FAILED, /* `failure` says why */
};

/* How a dialect's answers are read. */
struct reply_reader {
    struct reply *(*begin)(reply_event_fn *on_reply, void *ctx);
    /* False: it is over before its end, failure is set. */
    bool (*feed)(struct reply *reply, const struct sse_event *event);
    /* In place of feed: an answer that came as one JSON value, and no stream. */
    bool (*read)(struct reply *reply, struct json answer);
    /* The stream ended in order; *ret_model is who answered, borrowed from the reply. */
    enum reply_outcome (*end)(struct reply *reply, struct str *ret_model);
    void (*free)(struct reply *reply);
};

/* What each dialect's own reply begins with. */
struct reply {
    reply_event_fn *on_reply;
    void *ctx;
    bool stopped; /* cancelled from inside a callback: no further callback */
    /* The other side said how the answer ends: only counts may follow, soon or never. */
    bool finished;
    bool over; /* it said that nothing follows: whatever does is no part of the answer */
    bool calls_passed_over; /* it asked for more tools than anybody takes, the last ones untold
                             */
    struct reply_failure failure;
};

struct dialect {
    const char *name;       /* "openai": of MESSAGE_OPAQUE, and of `kind:` in the settings */
    const char *title;      /* "OpenAI": in sentences */
    const char *base_url;   /* where it is unless configured; NULL: must be configured */
    const char *key_env[3]; /* variables that hold its key, the first one set counts */
    bool media_beside;      /* OpenAI's API for media (openai_media.h) is at the same address */

    /* Append the URL that is asked. */
    void (*url)(const struct dialect_settings *settings, const struct provider_request *request,
                struct buf *out);

    /* The header that carries the key ("authorization", "Bearer " before it), and those that
     * every request carries besides content-type and accept. */
    const char *key_header, *key_prefix;
    const struct http_header *headers;
    size_t header_count;

    /* Append the body.
     * errors  ERR_INVALID_ARGUMENT what this API cannot be asked; ERR_UNIMPLEMENTED a message
     *         that it cannot carry, with its place: told as ERR_INVALID_ARGUMENT and
     *         MODEL_CANNOT_CARRY */
    bool (*body)(const struct dialect_settings *settings,
                 const struct provider_request *request, struct buf *out, struct err *e);

    const struct reply_reader *reader;
};

/* Every dialect, and the only place that lists them: a new one is a row here and files that
 * define NAME_dialect and NAME_reader. The first is the one that other servers copy. */
/* clang-format off */
#define DIALECTS(ROW)                                                                          \
    ROW(openai)                                                                                \
    ROW(responses)                                                                             \
    ROW(anthropic)                                                                             \
    ROW(gemini)

#define DIALECT_DECLARE(name)                                                                  \
    extern const struct dialect name##_dialect;                                                \
    extern const struct reply_reader name##_reader;
#define DIALECT_ONE(name) + 1
DIALECTS(DIALECT_DECLARE)
enum { DIALECT_COUNT = 0 DIALECTS(DIALECT_ONE) };
/* clang-format on */

extern const struct dialect *const dialects[DIALECT_COUNT];

/* By its name, or NULL. */
const struct dialect *dialect_find(struct str name);

/* --- for the dialects --------------------------------------------------------------------- */

/* Report an event of the reply, unless it was stopped. */
static inline void reply_tell(const struct reply *reply, const struct reply_event *event) {
    if (!reply->stopped) reply->on_reply(event, reply->ctx);
}

/* Fail a reply. Returns false. */
PRINTF_LIKE(4, 5)
bool reply_fail(struct reply *reply, enum err_code code, const char *reason, const char *format,
                ...);

/* An error as the vendors write it, {"error":{"message","type","code","status"}}, the same in
 * an array, or a bare string; status is the HTTP status, or 0 inside a stream. Whatever stands
 * there, `ret` is set. No key and no URL with one gets into it. */
void reply_failure_of(const char *title, unsigned status, struct json body,
                      struct reply_failure *ret);

/* Append `text` as part of a sentence: at most max_bytes, control characters as spaces, what
 * looks like a key ("sk-...", "AIza...", "Bearer ...") as "***". */
void reply_append_safe(struct buf *out, struct str text, size_t max_bytes);

#endif
