#include "journal/feed.h"

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define WINDOW_BYTES (256 * KIB) /* there are no late readers */
#define TYPE_MAX_BYTES 256

struct feed {
    struct feed_options options;
    struct journal *journal;
    struct buf type, bytes; /* the waiting bytes and their type; one type at a time */
    size_t fed_bytes;       /* of `bytes`, already in the journal */
    uint64_t begun_ms;
    bool held;
    struct task go_on;
};

static bool waits(const struct feed *feed) {
    return feed->fed_bytes < feed->bytes.len;
}

bool feed_is_empty(const struct feed *feed) {
    return !waits(feed);
}

static void feed_drop(struct feed *feed) {
    task_cancel(&feed->go_on);
    buf_release(&feed->bytes);
    feed->fed_bytes = 0;
}

static void append_timed(struct feed *feed, const struct event *event) {
    struct event timed = *event;
    timed.at_ms = (int64_t)(loop_now_ms(feed->options.loop) - feed->begun_ms);
    journal_append(feed->journal, &timed);
}

/* Append one piece per task. The journal publishes in between, so the effect on the reader's
 * lag is known before the next piece. */
static void feed_go_on(void *ctx) {
    struct feed *feed = ctx;
    if (feed->held || !waits(feed)) return;
    struct str piece =
        str_head(str_skip(buf_str(&feed->bytes), feed->fed_bytes), FEED_PIECE_BYTES);
    append_timed(feed,
                 &(struct event){.kind = EVENT_AUDIO, .audio = {buf_str(&feed->type), piece}});
    feed->fed_bytes += piece.len;
    if (waits(feed)) {
        loop_defer(feed->options.loop, &feed->go_on);
    } else {
        feed_drop(feed);
        if (feed->options.on_empty) feed->options.on_empty(feed->options.ctx);
    }
}

static void on_pace(bool hold, void *ctx) {
    struct feed *feed = ctx;
    feed->held = hold;
    if (!hold && waits(feed)) loop_defer(feed->options.loop, &feed->go_on);
}

struct feed *feed_new(const struct feed_options *options) {
    struct feed *feed = MEM_NEW(struct feed);
    feed->options = *options;
    feed->begun_ms = loop_now_ms(options->loop);
    feed->journal =
        journal_new(&(struct journal_options){.loop = options->loop,
                                              .window_max_bytes = WINDOW_BYTES,
                                              .pace_max_bytes = options->pace_max_bytes,
                                              .on_pace = on_pace,
                                              .ctx = feed});
    buf_init(&feed->type, TYPE_MAX_BYTES);
    buf_init(&feed->bytes, options->put_max_bytes);
    task_init(&feed->go_on, feed_go_on, feed);
    return feed;
}

void feed_free(struct feed *feed) {
    if (!feed) return;
    feed_drop(feed);
    buf_done(&feed->type);
    buf_done(&feed->bytes);
    journal_leave(feed->journal);
    journal_unref(feed->journal);
    free(feed);
}

struct journal *feed_journal(const struct feed *feed) {
    return feed->journal;
}

bool feed_put(struct feed *feed, struct str type, struct str bytes, struct err *e) {
    assert(!waits(feed) || str_equal(type, buf_str(&feed->type)));
    if (!buf_append(&feed->bytes, bytes)) {
        buf_clear(&feed->bytes);
        feed->fed_bytes = 0;
        return err_set(e, ERR_TOO_LARGE, "more than %zu bytes would wait for their reader",
                       feed->options.put_max_bytes);
    }
    buf_clear(&feed->type);
    buf_append(&feed->type, str_head(type, TYPE_MAX_BYTES));
    if (waits(feed)) loop_defer(feed->options.loop, &feed->go_on);
    return true;
}

void feed_append(struct feed *feed, const struct event *event) {
    if (event_is_terminal(event->kind)) feed_drop(feed);
    append_timed(feed, event);
}
