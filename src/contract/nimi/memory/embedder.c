#include "contract/nimi/memory/embedder.h"

#include "base/log.h"
#include "base/mem.h"
#include "contract/nimi/memory/embed.h"
#include "contract/nimi/nimi.h"
#include "proto/nimi.pb.h"

#include <assert.h>
#include <stdlib.h>

#define TOTAL_MS 60000 /* for a batch */
#define PAUSE_MS 1000
#define PAUSE_MAX_MS 60000

/* --- states ------------------------------------------------------------------------------- */

const struct state embedder_states[EMBEDDER_STATE_COUNT] = {
    [EMBEDDER_OFF] = {"off", TO(EMBEDDER_IDLE)},
    [EMBEDDER_IDLE] = {"idle", TO(EMBEDDER_LOOKING) | TO(EMBEDDER_OFF)},
    [EMBEDDER_LOOKING] = {"looking", TO(EMBEDDER_LOOKING) | TO(EMBEDDER_ASKING) |
                                         TO(EMBEDDER_KEEPING) | TO(EMBEDDER_RESTING) |
                                         TO(EMBEDDER_IDLE) | TO(EMBEDDER_OFF)},
    [EMBEDDER_ASKING] = {"asking", TO(EMBEDDER_ASKING) | TO(EMBEDDER_KEEPING) |
                                       TO(EMBEDDER_LOOKING) | TO(EMBEDDER_OFF)},
    [EMBEDDER_KEEPING] = {"keeping", TO(EMBEDDER_LOOKING) | TO(EMBEDDER_OFF)},
    [EMBEDDER_RESTING] = {"resting", TO(EMBEDDER_LOOKING) | TO(EMBEDDER_OFF)},
};

static void move(struct embedder *embedder, enum embedder_state next) {
    assert(states_allow(embedder_states, embedder->state, next));
    embedder->state = next;
}

/* --- whose turn it is ----------------------------------------------------------------------- */

void embed_turn_init(struct embed_turn *turn) {
    *turn = (struct embed_turn){.taken = false};
    pthread_mutex_init(&turn->lock, NULL);
}

void embed_turn_done(struct embed_turn *turn) {
    pthread_mutex_destroy(&turn->lock);
}

/* False: another one works, and was left word. */
static bool turn_take(struct embed_turn *turn) {
    pthread_mutex_lock(&turn->lock);
    bool free_now = !turn->taken;
    if (free_now) turn->taken = true;
    if (!free_now) turn->again = true;
    pthread_mutex_unlock(&turn->lock);
    return free_now;
}

static bool turn_word(struct embed_turn *turn) {
    pthread_mutex_lock(&turn->lock);
    bool again = turn->again;
    turn->again = false;
    pthread_mutex_unlock(&turn->lock);
    return again;
}

/* False: there is more to do, and it is still this one's turn. */
static bool turn_end(struct embed_turn *turn) {
    pthread_mutex_lock(&turn->lock);
    bool over = !turn->again;
    if (over) turn->taken = false;
    turn->again = false;
    pthread_mutex_unlock(&turn->lock);
    return over;
}

/* What is left is for the next one that looks. */
static void turn_leave(struct embed_turn *turn) {
    pthread_mutex_lock(&turn->lock);
    turn->taken = turn->again = false;
    pthread_mutex_unlock(&turn->lock);
}

static struct embed_turn *turn_of(const struct embedder *embedder) {
    return &embedder->instance->runtime->embed_turn;
}

/* --- a batch -------------------------------------------------------------------------------- */

struct embedder_batch {
    struct bank_behind behind; /* without texts */
    int64_t upto;
    struct bank_vector vectors[BANK_BEHIND_MAX];
    size_t count;                  /* of all its records */
    size_t asked[BANK_BEHIND_MAX]; /* which of them the model is asked about */
    struct str texts[BANK_BEHIND_MAX];
    size_t asked_count;
    bool probing;        /* whether the model takes any text */
    struct arena *arena; /* what the answer of the store had */
    struct nimi_memory_bank bank;
};

static void batch_free(struct embedder *embedder) {
    if (embedder->batch) arena_free(embedder->batch->arena);
    free(embedder->batch);
    embedder->batch = NULL;
}

static bool is_single(const struct embedder *embedder, const struct bank_behind *behind) {
    return embedder->single_bank == behind->bank && behind->count &&
           behind->records[0].number <= embedder->single_upto;
}

/* A text of white space has no vector. */
static void batch_add(struct embedder_batch *batch, const struct bank_behind_record *record) {
    batch->vectors[batch->count] = (struct bank_vector){.number = record->number};
    struct str words = str_trim(record->words);
    if (words.len) {
        struct str *text = &batch->texts[batch->asked_count];
        bool fits = arena_str(batch->arena, words, text);
        assert(fits);
        (void)fits;
        batch->asked[batch->asked_count++] = batch->count;
    }
    batch->count++;
}

