/* The readers of one loop. Readers take turns: one gets at most TOPIC_TURN_BYTES, and after
 * TOPIC_PASS_TURNS of them the loop goes back to its sockets. The window of the loop follows the
 * topic's only when no reader waits for a turn, so a reader loses nothing while it waits. */
#include "base/mem.h"
#include "topic/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct state topic_reader_states[TOPIC_READER_STATE_COUNT] = {
    [TOPIC_READER_NEW] = {"new", TO(TOPIC_READER_READY) | TO(TOPIC_READER_OVER)},
    [TOPIC_READER_READY] = {"ready", TO(TOPIC_READER_IDLE) | TO(TOPIC_READER_FULL) |
                                         TO(TOPIC_READER_READY) | TO(TOPIC_READER_OVER)},
    [TOPIC_READER_IDLE] = {"idle", TO(TOPIC_READER_READY) | TO(TOPIC_READER_OVER)},
    [TOPIC_READER_FULL] = {"full", TO(TOPIC_READER_READY) | TO(TOPIC_READER_OVER)},
    [TOPIC_READER_OVER] = {"over", 0},
};

/* The only function that changes a reader's state, and the list that it is in. */
static void reader_move(struct topic_reader *reader, enum topic_reader_state next) {
    assert(states_allow(topic_reader_states, reader->state, next));
    struct topic_view *view = reader->view;
    struct list *const lists[TOPIC_READER_STATE_COUNT] = {
        [TOPIC_READER_READY] = &view->ready,
        [TOPIC_READER_IDLE] = &view->idle,
        [TOPIC_READER_FULL] = &view->full,
    };
    list_remove(&reader->link);
    reader->state = next;
    if (lists[next]) list_append(lists[next], &reader->link);
}

#define READER_OF(link_) CONTAINER_OF(link_, struct topic_reader, link)

/* --- the view ----------------------------------------------------------------------------- */

static void on_pass(void *ctx);

static void view_free(struct topic_view *view) {
    topic_log_done(&view->log);
    topic_unref(view->topic);
    free(view);
}

/* No reader is left. A mail on its way still needs the view, and so does a pass. */
static void view_release(struct topic_view *view) {
    struct topic *topic = view->topic;
    pthread_mutex_lock(&topic->lock);
    list_remove(&view->link);
    bool mailed = view->mailed;
    pthread_mutex_unlock(&topic->lock);
    task_cancel(&view->pass);
    timer_stop(&view->next_pass);
    if (!mailed && !view->passing) view_free(view);
}

static void view_pass_soon(struct topic_view *view) {
    if (!view->passing && !timer_waits(&view->next_pass)) loop_defer(view->loop, &view->pass);
}

static void view_on_mail(void *ctx) {
    struct topic_view *view = ctx;
    pthread_mutex_lock(&view->topic->lock);
    view->mailed = false;
    bool read = list_linked(&view->link);
    pthread_mutex_unlock(&view->topic->lock);
    if (!read) {
        view_free(view);
        return;
    }
    view->news = true;
    view_pass_soon(view);
}

void topic_views_tell(struct topic *topic) {
    LIST_EACH(&topic->views, link) {
        struct topic_view *view = CONTAINER_OF(link, struct topic_view, link);
        if (view->mailed) continue;
        view->mailed = true;
        loop_post(view->loop, &view->mail, view_on_mail, view);
    }
}

/* Nothing is dropped here. The topic's lock is held. */
static void view_learn(struct topic_view *view) {
    topic_log_follow(&view->log, &view->topic->log);
    view->ending = view->topic->ending;
}

static void view_follow(struct topic_view *view) {
    pthread_mutex_lock(&view->topic->lock);
    view_learn(view);
    pthread_mutex_unlock(&view->topic->lock);
}

static struct topic_view *view_new(struct topic *topic, struct loop *loop) {
    struct topic_view *view = MEM_NEW(struct topic_view);
    view->topic = topic_ref(topic);
    view->loop = loop;
    topic_log_init(&view->log, &topic->options);
    list_init(&view->link);
    list_init(&view->ready);
    list_init(&view->idle);
    list_init(&view->full);
    task_init(&view->pass, on_pass, view);
    timer_init(&view->next_pass, loop, on_pass, view);
    return view;
}

