/* remote_inner: shared by remote.c, remote_call.c, media_openai.c and their tests.
 *
 * Memory   as remote.h.
 * Threads  as provider.h.
 */
#ifndef WEIR_PROVIDER_REMOTE_INNER_H
#define WEIR_PROVIDER_REMOTE_INNER_H

#include "base/arena.h"
#include "base/states.h"
#include "provider/remote.h"

#include <stdatomic.h>

/* What a call is doing. */
enum remote_state {
    REMOTE_ASKING,    /* a request was sent; no event stream has begun yet */
    REMOTE_WAITING,   /* before a retry */
    REMOTE_STREAMING, /* an event stream has begun: no more retries */
    REMOTE_OVER,      /* no more callbacks */
    REMOTE_STATE_COUNT,
};

extern const struct state remote_states[REMOTE_STATE_COUNT];

struct remote {
    struct provider base;
    struct remote_options options;     /* its text lives in the arena */
    struct http_header *headers;       /* of every request; one of them holds the key */
    bool *secret;                      /* per header: its value must never be shown */
    struct http_header *whole_headers; /* the headers of requests without streaming */
    size_t header_count;
    struct arena *arena;
    /* Set not to stream, or it refused to stream and answered without: it is not asked to
     * again. */
    atomic_bool whole;
    atomic_bool looked; /* a head was not as it should be, which was said */
};

/* The headers of one request: the remote's and, from `trace` unless it is NULL, its two. `parent`
 * holds the text of the first. The caller frees the result. */
struct http_header *remote_headers(const struct remote *remote, bool whole,
                                   const struct trace_context *trace,
                                   char parent[static TRACE_PARENT_BYTES + 1],
                                   size_t *ret_count);

/* The functions of struct provider_kind. */
struct provider_call *remote_call_start(struct provider *provider, struct loop *loop,
                                        const struct provider_request *request,
                                        reply_event_fn *on_reply, void *ctx);
void remote_call_pause(struct provider_call *call);
void remote_call_resume(struct provider_call *call);
void remote_call_cancel(struct provider_call *call);

static inline const char *remote_noun(const struct remote_options *options) {
    return options->party ? options->party->noun : "provider";
}

/* --- remote_failure.c: why a call failed -------------------------------------------------- */

/* A time limit passed: the whole call's if `expired`, else the one of `stage`. */
void failure_timeout(const struct remote_options *options, enum http_stage stage, bool expired,
                     struct reply_failure *ret);

/* No server answered; `why` is the error of the HTTP client. */
void failure_unreachable(const struct err *why, struct reply_failure *ret);

/* The response is not a stream: `type` is its content type, `text` its body. */
void failure_refused(const struct dialect *dialect, unsigned status, struct str type,
                     struct str text, struct reply_failure *ret);

/* The server sends us elsewhere. That is not followed: a key would go to a host that no
 * setting names. */
void failure_redirected(const struct dialect *dialect, unsigned status,
                        struct reply_failure *ret);

/* The response broke off. */
void failure_broken(const struct err *why, struct reply_failure *ret);

/* Whether the dialect says that this status refuses a stream. */
bool failure_is_streamless(const struct dialect *dialect, unsigned status);

/* Whether a response that is not a stream says that streaming was refused. */
bool failure_is_of_stream(const struct reply_failure *failure, unsigned status,
                          struct str text);

/* Who reads the failure. The operator gets all details. Other callers get one sentence and the
 * log gets the rest, with the run if it is not 0. */
struct failure_reader {
    uint64_t run;
    bool by_operator;
};

/* Called once, at the end: name the provider and the remedy, hide secrets that the vendor
 * quoted from the request, and leave in failure->why only what `reader` may read. */
void failure_word(const struct remote *remote, struct failure_reader reader,
                  struct reply_failure *failure);

/* The same for a request that we refused ourselves. The text is about the request and stays. */
void failure_word_unasked(const struct remote *remote, struct failure_reader reader,
                          struct reply_failure *failure);

/* --- remote_attempts.c: retries and their limits ------------------------------------------ */

struct attempts {
    const struct remote_options *options;
    struct loop *loop;
    uint64_t start_ms;
    unsigned retries;       /* so far */
    uint64_t random;        /* state of the random generator */
    unsigned status;        /* of the last response; 0 before its head */
    int64_t retry_after_ms; /* of the last response; -1: none given */
};

/* `options` must outlive the attempts. */
void attempts_init(struct attempts *attempts, const struct remote_options *options,
                   struct loop *loop);

/* Whether the time limit of the whole call has passed. */
bool attempts_expired(const struct attempts *attempts);

/* Begin the next attempt: returns a request with its method and time limits set. */
struct http_request attempts_next(struct attempts *attempts);

/* No server answered: set the failure. Returns whether a retry may help. */
bool attempts_unanswered(const struct attempts *attempts, const struct err *failed,
                         enum http_stage stage, struct reply_failure *ret);

/* A response with a status other than 200 means `failure`. Returns whether a retry may help. */
bool attempts_refused(const struct attempts *attempts, const struct reply_failure *failure);

/* Log the failed attempt with its `reason` and start `timer` for the next one. False: there
 * will be no retry. */
bool attempts_wait(struct attempts *attempts, const char *reason, struct timer *timer);

/* How long to wait before retry number `retry` (counted from 0): between three and five
 * quarters of the doubled pause. *random is the state of the random generator, never 0. */
uint64_t remote_pause_ms(const struct remote_options *options, unsigned retry,
                         uint64_t *random);

#endif
