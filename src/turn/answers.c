/* answers: what a run receives besides a human's decision.
 *
 * Words that decide nothing are kept for the model, as an item of the journal after the
 * question. The idempotency key of a request is kept for repeats: as a claim while the run is
 * alive, and as an item that the store finds later (store/idempotency_key.h). */
#include "turn/turn.h"

#include "base/log.h"
#include "base/utf8.h"
#include "store/idempotency_key.h"

/* Limit for such words between a question and the end of the call it guards. */
#define ASIDES_MAX_BYTES (64 * KIB)
#define UTF8_MAX_BYTES 4

static bool answers_is_open(const struct run *run) {
    return run->state == RUN_WAITING && !run->ending_begun;
}

static void keep_aside(struct run *run, struct str words) {
    size_t len = utf8_cut(words, ASIDES_MAX_BYTES - run->approval.aside_bytes);
    if (len < words.len)
        log_warning("run %llu: what was said beside its question is kept in part only",
                    (unsigned long long)record_id(&run->record));
    if (len == 0) return;
    words = str_head(words, len);
    struct event event = {.kind = EVENT_ITEM, .item = {STR(ASIDE_ITEM), words}};
    run->approval.aside_bytes += words.len;
    run_append(run, &event);
    journal_hurry(run->record.journal);
}

/* --- requests that are repeated ----------------------------------------------------------- */

static bool was_heard(const struct run *run, struct str print) {
    size_t count = run->approval.print_count;
    if (count > ASIDE_PRINTS_MAX) count = ASIDE_PRINTS_MAX;
    for (size_t i = 0; i < count; i++) {
        if (str_equal(run->approval.prints[i], print)) return true;
    }
    return false;
}

bool run_note_print(struct run *run, struct str print) {
    struct approval *approval = &run->approval;
    if (!approval->prints)
        approval->prints = arena_alloc(run->arena, ASIDE_PRINTS_MAX * sizeof(struct str));
    if (!approval->prints) {
        run_fail_memory(run);
        return false;
    }
    return run_keep(run, print, &approval->prints[approval->print_count++ % ASIDE_PRINTS_MAX]);
}

static void keep_print(struct run *run, struct str print) {
    struct event event = {.kind = EVENT_ITEM, .item = {STR(ASIDE_PRINT_ITEM), print}};
    if (run_note_print(run, print)) run_append(run, &event);
}

/* --- words -------------------------------------------------------------------------------- */

void run_hear(struct str words, struct str print, void *ctx) {
    struct run *run = ctx;
    struct buf room;
    if (!answers_is_open(run)) return; /* another answer arrived meanwhile */
    if (print.len && was_heard(run, print)) return;
    if (ASIDES_MAX_BYTES - run->approval.aside_bytes < UTF8_MAX_BYTES) {
        log_often(LOG_WARNING,
                  "run %llu: too much was said beside its question; nothing more "
                  "of it is kept",
                  (unsigned long long)record_id(&run->record));
        return; /* nothing is kept that a repeat could double */
    }
    if (print.len) keep_print(run, print);
    if (!answers_is_open(run)) return;
    if (run_guard_words(run, words, &room, &words)) {
        keep_aside(run, words);
    } else {
        log_warning("run %llu: a guardrail blocked what was said beside its question",
                    (unsigned long long)record_id(&run->record));
    }
    buf_done(&room);
}

/* --- keys --------------------------------------------------------------------------------- */

static void append_key(struct run *run, const struct claim *claim) {
    const struct key_item item = {claim->name.user, claim->name.key, claim->print, claim->seq};
    struct buf bytes;
    buf_init(&bytes, 64 * KIB);
    key_item_append(&item, &bytes);
    struct event event = {.kind = EVENT_ITEM, .item = {STR(KEY_ITEM), buf_str(&bytes)}};
    run_append(run, &event);
    buf_done(&bytes);
}

void run_take_key(struct claim *claim, void *ctx) {
    struct run *run = ctx;
    if (run->ending_begun) { /* it was cancelled meanwhile; nothing was decided */
        idempotency_claims_remove(session_table_claims(run->record.engine->sessions), claim);
        claim_free(claim);
        return;
    }
    claim->next = run->approval.keys;
    run->approval.keys = claim;
    append_key(run, claim);
}

void run_drop_keys(struct run *run) {
    while (run->approval.keys) {
        struct claim *claim = run->approval.keys;
        run->approval.keys = claim->next;
        idempotency_claims_remove(session_table_claims(run->record.engine->sessions), claim);
        claim_free(claim);
    }
}
