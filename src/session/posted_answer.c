#include "session/posted_answer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "session/key_leases.h"
#include "store/changes.h"

#include <assert.h>
#include <stdlib.h>

#define PIECE_BYTES (64 * KIB)
#define LATE_AGAIN_MS 1000 /* until the next attempt to withdraw one that was taken */

const struct state posted_answer_states[POSTED_STATE_COUNT] = {
    [POSTED_SENDING] = {"sending", TO(POSTED_LOOKING) | TO(POSTED_OVER)},
    [POSTED_LOOKING] = {"looking", TO(POSTED_READING) | TO(POSTED_OVER)},
    [POSTED_READING] = {"reading", TO(POSTED_READING) | TO(POSTED_LOOKING) |
                                       TO(POSTED_WAITING) | TO(POSTED_WITHDRAWING) |
                                       TO(POSTED_OVER)},
    [POSTED_WAITING] = {"waiting",
                        TO(POSTED_LOOKING) | TO(POSTED_WITHDRAWING) | TO(POSTED_OVER)},
    [POSTED_WITHDRAWING] = {"withdrawing", TO(POSTED_LOOKING) | TO(POSTED_READING) |
                                               TO(POSTED_WAITING) | TO(POSTED_OVER)},
    [POSTED_OVER] = {"over", 0},
};

struct posted_answer {
    struct posted_answer_options options; /* its texts are in `texts` */
    struct buf texts;
    enum posted_answer_state state;
    bool asking; /* the store: its answer comes, also after the end */
    struct posting posting;
    struct store_load load;
    uint64_t read_to; /* no decision up to here */
    struct changes_watcher *watcher;
    struct timer late;
    struct key_hold key;
    bool changed; /* while it was not waiting */
    bool is_late;
};

static void posted_move(struct posted_answer *posted, enum posted_answer_state next) {
    assert(states_allow(posted_answer_states, posted->state, next));
    posted->state = next;
}

static struct store *store_of(const struct posted_answer *posted) {
    return session_table_store(posted->options.sessions);
}

static void posted_answer_free(struct posted_answer *posted) {
    buf_done(&posted->texts);
    free(posted);
}

/* The row goes in any case: it may be there though its writing failed. */
void posted_answer_cancel(struct posted_answer *posted) {
    if (!posted) return;
    posted_move(posted, POSTED_OVER);
    changes_leave(posted->watcher);
    timer_stop(&posted->late);
    key_hold_end(&posted->key);
    posting_remove(store_of(posted), posted->options.loop, posted->posting.number);
    if (!posted->asking) posted_answer_free(posted); /* else the store's answer does */
}

static void posted_answer_report(struct posted_answer *posted, const struct err *refused) {
    const struct posted_answer_options options = posted->options;
    struct err why;
    if (refused) why = *refused;
    posted_answer_cancel(posted);
    options.on_end(refused ? &why : NULL, options.ctx);
}

static void report_late(struct posted_answer *posted) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE,
            "the replica that has this run has not taken the answer; send it again");
    posted_answer_report(posted, &why);
}

static void report_refused(struct posted_answer *posted) {
    static const enum err_code codes[] = {[POSTED_MISFIT] = ERR_INVALID_ARGUMENT,
                                          [POSTED_KEY_TAKEN] = ERR_ALREADY_EXISTS,
                                          [POSTED_UNDECIDED] = ERR_FAILED_PRECONDITION};
    const struct posting *posting = &posted->posting;
    bool known = posting->refused < ARRAY_LEN(codes);
    struct err why;
    err_set(&why, known ? codes[posting->refused] : ERR_INVALID_ARGUMENT, "%s", posting->why);
    posted_answer_report(posted, &why);
}

/* True: it was cancelled meanwhile, and is freed now. */
static bool is_over(struct posted_answer *posted) {
    posted->asking = false;
    if (posted->state != POSTED_OVER) return false;
    posted_answer_free(posted);
    return true;
}

/* --- the row ------------------------------------------------------------------------------ */

static void read_log(struct posted_answer *posted);

/* A store that is away for a moment is asked again when something changes, until it is late. */
static void on_row(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    if (is_over(posted)) return;
    if (!failed && posting->refused)
        report_refused(posted);
    else
        read_log(posted);
}

static void posted_answer_look(struct posted_answer *posted) {
    posted_move(posted, POSTED_LOOKING);
    posted->changed = false;
    posted->asking = true;
    posted->posting.on_done = on_row;
    posting_look(store_of(posted), posted->options.loop, &posted->posting);
}

/* --- being late --------------------------------------------------------------------------- */

