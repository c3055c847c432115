/* remote_attempts: decides whether, when and how often a request is retried. */
#include "base/clock.h"
#include "base/log.h"
#include "provider/remote_inner.h"

void attempts_init(struct attempts *attempts, const struct remote_options *options,
                   struct loop *loop) {
    *attempts = (struct attempts){
        .options = options,
        .loop = loop,
        .start_ms = loop_now_ms(loop),
        .random = (clock_mono_us() ^ ((uint64_t)(uintptr_t)attempts << 20)) | 1,
    };
}

static uint64_t elapsed_ms(const struct attempts *attempts) {
    return loop_now_ms(attempts->loop) - attempts->start_ms;
}

bool attempts_expired(const struct attempts *attempts) {
    uint64_t total_ms = attempts->options->total_ms;
    return total_ms && elapsed_ms(attempts) >= total_ms;
}

/* At least 1: to a request, 0 is no limit. */
static uint64_t left_ms(const struct attempts *attempts) {
    uint64_t total_ms = attempts->options->total_ms;
    return attempts_expired(attempts) ? 1 : total_ms - elapsed_ms(attempts);
}

struct http_request attempts_next(struct attempts *attempts) {
    const struct remote_options *options = attempts->options;
    attempts->status = 0;
    attempts->retry_after_ms = -1;
    return (struct http_request){
        .method = STR("POST"),
        .connect_ms = options->connect_ms,
        .first_byte_ms = options->first_byte_ms,
        .stall_ms = options->stall_ms,
        .reach = options->reach,
        .total_ms = options->total_ms ? left_ms(attempts) : 0,
    };
}

/* --- whether once more -------------------------------------------------------------------- */

/* An agent that was reached may have acted; a model was at most paid for. */
static void unanswered_by_agent(const struct attempts *attempts, const struct err *failed,
                                enum http_stage stage, struct reply_failure *ret) {
    if (stage == HTTP_CONNECTING) {
        failure_unreachable(failed, ret);
    } else if (failed->code == ERR_DEADLINE_EXCEEDED) {
        failure_timeout(attempts->options, stage, attempts_expired(attempts), ret);
    } else {
        failure_broken(failed, ret);
    }
}

/* A server that was connected but too slow would be too slow again. */
bool attempts_unanswered(const struct attempts *attempts, const struct err *failed,
                         enum http_stage stage, struct reply_failure *ret) {
    if (attempts->options->party) {
        unanswered_by_agent(attempts, failed, stage, ret);
        return false;
    }
    if (failed->code == ERR_DEADLINE_EXCEEDED) {
        failure_timeout(attempts->options, stage, attempts_expired(attempts), ret);
        return stage == HTTP_CONNECTING;
    }
    failure_unreachable(failed, ret);
    return failed->code == ERR_UNAVAILABLE;
}

bool attempts_refused(const struct attempts *attempts, const struct reply_failure *failure) {
    unsigned status = attempts->status;
    if (strcmp(failure->reason, PROVIDER_QUOTA) == 0) return false; /* waiting would not help */
    return status == 408 || status == 409 || status == 429 || status >= 500;
}

/* Marsaglia's xorshift. It only spreads the retries of different callers, so it need not be
 * secure. */
static uint64_t roll(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

uint64_t remote_pause_ms(const struct remote_options *options, unsigned retry,
                         uint64_t *random) {
    uint64_t pause = options->pause_ms;
    for (unsigned i = 0; i < retry && pause < options->pause_max_ms; i++) pause *= 2;
    if (pause > options->pause_max_ms) pause = options->pause_max_ms;
    return pause - pause / 4 + roll(random) % (pause / 2 + 1);
}

/* The time that the server asked for, plus some jitter. */
static uint64_t remote_attempts_wait_ms(struct attempts *attempts) {
    uint64_t pause = remote_pause_ms(attempts->options, attempts->retries, &attempts->random);
    if (attempts->retry_after_ms <= 0) return pause;
    return (uint64_t)attempts->retry_after_ms + pause / 4;
}

bool attempts_wait(struct attempts *attempts, const char *reason, struct timer *timer) {
    const struct remote_options *options = attempts->options;
    int64_t after_ms = attempts->retry_after_ms;
    if (attempts->retries == options->retries_max) return false;
    if (after_ms > 0 && (uint64_t)after_ms > options->pause_max_ms) return false;
    uint64_t wait = remote_attempts_wait_ms(attempts);
    if (options->total_ms && elapsed_ms(attempts) + wait >= options->total_ms) return false;
    attempts->retries++;
    log_often(LOG_INFO, "%s '" STR_FMT "' did not answer (%s), asking again in %llu ms",
              remote_noun(options), STR_ARG(options->name), reason, (unsigned long long)wait);
    timer_start(timer, wait);
    return true;
}
