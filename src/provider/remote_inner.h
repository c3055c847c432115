/* remote_inner: what remote.c, remote_call.c and media_openai.c share, and what their tests
 * look at.
 *
 * Memory   as remote.h.
 * Threads  as provider.h.
 */
#ifndef WEIR_PROVIDER_REMOTE_INNER_H
#define WEIR_PROVIDER_REMOTE_INNER_H

#include "base/arena.h"
#include "provider/remote.h"

#include <stdatomic.h>

/* What a call is doing. */
enum remote_state {
    REMOTE_ASKING,    /* a request is out and its answer is not known to be a stream */
    REMOTE_WAITING,   /* to ask again */
    REMOTE_STREAMING, /* an event stream has begun: nobody is asked again */
    REMOTE_OVER,      /* nothing is told any more */
    REMOTE_STATE_COUNT,
};

bool remote_may_become(enum remote_state state, enum remote_state next);
struct str remote_state_name(enum remote_state state);

struct remote {
    struct provider base;
    struct remote_options options;     /* its text lives in the arena */
    struct http_header *headers;       /* of every request; the key stands in one of them */
    bool *secret;                      /* whether a header's value is shown to nobody */
    struct http_header *whole_headers; /* the same where no stream is asked for */
    size_t header_count;
    struct arena *arena;
    atomic_bool
        whole; /* it has refused to stream and answered without: nobody asks it to again */
};

/* As provider.h says it of a kind. */
struct provider_call *remote_call_start(struct provider *provider, struct loop *loop,
                                        const struct provider_request *request,
                                        reply_event_fn *on_reply, void *ctx);
void remote_call_pause(struct provider_call *call);
void remote_call_resume(struct provider_call *call);
void remote_call_cancel(struct provider_call *call);

/* --- remote_failure.c: what a failed call says -------------------------------------------- */

/* A limit passed: the whole call's when `expired`, else the one of `stage`. */
void failure_timeout(const struct remote_options *options, enum http_stage stage, bool expired,
                     struct reply_failure *ret);

/* Nobody answered, as the HTTP side tells it. */
void failure_unreachable(const struct err *why, struct reply_failure *ret);

/* An answer that is no stream: `type` its content type, `text` what it says. */
void failure_refused(const struct dialect *dialect, unsigned status, struct str type,
                     struct str text, struct reply_failure *ret);

/* An answer that did not come to its end. */
void failure_broken(const struct err *why, struct reply_failure *ret);

/* Whether an answer that is no stream says that streaming is what was refused. */
bool failure_is_of_stream(const struct reply_failure *failure, unsigned status,
                          struct str text);

/* Who is told of a failure: where by_operator, all of it; otherwise a sentence, and the log
 * gets the rest, with the run when it is not 0. */
struct failure_reader {
    uint64_t run;
    bool by_operator;
};

/* Once, at the end: say which provider it was and what its operator can do, hide what vendors
 * repeat of a request's secrets, and leave in failure->why what `reader` may read. */
void failure_word(const struct remote *remote, struct failure_reader reader,
                  struct reply_failure *failure);

/* The same of a request that our own words refuse: they are about the question, and stay. */
void failure_word_unasked(const struct remote *remote, struct failure_reader reader,
                          struct reply_failure *failure);

/* --- remote_attempts.c: when a question is asked again, and until when -------------------- */

struct attempts {
    const struct remote_options *options;
    struct loop *loop;
    uint64_t start_ms;
    unsigned retries;       /* so far */
    uint64_t random;        /* the state of the dice */
    unsigned status;        /* of the last answer; 0 before its head */
    int64_t retry_after_ms; /* as that said; -1: not said */
};

/* `options` are kept as long as the attempts. */
void attempts_init(struct attempts *attempts, const struct remote_options *options,
                   struct loop *loop);

/* Whether the whole call's time is up. */
bool attempts_expired(const struct attempts *attempts);

/* Begin the next one: a request with its method and limits of time. */
struct http_request attempts_next(struct attempts *attempts);

/* Nobody answered: set the failure. Whether the same may go better once more. */
bool attempts_unanswered(const struct attempts *attempts, const struct err *failed,
                         enum http_stage stage, struct reply_failure *ret);

/* An answer with another status than 200 means `failure`: whether it may go better once more.
 */
bool attempts_refused(const struct attempts *attempts, const struct reply_failure *failure);

/* Start `timer` for the next one; the log says that it did not work for `reason`. False: it is
 * not worth waiting. */
bool attempts_wait(struct attempts *attempts, const char *reason, struct timer *timer);

/* How long to wait before retry number `retry` (counted from 0), between three and five
 * quarters of the doubled pause; *random is the state of the dice, never 0. */
uint64_t remote_pause_ms(const struct remote_options *options, unsigned retry,
                         uint64_t *random);

#endif
