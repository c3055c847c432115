#include "record/record.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/unkept.h"

#include <assert.h>

#define COUNTER_BITS 20 /* the low bits of an id */
#define SLOT_BITS 8     /* the lowest, among replicas */

/* A terminal event that the store refused does not count: the record is live until the next
 * one. */
const struct state record_states[RECORD_STATE_COUNT] = {
    /* clang-format off */
    [RECORD_FRESH]     = {"fresh",     TO(RECORD_LIVE) | TO(RECORD_ENDING) | TO(RECORD_OVER)},
    [RECORD_LIVE]      = {"live",      TO(RECORD_ENDING) | TO(RECORD_OVER)},
    [RECORD_ENDING]    = {"ending",    TO(RECORD_LIVE) | TO(RECORD_LINGERING) | TO(RECORD_OVER)},
    [RECORD_LINGERING] = {"lingering", TO(RECORD_OVER)},
    [RECORD_OVER]      = {"over",      0},
    /* clang-format on */
};

/* The only function that writes record->state. */
static void record_move(struct record *record, enum record_state next) {
    assert(states_allow(record_states, record->state, next));
    record->state = next;
}

/* --- numbers ------------------------------------------------------------------------------ */

static uint64_t next_id_of_slot(_Atomic uint64_t *last_run, uint64_t now, unsigned slot) {
    uint64_t last = atomic_load_explicit(last_run, memory_order_relaxed), id;
    now |= slot;
    do {
        id = last >= now ? last + (1u << SLOT_BITS) : now;
    } while (!atomic_compare_exchange_weak_explicit(last_run, &last, id, memory_order_relaxed,
                                                    memory_order_relaxed));
    return id;
}

/* Ids rise with time, so that the newest rows of a table are adjacent: milliseconds of Unix
 * time, then a counter. Of replicas that share a store each has its own part of the counter's
 * low bits. */
uint64_t record_new_id(struct engine *engine) {
    struct store *store = session_table_store(engine->sessions);
    _Atomic uint64_t *last_run = session_table_last_run(engine->sessions);
    uint64_t now = (uint64_t)clock_unix_ms() << COUNTER_BITS;
    if (store && store_is_shared(store))
        return next_id_of_slot(last_run, now, store_slot(store));
    uint64_t last = atomic_load_explicit(last_run, memory_order_relaxed), id;
    do {
        id = last >= now ? last + 1 : now;
    } while (!atomic_compare_exchange_weak_explicit(last_run, &last, id, memory_order_relaxed,
                                                    memory_order_relaxed));
    return id;
}

void record_continue_after(struct engine *engine, uint64_t id) {
    struct store *store = session_table_store(engine->sessions);
    if (store && store_is_shared(store)) /* ids of this replica are counted on from this one */
        id = (id >> SLOT_BITS << SLOT_BITS) | store_slot(store);
    _Atomic uint64_t *last_run = session_table_last_run(engine->sessions);
    uint64_t last = atomic_load_explicit(last_run, memory_order_relaxed);
    while (last < id && !atomic_compare_exchange_weak_explicit(
                            last_run, &last, id, memory_order_relaxed, memory_order_relaxed))
        continue;
}

int64_t record_numbered_ms(uint64_t id) {
    return (int64_t)(id >> COUNTER_BITS);
}

/* --- the end ------------------------------------------------------------------------------ */

/* Remove it from the directory and its key from the claims, and stop the journal's
 * callbacks. */
static void record_leave_tables(struct record *record) {
    struct session_table *sessions = record->engine->sessions;
    journal_leave(record->journal);
    directory_remove(session_table_directory(sessions), &record->live);
    if (record->claim.run)
        idempotency_claims_remove(session_table_claims(sessions), &record->claim);
    record->claim.run = 0;
}

static void record_end(struct record *record) {
    record_move(record, RECORD_OVER);
    record_leave_tables(record);
    record->events->on_over(record->ctx);
}

static void record_lingered(void *ctx) {
    record_end(ctx);
}

/* The last event is final. */
static void record_settle_end(struct record *record) {
    record_show(record, record->ending);
    if (!record->in_memory || !record->linger_ms) {
        record_end(record);
        return;
    }
    record_move(record, RECORD_LINGERING);
    timer_start(&record->linger, record->linger_ms);
}

static void record_durable(uint64_t seq, void *ctx) {
    struct record *record = ctx;
    if (record->state == RECORD_ENDING) {
        if (seq >= record->ending_seq) record_settle_end(record);
    } else if (record->events->on_durable) {
        record->events->on_durable(seq, record->ctx);
    }
}

/* In memory, everything appended counts as durable at once. */
static void record_settled(void *ctx) {
    struct record *record = ctx;
    record_durable(journal_appended(record->journal), record);
}