static void keep_owner(struct embedder_batch *batch, const struct bank_behind *behind) {
    bool fits = arena_str(batch->arena, behind->owner.app, &batch->behind.owner.app) &&
                arena_str(batch->arena, behind->owner.subject, &batch->behind.owner.subject) &&
                arena_str(batch->arena, behind->body, &batch->behind.body);
    assert(fits);
    (void)fits;
}

static void batch_new(struct embedder *embedder, const struct bank_behind *behind) {
    struct embedder_batch *batch = MEM_NEW(struct embedder_batch);
    size_t count = is_single(embedder, behind) ? 1 : behind->count;
    struct err e;
    *batch = (struct embedder_batch){.behind = *behind, .upto = behind->upto};
    batch->arena = arena_new(2 * MIB);
    keep_owner(batch, behind);
    batch->behind.records = NULL;
    if (count < behind->count) batch->upto = behind->records[count - 1].number;
    for (size_t i = 0; i < count; i++) batch_add(batch, &behind->records[i]);
    /* Nothing but our own code writes these bytes. */
    if (!pb_decode_view(&nimi_memory_bank_table, batch->behind.body, batch->arena, &batch->bank,
                        &e))
        batch->bank.embedding_profile = NULL;
    embedder->batch = batch;
}

/* --- banks that rest ------------------------------------------------------------------------ */

static struct embedder_rest *rest_of(struct embedder *embedder, int64_t bank) {
    for (size_t i = 0; i < EMBEDDER_RESTS; i++) {
        if (embedder->rests[i].bank == bank) return &embedder->rests[i];
    }
    return NULL;
}

static uint64_t embedder_now_ms(const struct embedder *embedder) {
    return loop_now_ms(embedder->instance->host->loop);
}

static bool rests(struct embedder *embedder, int64_t bank) {
    const struct embedder_rest *rest = rest_of(embedder, bank);
    return rest && rest->until_ms > embedder_now_ms(embedder);
}

static bool any_rests(const struct embedder *embedder) {
    for (size_t i = 0; i < EMBEDDER_RESTS; i++) {
        if (embedder->rests[i].bank) return true;
    }
    return false;
}

static void rest_end(struct embedder *embedder, int64_t bank) {
    struct embedder_rest *rest = rest_of(embedder, bank);
    if (rest) rest->bank = 0;
}

static void rest_begin(struct embedder *embedder, int64_t bank, const char *why) {
    struct embedder_rest *rest = rest_of(embedder, bank);
    if (!rest) {
        rest = &embedder->rests[embedder->next_rest++ % EMBEDDER_RESTS];
        *rest = (struct embedder_rest){.bank = bank, .pause_ms = PAUSE_MS / 2};
    }
    rest->pause_ms *= 2;
    if (rest->pause_ms > PAUSE_MAX_MS) rest->pause_ms = PAUSE_MAX_MS;
    rest->until_ms = embedder_now_ms(embedder) + rest->pause_ms;
    log_often(LOG_WARNING,
              "records of a memory bank have no vectors yet, and are found by words: %s", why);
}

/* --- looking ---------------------------------------------------------------------------------- */

static void embedder_look(struct embedder *embedder);

static void look_for_next(struct embedder *embedder, int64_t after) {
    batch_free(embedder);
    embedder->after = after;
    embedder_look(embedder);
}

/* All banks were looked at. */
static void round_is_over(struct embedder *embedder) {
    bool goes_on = embedder->worked;
    embedder->worked = false;
    if (goes_on) {
        look_for_next(embedder, 0);
    } else if (any_rests(embedder)) {
        move(embedder, EMBEDDER_RESTING);
        timer_start(&embedder->rest, PAUSE_MS);
    } else if (turn_end(turn_of(embedder))) {
        move(embedder, EMBEDDER_IDLE);
    } else {
        look_for_next(embedder, 0);
    }
}

static void embedder_ask(struct embedder *embedder);

/* Those who rest are looked for until they come: a bank may have been deleted meanwhile. */
static void forget_rests(struct embedder *embedder) {
    for (size_t i = 0; i < EMBEDDER_RESTS; i++) {
        struct embedder_rest *rest = &embedder->rests[i];
        if (rest->bank && rest->until_ms + PAUSE_MAX_MS < embedder_now_ms(embedder))
            rest->bank = 0;
    }
}

static void embedder_on_looked(const struct bank_behind *behind, const struct err *failed,
                               void *ctx) {
    struct embedder *embedder = ctx;
    embedder->looking = NULL;
    if (failed) {
        log_often(LOG_WARNING, "what has no vectors yet cannot be read: %s", failed->text);
        move(embedder, EMBEDDER_RESTING);
        timer_start(&embedder->rest, PAUSE_MAX_MS);
    } else if (!behind->bank) {
        forget_rests(embedder);
        round_is_over(embedder);
    } else if (rests(embedder, behind->bank)) {
        look_for_next(embedder, behind->bank);
    } else {
        batch_new(embedder, behind);
        embedder_ask(embedder);
    }
}