/* The view of this loop, up to date. */
static struct topic_view *view_get(struct topic *topic, struct loop *loop) {
    struct topic_view *found = NULL;
    pthread_mutex_lock(&topic->lock);
    LIST_EACH(&topic->views, link) {
        struct topic_view *view = CONTAINER_OF(link, struct topic_view, link);
        if (view->loop == loop) found = view;
    }
    if (!found) {
        found = view_new(topic, loop);
        list_append(&topic->views, &found->link);
    }
    view_learn(found);
    pthread_mutex_unlock(&topic->lock);
    return found;
}

/* --- a reader's turn ---------------------------------------------------------------------- */

static bool reader_is_lost(const struct topic_reader *reader) {
    const struct topic_log *log = &reader->view->log;
    return log->options->kind == TOPIC_EVENTS && reader->cursor < log->dropped;
}

static void reader_lose(struct topic_reader *reader) {
    reader_move(reader, TOPIC_READER_OVER);
    reader->wire->lost(reader->ctx);
}

static bool reader_wants(const struct topic_reader *reader, const struct topic_entry *entry) {
    if (entry->superseded && entry->frame->sequence <= reader->state_until) return false;
    return !reader->wire->wants ||
           reader->wire->wants(topic_frame_label(entry->frame), reader->ctx);
}

/* Move the cursor over what the reader does not want, and then over what it wants, up to a
 * turn's worth. *ret_from is the first of those; returns how many bytes they have. */
static size_t reader_choose(struct topic_reader *reader, size_t *ret_from, size_t *ret_to) {
    const struct topic_log *log = &reader->view->log;
    size_t at = topic_log_after(log, reader->cursor), bytes = 0;
    while (at < log->count && !reader_wants(reader, topic_log_entry(log, at))) at++;
    *ret_from = at;
    while (at < log->count && reader_wants(reader, topic_log_entry(log, at))) {
        size_t len = topic_log_entry(log, at)->frame->len;
        if (bytes && bytes + len > TOPIC_TURN_BYTES) break;
        bytes += len;
        at++;
    }
    *ret_to = at;
    return bytes;
}

static void reader_give(struct topic_reader *reader, size_t from, size_t to, size_t bytes) {
    const struct topic_log *log = &reader->view->log;
    char *room = reader->wire->room(bytes, reader->ctx);
    if (!room) return;
    for (size_t i = from; i < to; i++) {
        const struct topic_frame *frame = topic_log_entry(log, i)->frame;
        memcpy(room, frame->bytes, frame->len);
        room += frame->len;
    }
    reader->wire->put(bytes, reader->ctx);
}

/* Returns whether there is more for it. */
static bool reader_send(struct topic_reader *reader) {
    const struct topic_log *log = &reader->view->log;
    size_t from, to, bytes = reader_choose(reader, &from, &to);
    if (bytes) reader_give(reader, from, to, bytes);
    reader->cursor =
        to < log->count ? topic_log_entry(log, to)->frame->sequence - 1 : log->last;
    return to < log->count;
}

/* It has everything, and nothing follows. */
static void reader_finish(struct topic_reader *reader) {
    const struct topic_ending *ending = &reader->view->ending;
    reader_move(reader, TOPIC_READER_OVER);
    if (reader->wire->ended) reader->wire->ended(ending->code, ending->text, reader->ctx);
}

static void reader_take_turn(struct topic_reader *reader) {
    bool more = reader_send(reader);
    if (reader->wire->turned) reader->wire->turned(reader->cursor, reader->ctx);
    if (more || !reader->view->ending.over) {
        reader_move(reader, more ? TOPIC_READER_READY : TOPIC_READER_IDLE);
    } else {
        reader_finish(reader);
    }
}

static void reader_turn(struct topic_reader *reader) {
    if (reader_is_lost(reader)) {
        reader_lose(reader);
    } else if (reader->wire->queued(reader->ctx) >= TOPIC_HIGH_BYTES) {
        reader_move(reader, TOPIC_READER_FULL);
        reader->wire->wake_at(TOPIC_LOW_BYTES, reader->ctx);
    } else {
        reader_take_turn(reader);
    }
}

