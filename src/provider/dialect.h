/* dialect: the request and response format of one vendor's model API.
 *
 * A dialect turns a request into one JSON body, and the server-sent events of the response into
 * reply events. It has no socket and no clock, so a test drives it with a string and the fuzzer
 * with noise. provider/remote.c does the rest for all dialects: connections, retries, time
 * limits, and error responses.
 *
 *     begin ─▶ feed, feed, ... | read ─▶ end ─▶ free
 *                     │ on_reply: text, thinking, tool calls, usage, opaque
 *                     └─ never an ending: the result of end() says which it is
 *
 * Rules for every dialect:
 * - A tool call is reported when it is complete, in the order of the reply.
 * - Arguments that are not a JSON object are reported unchanged. A call that names no tool is
 *   reported with an empty name.
 * - Usage is reported once, at the end; unknown counts are TOKENS_UNKNOWN.
 * - The dialect does not set event.call_sequence.
 * - A stream that ends without a reason is a failure, and so is an error object inside one.
 * - Unknown events and fields are ignored.
 *
 * Memory   a reply owns what it collects. Requests and settings are borrowed during the call.
 * Threads  a reply belongs to one loop; a dialect is constant.
 */
#ifndef WEIR_PROVIDER_DIALECT_H
#define WEIR_PROVIDER_DIALECT_H

#include "client/http.h"
#include "provider/provider.h"
#include "wire/json.h"
#include "wire/json_template.h"
#include "wire/sse.h"

/* What one configured provider adds to each of its requests. */
struct dialect_settings {
    struct str base_url; /* "https://api.openai.com/v1", no slash at its end */
    struct str model;    /* used when a request names none */
    struct str query;    /* "api-version=2024-10-21", or empty */
    struct str key;      /* the secret, or empty: none is sent */
    /* The header that carries the bare key instead of the dialect's own header (Azure:
     * "api-key"), or empty. */
    struct str key_header;
    bool whole; /* request one JSON object instead of a stream */
    /* For "openai": merge consecutive user messages into one. The chat templates of some small
     * models (Mistral, Gemma) refuse two in a row. */
    bool joins_users;
    struct str own; /* a JSON object that only this dialect understands, or empty */
};

/* Why a call failed. The reasons are stable; the table is in dialect.c. */
struct reply_failure {
    struct err why;     /* for the operator: cause and remedy; contains no key */
    const char *reason; /* PROVIDER_... below */
    bool cut;           /* the connection broke in the middle of the response */
    bool said;          /* `why` has what the model said to the caller, who may read it */
};

#define PROVIDER_UNREACHABLE "PROVIDER_UNREACHABLE"   /* refused, DNS, TLS, reset */
#define PROVIDER_FORBIDDEN "PROVIDER_FORBIDDEN"       /* its address may not be asked */
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
#define MODEL_REFUSED_SAYING "the model refused to answer: " /* before the model's own words */
#define MODEL_CANNOT_CARRY "MODEL_CANNOT_CARRY" /* a message that its API has no form for */
#define MODEL_ANSWER_TOO_LONG "MODEL_ANSWER_TOO_LONG" /* more than is taken: REPLY_MAX_BYTES */

/* One sentence for the end user. It quotes nothing from the vendor and gives no advice that
 * only an operator can follow. Advice for the user follows a ';'. */
struct str reply_reason_sentence(struct str reason);

/* Whether the request itself was refused, so that repeating it would fail again. False when the
 * provider is overloaded, out of quota or rejects the key, whatever the request (K27). */
bool reply_reason_is_refusal(struct str reason);

enum reply_outcome {
    OUTCOME_DONE,   /* complete */
    OUTCOME_CUT,    /* ended in order, but at its token limit */
    OUTCOME_FAILED, /* `failure` says why */
};

/* The response parser of a dialect. */
struct reply_reader {
    struct reply *(*begin)(reply_event_fn *on_reply, void *ctx);
    /* False: the reply ended early and failure is set. */
    bool (*feed)(struct reply *reply, const struct sse_event *event);
    /* Instead of feed: a response that is one JSON value and not a stream. */
    bool (*read)(struct reply *reply, struct json answer);
    /* The stream ended in order. *ret_model is the model that answered, borrowed from the
     * reply. */
    enum reply_outcome (*end)(struct reply *reply, struct str *ret_model);
    void (*free)(struct reply *reply);
};

/* What all replies of a dialect have in common: their size, and where their buffers are. */
struct reply_layout {
    size_t size;
    const size_t *bufs; /* offsets */
    size_t buf_count;
};

