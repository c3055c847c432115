#include "session/posted_answer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/changes.h"

#include <stdlib.h>

struct posted_answer {
    struct posted_answer_options options; /* its texts are in `texts` */
    struct buf texts;
    struct posting posting;
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

/* No callback follows. The row goes in any case: it may be there though its writing failed. */
static void stop(struct posted_answer *posted) {
    posted->ended = true;
    changes_leave(posted->watcher);
    posted->watcher = NULL;
    timer_stop(&posted->late);
    posting_remove(store_of(posted), posted->options.loop, posted->posting.number);
}

static void refuse(struct posted_answer *posted, const struct err *why) {
    stop(posted);
    posted->options.on_refused(why, posted->options.ctx);
}

static void look(void *ctx) {
    struct posted_answer *posted = ctx;
    posted->changed = posted->asking;
    if (posted->asking) return;
    posted->asking = true;
    posting_look(store_of(posted), posted->options.loop, &posted->posting);
}

/* A store that is away for a moment is asked again when something changes, until it is late. */
static void on_answer(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    struct err why;
    posted->asking = false;
    if (posted->ended) {
        posted_answer_free(posted);
    } else if (!failed && posting->refused) {
        err_set(&why, ERR_INVALID_ARGUMENT, "%s", posting->why);
        refuse(posted, &why);
    } else if (posted->changed) {
        look(posted);
    }
}

static void on_sent(struct posting *posting, const struct err *failed, void *ctx) {
    struct posted_answer *posted = ctx;
    posting->on_done = on_answer;
    if (failed && failed->code != ERR_OUTCOME_UNKNOWN && !posted->ended) {
        struct err why = *failed;
        posted->asking = false;
        refuse(posted, &why);
        return;
    }
    on_answer(posting, NULL, posted);
}

static void on_late(void *ctx) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE,
            "the replica that has this run has not taken the answer; send it again");
    refuse(ctx, &why);
}

struct posted_answer *posted_answer_start(const struct posted_answer_options *options) {
    struct posted_answer *posted = MEM_NEW(struct posted_answer);
    struct store *store = session_table_store(options->sessions);
    posted->options = *options;
    struct posted_words *words = &posted->options.words;
    struct str *texts[] = {&words->text, &words->key, &words->key_user, &words->print};
    buf_keep_texts(&posted->texts, texts, ARRAY_LEN(texts));
    posted->posting = (struct posting){
        .words = *words, .number = session_table_number_posted(options->sessions), .on_done = on_sent, .ctx = posted};
    posted->watcher =
        changes_watch(store_changes(store), CHANGE_POSTED, options->loop, look, posted);
    timer_init(&posted->late, options->loop, on_late, posted);
    timer_start(&posted->late, session_table_wait_ms(options->sessions));
    posted->asking = true;
    posting_send(store, options->loop, &posted->posting);
    return posted;
}

void posted_answer_end(struct posted_answer *posted) {
    if (!posted) return;
    if (!posted->ended) stop(posted);
    if (!posted->asking) posted_answer_free(posted); /* else the store's answer does */
}
