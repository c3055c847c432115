#include "contract/nimi/shared_once.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/changes.h"
#include "wire/digest.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AGAIN_MS 500 /* a notification may be lost */

const struct state shared_once_states[SHARED_ONCE_STATE_COUNT] = {
    /* clang-format off */
    [SHARED_ONCE_ASKING]  = {"asking",  TO(SHARED_ONCE_WAITING) | TO(SHARED_ONCE_MINE) | TO(SHARED_ONCE_ENDED)},
    [SHARED_ONCE_WAITING] = {"waiting", TO(SHARED_ONCE_ASKING) | TO(SHARED_ONCE_ENDED)},
    [SHARED_ONCE_MINE]    = {"mine",    TO(SHARED_ONCE_KEEPING) | TO(SHARED_ONCE_ENDED)},
    [SHARED_ONCE_KEEPING] = {"keeping", TO(SHARED_ONCE_ENDED)},
    [SHARED_ONCE_ENDED]   = {"ended",   0},
    /* clang-format on */
};

_Static_assert(DIGEST_BYTES == ONCE_REPLY_KEY_BYTES, "the key is a digest");

struct shared_once {
    struct shared_once_options options; /* without its texts */
    enum shared_once_state state;
    bool asking; /* the store: its answer comes, also after the end */
    bool freed;  /* something was freed while the store was asked */
    struct once_claim claim;
    struct buf texts; /* of its owner */
    struct changes_watcher *watcher;
    struct timer again;
    void (*kept)(void *ctx);
};

static void once_move(struct shared_once *once, enum shared_once_state next) {
    assert(states_allow(shared_once_states, once->state, next));
    once->state = next;
}

static void shared_once_free(struct shared_once *once) {
    buf_done(&once->claim.reply);
    buf_done(&once->texts);
    free(once);
}

static void once_rest(struct shared_once *once) {
    changes_leave(once->watcher);
    once->watcher = NULL;
    timer_stop(&once->again);
}

static void once_ask(struct shared_once *once) {
    timer_stop(&once->again);
    once->freed = false;
    once->asking = true;
    once->claim.unix_ms = clock_unix_ms();
    once_claim_start(once->options.store, once->options.loop, &once->claim);
}

static void once_again(void *ctx) {
    struct shared_once *once = ctx;
    once->freed = true;
    if (once->state != SHARED_ONCE_WAITING) return;
    once_move(once, SHARED_ONCE_ASKING);
    once_ask(once);
}

/* What was freed before others are heard is asked for at once. */
static void once_wait(struct shared_once *once) {
    once_move(once, SHARED_ONCE_WAITING);
    if (!once->watcher) {
        once->watcher = changes_watch(store_changes(once->options.store),
                                      once_reply_change(once->claim.key), once->options.loop,
                                      once_again, once);
        once->freed = true;
    }
    if (once->freed)
        once_again(once);
    else
        timer_start(&once->again, AGAIN_MS);
}

static void once_report(struct shared_once *once, const struct err *failed) {
    enum once_claimed found = once->claim.found;
    bool mine = !failed && found == ONCE_NEW;
    once_rest(once);
    once_move(once, mine ? SHARED_ONCE_MINE : SHARED_ONCE_ENDED);
    once->options.on_answer(found, buf_str(&once->claim.reply), failed, once->options.ctx);
    if (!mine) shared_once_free(once);
}

static void shared_once_drop(struct shared_once *once) {
    once_reply_drop(once->options.store, once->options.loop, &once->claim);
}

static void on_claimed(struct once_claim *claim, const struct err *failed, void *ctx) {
    struct shared_once *once = ctx;
    once->asking = false;
    bool may_have = !failed || failed->code == ERR_OUTCOME_UNKNOWN; /* a row */
    if (once->state == SHARED_ONCE_ENDED) {
        if (may_have) shared_once_drop(once);
        shared_once_free(once);
        return;
    }
    if (failed && may_have) shared_once_drop(once);
    if (!failed && claim->found == ONCE_MAKING)
        once_wait(once);
    else
        once_report(once, failed);
}

/* One for each claim of this process. */
static int64_t next_number(void) {
    static _Atomic int64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

struct shared_once *shared_once_start(const struct shared_once_options *options) {
    struct shared_once *once = MEM_NEW(struct shared_once);
    once->options = *options;
    once->claim.number = next_number();
    once->claim.owner = options->owner;
    buf_keep_texts(&once->texts,
                   (struct str *const[]){&once->claim.owner.caller, &once->claim.owner.app}, 2);
    once->claim.on_done = on_claimed;
    once->claim.ctx = once;
    digest_text(options->key, once->claim.key);
    memcpy(once->claim.print, options->print, sizeof(once->claim.print));
    buf_init(&once->claim.reply, ONCE_REPLY_MAX_BYTES);
    timer_init(&once->again, options->loop, once_again, once);
    once_ask(once);
    return once;
}

struct kept_reply shared_once_reply(const struct shared_once *once, struct str reply,
                                    int64_t until_ms) {
    assert(once->state == SHARED_ONCE_MINE);
    return kept_reply_of(&once->claim, reply, until_ms);
}

/* Kept, or the store was closed: the write is made in either case. */
static void shared_once_on_kept(const struct err *failed, void *ctx) {
    struct shared_once *once = ctx;
    void (*kept)(void *ctx) = once->kept;
    void *kept_ctx = once->options.ctx;
    (void)failed;
    once_move(once, SHARED_ONCE_ENDED);
    shared_once_free(once);
    kept(kept_ctx);
}

void shared_once_keep(struct shared_once *once, struct str reply, int64_t until_ms,
                      void (*kept)(void *ctx)) {
    const struct kept_reply made = shared_once_reply(once, reply, until_ms);
    once_move(once, SHARED_ONCE_KEEPING);
    once->kept = kept;
    once_reply_keep(once->options.store, once->options.loop, &made, shared_once_on_kept, once);
}

void shared_once_end(struct shared_once *once) {
    bool mine = once->state == SHARED_ONCE_MINE;
    once_rest(once);
    once_move(once, SHARED_ONCE_ENDED);
    if (mine) shared_once_drop(once); /* what was kept stays */
    if (!once->asking) shared_once_free(once);
}