/* What was taken is waited for: its taker gives it, or dies, and then it can be withdrawn. */
static void on_withdrawn(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    if (is_over(posted)) return;
    posted->is_late = false;
    if (!failed && posting->withdrawn) {
        read_log(posted); /* once more: another answer may have been given */
        return;
    }
    timer_start(&posted->late, LATE_AGAIN_MS);
    if (failed)
        posted_move(posted, POSTED_WAITING);
    else
        posted_answer_look(posted);
}

static void withdraw(struct posted_answer *posted) {
    posted_move(posted, POSTED_WITHDRAWING);
    posted->asking = true;
    posted->posting.on_done = on_withdrawn;
    posting_withdraw(store_of(posted), posted->options.loop, &posted->posting);
}

static void on_late(void *ctx) {
    struct posted_answer *posted = ctx;
    posted->is_late = true;
    if (posted->state == POSTED_WAITING) withdraw(posted);
}

static void on_change(void *ctx) {
    struct posted_answer *posted = ctx;
    posted->changed = true;
    if (posted->state == POSTED_WAITING) posted_answer_look(posted);
}

/* --- what came of it ---------------------------------------------------------------------- */

/* Words that are kept for the model decide nothing (restore_run.h). */
static bool has_decision(struct posted_answer *posted, const struct store_section *section) {
    struct str rest = section->events;
    struct event event = {0};
    struct err e;
    for (uint64_t seq = section->first_seq; rest.len && event_decode(&rest, &event, &e);
         seq++) {
        if (seq > posted->options.words.seq && event.kind != EVENT_ITEM) return true;
        posted->read_to = seq;
    }
    return false;
}

/* The log says nothing yet. */
static void go_on(struct posted_answer *posted) {
    if (posted->posting.withdrawn) {
        report_late(posted);
    } else if (posted->is_late) {
        withdraw(posted);
    } else if (posted->changed) {
        posted_answer_look(posted);
    } else {
        posted_move(posted, POSTED_WAITING);
    }
}

static void on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    bool decided = false, more = load->more;
    uint64_t before = posted->read_to;
    for (size_t i = 0; !failed && !decided && i < load->section_count; i++)
        decided = has_decision(posted, &load->sections[i]);
    arena_free(load->arena);
    if (is_over(posted)) return;
    if (decided)
        posted_answer_report(posted, NULL);
    else if (!failed && more && posted->read_to > before)
        read_log(posted);
    else
        go_on(posted);
}

static void read_log(struct posted_answer *posted) {
    posted_move(posted, POSTED_READING);
    posted->asking = true;
    posted->load = (struct store_load){.question = STORE_RUN,
                                       .run = posted->options.words.run,
                                       .after_seq = posted->read_to,
                                       .max_bytes = PIECE_BYTES,
                                       .home = posted->options.loop,
                                       .on_loaded = on_loaded,
                                       .ctx = posted};
    store_load(store_of(posted), &posted->load);
}

/* --- sending ------------------------------------------------------------------------------ */

static void on_sent(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    (void)posting;
    if (is_over(posted)) return;
    if (failed && failed->code != ERR_OUTCOME_UNKNOWN)
        posted_answer_report(posted, failed);
    else
        posted_answer_look(posted);
}

static void keep_key(struct posted_answer *posted) {
    const struct posted_words *words = &posted->options.words;
    const struct claim_name name = {posted->options.workspace, words->key_user, words->key};
    key_hold_begin(&posted->key, session_table_key_leases(posted->options.sessions), &name,
                   posted->options.loop);
}

struct posted_answer *posted_answer_start(const struct posted_answer_options *options) {
    struct posted_answer *posted = MEM_NEW(struct posted_answer);
    struct store *store = session_table_store(options->sessions);
    const int64_t number = session_table_number_posted(options->sessions);
    const uint64_t unique[] = {store_epoch(store), (uint64_t)number};
    posted->options = *options;
    struct posted_words *words = &posted->options.words;
    if (options->asks_again && !words->key.len)
        words->print = str_of((const char *)unique, sizeof(unique));
    struct str *texts[] = {&posted->options.workspace, &words->text, &words->key,
                           &words->key_user, &words->print};
    buf_keep_texts(&posted->texts, texts, ARRAY_LEN(texts));
    keep_key(posted);
    posted->read_to = words->seq;
    posted->posting =
        (struct posting){.words = *words, .number = number, .on_done = on_sent, .ctx = posted};
    posted->watcher = changes_watch(store_changes(store), CHANGE_POSTED | CHANGE_WRITTEN,
                                    options->loop, on_change, posted);
    timer_init(&posted->late, options->loop, on_late, posted);
    timer_start(&posted->late, session_table_wait_ms(options->sessions));
    posted->asking = true;
    posting_send(store, options->loop, &posted->posting);
    return posted;
}
