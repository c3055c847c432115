#include "session/posted_answer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/changes.h"

#include <stdlib.h>

#define PIECE_BYTES (64 * KIB)

struct posted_answer {
    struct posted_answer_options options; /* its texts are in `texts` */
    struct buf texts;
    struct posting posting;
    struct store_load load;
    uint64_t read_to; /* no decision up to here */
    struct changes_watcher *watcher;
    struct timer late;
    bool asking; /* the store */
    bool changed, ended;
};

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
    posted->ended = true;
    changes_leave(posted->watcher);
    timer_stop(&posted->late);
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

/* True: it was cancelled meanwhile, and is freed now. */
static bool is_over(struct posted_answer *posted) {
    posted->asking = false;
    if (!posted->ended) return false;
    posted_answer_free(posted);
    return true;
}

/* --- what came of it ---------------------------------------------------------------------- */

static void look(void *ctx);

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

static void read_log(struct posted_answer *posted);

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
    else if (posted->changed)
        look(posted);
}

static void read_log(struct posted_answer *posted) {
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

/* A store that is away for a moment is asked again when something changes, until it is late. */
static void on_row(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    struct err why;
    if (is_over(posted)) return;
    if (failed || !posting->refused) {
        read_log(posted);
        return;
    }
    err_set(&why, ERR_INVALID_ARGUMENT, "%s", posting->why);
    posted_answer_report(posted, &why);
}

static void look(void *ctx) {
    struct posted_answer *posted = ctx;
    posted->changed = posted->asking;
    if (posted->asking) return;
    posted->asking = true;
    posting_look(store_of(posted), posted->options.loop, &posted->posting);
}

/* --- sending ------------------------------------------------------------------------------ */

static void on_sent(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    posting->on_done = on_row;
    if (is_over(posted)) return;
    if (failed && failed->code != ERR_OUTCOME_UNKNOWN)
        posted_answer_report(posted, failed);
    else
        look(posted);
}

static void on_late(void *ctx) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE,
            "the replica that has this run has not taken the answer; send it again");
    posted_answer_report(ctx, &why);
}

struct posted_answer *posted_answer_start(const struct posted_answer_options *options) {
    struct posted_answer *posted = MEM_NEW(struct posted_answer);
    struct store *store = session_table_store(options->sessions);
    posted->options = *options;
    struct posted_words *words = &posted->options.words;
    struct str *texts[] = {&words->text, &words->key, &words->key_user, &words->print};
    buf_keep_texts(&posted->texts, texts, ARRAY_LEN(texts));
    posted->read_to = words->seq;
    posted->posting = (struct posting){.words = *words,
                                       .number = session_table_number_posted(options->sessions),
                                       .on_done = on_sent,
                                       .ctx = posted};
    posted->watcher = changes_watch(store_changes(store), CHANGE_POSTED | CHANGE_WRITTEN,
                                    options->loop, look, posted);
    timer_init(&posted->late, options->loop, on_late, posted);
    timer_start(&posted->late, session_table_wait_ms(options->sessions));
    posted->asking = true;
    posting_send(store, options->loop, &posted->posting);
    return posted;
}