#define REPLY_MAX_BYTES (16 * MIB) /* of each buffer of a reply */

/* The first member of each dialect's own reply. */
struct reply {
    reply_event_fn *on_reply;
    void *ctx;
    const struct reply_layout *layout;
    bool stopped; /* cancelled from inside a callback: no more callbacks */
    /* The finish reason has arrived: only usage counts may follow, or nothing. */
    bool finished;
    bool over;              /* the end marker has arrived: anything after it is ignored */
    bool calls_passed_over; /* too many tool calls: the last ones were not reported */
    /* The last event, if it only carried text and the next one may be like it: the dialect then
     * takes the text and reads nothing else. Any other event empties it. */
    struct json_template like;
    struct reply_failure failure;
};

struct dialect {
    const char *name;       /* "openai": in MESSAGE_OPAQUE, and as `kind:` in the settings */
    const char *title;      /* "OpenAI": in sentences */
    const char *base_url;   /* the default; NULL: must be configured */
    const char *key_env[3]; /* variables that may hold the key; the first one set is used */
    bool media_beside;      /* serves OpenAI's media API (openai_media.h) at the same address */
    bool live_beside;       /* serves OpenAI's Realtime API (live.h) at the same address */

    /* Append the URL of the request. */
    void (*url)(const struct dialect_settings *settings, const struct provider_request *request,
                struct buf *out);

    /* The header that carries the key and the prefix of its value ("authorization", "Bearer "),
     * and the headers of every request besides content-type and accept. */
    const char *key_header, *key_prefix;
    const struct http_header *headers;
    size_t header_count;

    /* Append the body.
     * errors  ERR_INVALID_ARGUMENT not supported by this API; ERR_UNIMPLEMENTED it cannot carry
     *         a message, with its position: reported as ERR_INVALID_ARGUMENT and
     *         MODEL_CANNOT_CARRY */
    bool (*body)(const struct dialect_settings *settings,
                 const struct provider_request *request, struct buf *out, struct err *e);

    const struct reply_reader *reader;

    /* The rest is optional. Status codes that say: this server does not stream, ask it for a
     * whole response. */
    unsigned streamless[4];
    /* Whether this request is answered whole by every server. */
    bool (*is_whole)(const struct provider_request *request);
    /* Whether the head of a response with status 200 is as it should be; called until it is
     * not. */
    bool (*check_head)(const struct http_head *head, struct str name);
};

/* The only list of dialects. A new dialect is a row here and files that define NAME_dialect and
 * NAME_reader. The first one is the API that other servers imitate. */
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

/* A reply that is zero but for this and its buffers, which are empty. */
void *reply_new(const struct reply_layout *layout, reply_event_fn *on_reply, void *ctx);
void reply_free(struct reply *reply); /* accepts NULL */

/* Fail a reply of which a buffer is full. */
bool reply_check_size(struct reply *reply, const char *title);

/* Report an event of the reply, unless it was stopped. */
static inline void reply_tell(const struct reply *reply, const struct reply_event *event) {
    if (!reply->stopped) reply->on_reply(event, reply->ctx);
}

/* The number under `name` replaces *ret, where it is a count of tokens: each is the total of the
 * reply so far. */
void reply_take_tokens(struct json usage, struct str name, int64_t *ret);

/* Report the blocks of a reply in the form to send back, "{...},{...}", as one array. */
void reply_tell_opaque(const struct reply *reply, const char *dialect,
                       const struct buf *blocks);

/* Fail a reply. Returns false. */
PRINTF_LIKE(4, 5)
bool reply_fail(struct reply *reply, enum err_code code, const char *reason, const char *format,
                ...);

/* Read an error as vendors write it: {"error":{"message","type","code","status"}}, the same in
 * an array, or a bare string. `status` is the HTTP status, or 0 inside a stream. `ret` is set
 * for any body, and never contains a key or a URL with a key. */
void reply_failure_of(const char *title, unsigned status, struct json body,
                      struct reply_failure *ret);

/* Append `text` as part of a sentence: at most max_bytes, with control characters replaced by
 * spaces and likely keys ("sk-...", "AIza...", "Bearer ...") by "***". */
void reply_append_safe(struct buf *out, struct str text, size_t max_bytes);

/* Replace `key`, and pieces of it, with "***" in the text of `e`. Pieces shorter than
 * SECRET_PIECE_BYTES stay. */
void reply_hide(struct err *e, struct str key);

#endif