/* --- a pass ------------------------------------------------------------------------------- */

/* Forget what the topic has forgotten, and end the readers that needed it. No reader waits for
 * a turn. */
static void view_trim(struct topic_view *view) {
    uint64_t before = view->log.dropped;
    topic_log_trim(&view->log);
    if (view->log.dropped == before) return;
    LIST_EACH(&view->full, link) {
        if (reader_is_lost(READER_OF(link))) reader_lose(READER_OF(link));
    }
}

static void view_wake(struct topic_view *view) {
    LIST_EACH(&view->idle, link) READER_OF(link)->state = TOPIC_READER_READY;
    list_move(&view->idle, &view->ready);
}

/* Without readers, and with no mail on its way, nothing refers to the view any more. */
static void view_free_if_left(struct topic_view *view) {
    pthread_mutex_lock(&view->topic->lock);
    bool mailed = view->mailed;
    pthread_mutex_unlock(&view->topic->lock);
    if (!mailed) view_free(view);
}

static void on_pass(void *ctx) {
    struct topic_view *view = ctx;
    view->passing = true;
    if (list_empty(&view->ready) && view->news) {
        view->news = false;
        view_follow(view);
        view_wake(view);
    }
    for (size_t turns = 0; turns < TOPIC_PASS_TURNS && !list_empty(&view->ready); turns++)
        reader_turn(READER_OF(view->ready.next));
    if (list_empty(&view->ready)) view_trim(view);
    view->passing = false;
    if (view->reader_count == 0) {
        view_free_if_left(view);
    } else if (!list_empty(&view->ready) || view->news) {
        timer_start(&view->next_pass, 0);
    }
}

/* --- readers ------------------------------------------------------------------------------ */

static bool reader_place(struct topic_reader *reader, enum topic_start start, uint64_t after) {
    const struct topic_log *log = &reader->view->log;
    reader->state_until = 0;
    reader->cursor = log->last;
    if (start == TOPIC_LIVE) return true;
    reader->cursor = log->dropped;
    if (start == TOPIC_LATEST) {
        reader->cursor = 0;
        reader->state_until = log->last;
        return true;
    }
    if (after < log->dropped || after > log->last) return false;
    reader->cursor = after;
    return true;
}

bool topic_reader_start(struct topic_reader *reader, struct topic *topic, struct loop *loop,
                        enum topic_start start, uint64_t after, const struct topic_wire *wire,
                        void *ctx) {
    assert(start != TOPIC_LATEST || topic->options.kind == TOPIC_STATE);
    assert(reader->state == TOPIC_READER_NEW);
    reader->view = view_get(topic, loop);
    reader->wire = wire;
    reader->ctx = ctx;
    list_init(&reader->link);
    reader->view->reader_count++;
    bool reaches = reader_place(reader, start, after);
    reader_move(reader, TOPIC_READER_READY);
    view_pass_soon(reader->view);
    return reaches;
}

void topic_reader_flush(struct topic_reader *reader, size_t max_queued) {
    if (reader->state == TOPIC_READER_NEW || reader->state == TOPIC_READER_OVER) return;
    view_follow(reader->view);
    while (!reader_is_lost(reader) && reader->wire->queued(reader->ctx) < max_queued &&
           reader_send(reader)) {
    }
}

void topic_reader_drained(struct topic_reader *reader) {
    if (reader->state != TOPIC_READER_FULL) return;
    reader_move(reader, TOPIC_READER_READY);
    view_pass_soon(reader->view);
}

uint64_t topic_reader_cursor(const struct topic_reader *reader) {
    return reader->cursor;
}

void topic_reader_stop(struct topic_reader *reader) {
    struct topic_view *view = reader->view;
    if (!view) {
        reader->state = TOPIC_READER_OVER;
        return;
    }
    if (reader->state != TOPIC_READER_OVER) reader_move(reader, TOPIC_READER_OVER);
    reader->view = NULL;
    if (--view->reader_count == 0) view_release(view);
}