static void embedder_look(struct embedder *embedder) {
    move(embedder, EMBEDDER_LOOKING);
    embedder->looking = bank_behind_start(embedder->store, embedder->instance->host->loop,
                                          embedder->after, embedder_on_looked, embedder);
}

/* --- keeping ---------------------------------------------------------------------------------- */

static void embedder_on_kept(const struct bank_answer *answer, const struct err *failed,
                             void *ctx) {
    struct embedder *embedder = ctx;
    int64_t bank = embedder->batch->behind.bank;
    (void)answer;
    embedder->keeping = NULL;
    if (failed) {
        rest_begin(embedder, bank, failed->text);
    } else {
        rest_end(embedder, bank);
        embedder->worked = true;
    }
    look_for_next(embedder, bank);
}

static void embedder_keep(struct embedder *embedder) {
    struct embedder_batch *batch = embedder->batch;
    move(embedder, EMBEDDER_KEEPING);
    embedder->keeping = bank_embedded_start(embedder->store, embedder->instance->host->loop,
                                            &batch->behind, batch->vectors, batch->count,
                                            batch->upto, embedder_on_kept, embedder);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void embedder_fail(struct embedder *embedder, const char *why) {
    int64_t bank = embedder->batch->behind.bank;
    rest_begin(embedder, bank, why);
    look_for_next(embedder, bank);
}

/* The model may be out of order, or the text be one that it does not take: another text tells. */
static void embedder_on_refused(struct embedder *embedder, const char *why) {
    struct embedder_batch *batch = embedder->batch;
    if (batch->count > 1) {
        embedder->single_bank = batch->behind.bank;
        embedder->single_upto = batch->upto;
        look_for_next(embedder, batch->behind.bank - 1);
    } else if (batch->probing) {
        embedder_fail(embedder, why);
    } else {
        log_often(LOG_WARNING, "a record of a memory bank is found by words alone: %s", why);
        batch->probing = true;
        batch->texts[0] = STR("weir");
        embedder_ask(embedder);
    }
}

static void on_embedded(enum embed_end how, const float *values, const struct err *failed,
                        void *ctx) {
    struct embedder *embedder = ctx;
    struct embedder_batch *batch = embedder->batch;
    size_t dimension = batch->behind.dimension;
    embedder->embed = NULL;
    if (how == EMBED_REFUSED) {
        embedder_on_refused(embedder, failed->text);
    } else if (how != EMBED_OK) {
        embedder_fail(embedder, failed->text);
    } else {
        for (size_t i = 0; i < batch->asked_count && !batch->probing; i++)
            batch->vectors[batch->asked[i]].values = values + i * dimension;
        embedder_keep(embedder);
    }
}

static void embedder_ask(struct embedder *embedder) {
    struct embedder_batch *batch = embedder->batch;
    const struct nimi_memory_embedding_profile *profile = batch->bank.embedding_profile;
    struct fault fault;
    if (batch->asked_count == 0 || !profile) {
        embedder_keep(embedder);
        return;
    }
    embedder->embed = embed_start(&(struct embed_options){.instance = embedder->instance,
                                                          .profile = profile,
                                                          .owner = batch->behind.owner,
                                                          .texts = batch->texts,
                                                          .count = batch->asked_count,
                                                          .total_ms = TOTAL_MS,
                                                          .done = on_embedded,
                                                          .ctx = embedder},
                                  &fault);
    if (embedder->embed) {
        move(embedder, EMBEDDER_ASKING);
    } else {
        embedder_fail(embedder, fault.why.text);
    }
}

/* --- on and off --------------------------------------------------------------------------------- */

static void on_rested(void *ctx) {
    struct embedder *embedder = ctx;
    (void)turn_word(turn_of(embedder)); /* it looks at all banks now */
    look_for_next(embedder, 0);
}

void embedder_init(struct embedder *embedder, struct nimi_instance *instance) {
    *embedder = (struct embedder){.instance = instance};
    timer_init(&embedder->rest, instance->host->loop, on_rested, embedder);
}

void embedder_start(struct embedder *embedder, struct store *store) {
    if (!store || embedder->state != EMBEDDER_OFF) return;
    embedder->store = store;
    move(embedder, EMBEDDER_IDLE);
    embedder_wake(embedder);
}

void embedder_wake(struct embedder *embedder) {
    if (embedder->state == EMBEDDER_OFF) return;
    if (turn_take(turn_of(embedder))) look_for_next(embedder, 0);
}

void embedder_stop(struct embedder *embedder) {
    if (embedder->state == EMBEDDER_OFF) return;
    bool works = embedder->state != EMBEDDER_IDLE;
    timer_stop(&embedder->rest);
    bank_behind_leave(embedder->looking);
    bank_leave(embedder->keeping);
    embed_cancel(embedder->embed);
    embedder->looking = NULL;
    embedder->keeping = NULL;
    embedder->embed = NULL;
    batch_free(embedder);
    move(embedder, EMBEDDER_OFF);
    if (works) turn_leave(turn_of(embedder));
}