static void record_lost(const struct err *why, void *ctx) {
    struct record *record = ctx;
    log_error("%s %llu could not be written: %s", record->what,
              (unsigned long long)record_id(record), why->text);
    record_retract(record);
    record->lost = true;
    record->unsure = unkept_unsure(why);
    if (record->state == RECORD_ENDING) record_move(record, RECORD_LIVE);
    record->events->on_lost(why, record->ctx);
}

static void record_pace(bool hold, void *ctx) {
    struct record *record = ctx;
    if (record->events->on_pace) record->events->on_pace(hold, record->ctx);
}

/* --- life --------------------------------------------------------------------------------- */

void record_init(struct record *record, const struct record_options *options) {
    struct loop *loop = options->host->loop;
    struct keeper *keeper = options->in_memory ? NULL : options->host->keeper;
    *record = (struct record){.what = options->what,
                              .host = options->host,
                              .engine = engine_ref(options->engine),
                              .agent = options->agent,
                              .begun_ms = loop_now_ms(loop),
                              .in_memory = keeper == NULL,
                              .events = options->events,
                              .ctx = options->ctx};
    record->journal = journal_new(&(struct journal_options){
        .loop = loop,
        .keeper = keeper,
        .run = options->run ? options->run : record_new_id(options->engine),
        .after_seq = options->after_seq,
        .window_max_bytes = options->window_max_bytes,
        .pace_max_bytes = options->pace_max_bytes,
        .on_durable = record_durable,
        .on_lost = record_lost,
        .on_pace = record_pace,
        .ctx = record});
    list_init(&record->live.link);
    list_init(&record->claim.link);
    task_init(&record->settle, record_settled, record);
    timer_init(&record->linger, loop, record_lingered, record);
}

void record_enter(struct record *record, const struct session_name *name,
                  enum run_state shown) {
    if (record->state != RECORD_FRESH) return;
    record_move(record, RECORD_LIVE);
    record->live = (struct live){.run = record_id(record),
                                 .journal = record->journal,
                                 .loop = record->host->loop,
                                 .workspace = name->workspace,
                                 .user = name->user,
                                 .session = name->session,
                                 .state = (int)shown,
                                 .leave = record->events->leave,
                                 .say = record->events->say,
                                 .ctx = record->ctx};
    list_init(&record->live.link);
    directory_add(session_table_directory(record->engine->sessions), &record->live);
}

void record_hide(struct record *record) {
    directory_remove(session_table_directory(record->engine->sessions), &record->live);
}

void record_unhide(struct record *record) {
    directory_add(session_table_directory(record->engine->sessions), &record->live);
}

void record_leave(struct record *record) {
    if (record->state == RECORD_OVER) return;
    task_cancel(&record->settle);
    timer_stop(&record->linger);
    record_move(record, RECORD_OVER);
    record_leave_tables(record);
}

void record_done(struct record *record) {
    assert(record->state == RECORD_OVER && !list_linked(&record->settle.link));
    journal_unref(record->journal);
    engine_unref(record->engine);
}

void record_show(struct record *record, enum run_state state) {
    atomic_store(&record->live.state, (int)state);
}

/* --- its key ------------------------------------------------------------------------------ */

bool record_claim(struct record *record, uint64_t key_mark, struct err *e) {
    const struct claim_name *name = &record->claim.name;
    struct idempotency_claims *claims = session_table_claims(record->engine->sessions);
    if (!name->key.len || idempotency_claims_begin(claims, name, key_mark)) return true;
    return err_set(e, ERR_ALREADY_EXISTS, "another request with this key came first");
}

void record_claimed(struct record *record, bool started) {
    struct claim *claim = &record->claim;
    if (!claim->name.key.len) return;
    if (started) claim->run = record_id(record);
    idempotency_claims_end(session_table_claims(record->engine->sessions), &claim->name,
                           started ? claim : NULL);
}

void record_give_back_key(struct record *record) {
    if (!record->claim.run) return;
    idempotency_claims_give_back(session_table_claims(record->engine->sessions),
                                 &record->claim);
}

/* --- its events --------------------------------------------------------------------------- */

struct event record_started(struct record *record, struct str text, struct str contract) {
    record->begun_ms = loop_now_ms(record->host->loop);
    record->begun_unix_ms = clock_unix_ms();
    return (struct event){.kind = EVENT_STARTED,
                          .started = {.workspace = record->live.workspace,
                                      .user = record->live.user,
                                      .session = record->live.session,
                                      .text = text,
                                      .contract = contract,
                                      .unix_ms = record->begun_unix_ms,
                                      .key = record->claim.name.key,
                                      .print = record->claim.print}};
}

void record_ends(struct record *record, enum run_state ending, uint64_t seq) {
    record_move(record, RECORD_ENDING);
    record->ending_seq = seq;
    record->ending = ending;
    if (record->in_memory) loop_defer(record->host->loop, &record->settle);
}

void record_gate(struct record *record) {
    journal_gate(record->journal);
    if (record->in_memory) loop_defer(record->host->loop, &record->settle);
}

void record_retract(struct record *record) {
    journal_retract(record->journal);
    record->in_memory = true;
}
