#include "journal/journal.h"

#include "base/mem.h"
#include "base/pool.h"
#include "journal/inner.h"

#include <assert.h>

#define EVENT_MAX_BYTES (64 * MIB)

/* Wakes a reader. It outlives its cursor while a mail is on its way. It belongs to the reader's
 * loop, except `posted` and the link, which the journal's lock guards. */
struct waker {
    struct list link;
    struct loop *loop;
    bool posted;
    struct mail mail;
    struct task ring;
    struct cursor *cursor; /* NULL once closed */
};

struct cursor {
    struct journal *journal;
    struct chunk *chunk; /* holds a reference */
    size_t offset;
    uint64_t seq;        /* of the event before `offset` */
    uint64_t after;      /* events up to here are skipped */
    uint64_t read_bytes; /* of the journal's bytes, from the first on */
    bool paces;          /* it is the journal's pacer, on the owner's loop */
    cursor_ready_fn *on_ready;
    void *ctx;
    struct waker *waker;
};

/* What each turn needs one of, by far the most often. */
#define SPARES 256
static _Thread_local struct pool journals = POOL(sizeof(struct journal), SPARES);
static _Thread_local struct pool cursors = POOL(sizeof(struct cursor), SPARES);
static _Thread_local struct pool wakers = POOL(sizeof(struct waker), SPARES);

static void journal_publish(void *ctx);

/* --- life --------------------------------------------------------------------------------- */

struct journal *journal_new(const struct journal_options *options) {
    struct journal *journal = pool_zero(&journals);
    atomic_init(&journal->refs, 1);
    journal->options = *options;
    journal->in_memory = options->keeper == NULL;
    journal->oldest = journal->tail = chunk_new(options->after_seq + 1, 0, CHUNK_BYTES);
    journal->appended = options->after_seq;
    atomic_init(&journal->visible, options->after_seq);
    atomic_init(&journal->durable, options->after_seq);
    journal->window_bytes = journal->tail->room;
    journal->kept =
        (struct journal_position){.chunk = journal->tail, .seq = options->after_seq};
    list_init(&journal->link);
    list_init(&journal->wakers);
    pthread_mutex_init(&journal->lock, NULL);
    task_init(&journal->publish, journal_publish, journal);
    return journal;
}

struct journal *journal_ref(struct journal *journal) {
    atomic_fetch_add_explicit(&journal->refs, 1, memory_order_relaxed);
    return journal;
}

void journal_unref(struct journal *journal) {
    if (!journal) return;
    if (atomic_fetch_sub_explicit(&journal->refs, 1, memory_order_acq_rel) != 1) return;
    assert(list_empty(&journal->wakers) && !list_linked(&journal->publish.link));
    chunk_unref(journal->oldest);
    chunk_unref(journal->dropped);
    pthread_mutex_destroy(&journal->lock);
    pool_give(&journals, journal);
}

bool journal_is_shared(const struct journal *journal) {
    return atomic_load_explicit(&journal->refs, memory_order_acquire) > 1;
}

void journal_leave(struct journal *journal) {
    journal->options.on_durable = NULL;
    journal->options.on_lost = NULL;
    journal->options.on_pace = NULL;
}

uint64_t journal_appended(const struct journal *journal) {
    return journal->appended;
}

uint64_t journal_visible(const struct journal *journal) {
    return atomic_load_explicit(&journal->visible, memory_order_acquire);
}

uint64_t journal_durable(const struct journal *journal) {
    return atomic_load_explicit(&journal->durable, memory_order_acquire);
}

uint64_t journal_run(const struct journal *journal) {
    return journal->options.run;
}

/* --- appending ---------------------------------------------------------------------------- */

/* Publishing waits for the end of the turn; the task holds the journal until then. */
static void publish_soon(struct journal *journal) {
    if (list_linked(&journal->publish.link)) return;
    journal_ref(journal);
    loop_defer(journal->options.loop, &journal->publish);
}

/* The room of a chunk that begins with an event of `len` bytes; `more` bytes of text follow it. A
 * reply of some 4 KiB is nearly always the last event: a block of a usual size costs less. */
static size_t chunk_room(size_t len, size_t more) {
    if (len > 4 * KIB && len <= CHUNK_BURST_BYTES) return CHUNK_BURST_BYTES;
    if (len > CHUNK_SHARED_BYTES) return len;
    if (more > CHUNK_DOUBLE_BYTES) return CHUNK_BURST_BYTES;
    return more > CHUNK_BYTES ? CHUNK_DOUBLE_BYTES : CHUNK_BYTES;
}

static struct chunk *room_for(struct journal *journal, size_t len, size_t more) {
    struct chunk *tail = journal->tail;
    if (len <= tail->room - tail->used) return tail;
    struct chunk *next =
        chunk_new(journal->appended + 1, journal->appended_bytes, chunk_room(len, more));
    journal->window_bytes += next->room;
    journal->tail = next;
    atomic_store_explicit(&tail->next, next, memory_order_release);
    return next;
}

uint64_t journal_append(struct journal *journal, const struct event *event) {
    assert(!journal->ended);
    size_t body, len = event_encoded_len(event, &body);
    assert(len <= EVENT_MAX_BYTES);
    struct chunk *chunk = room_for(journal, len, 0);
    event_put(event, body, chunk->bytes + chunk->used);
    uint64_t seq = ++journal->appended;
    chunk->used += len;
    chunk->last_seq = seq;
    journal->appended_bytes += len;
    journal->ended = event_is_terminal(event->kind);
    if (!journal->in_memory) {
        bool urgent = event_needs_disk(event->kind);
        if (urgent && !journal->gate) journal->gate = seq;
        if (urgent) journal->last_gate = seq;
        /* A session is read back without the shared rows, and it must find its results and
         * its summaries. */
        bool own = event->kind == EVENT_TOOL_RESULT || event->kind == EVENT_ITEM;
        if (own) journal->last_own = seq;
        keeper_note(journal->options.keeper, journal, urgent, len);
    }
    publish_soon(journal);
    return seq;
}

/* The bytes of the first of `texts`, encoded. */
static size_t first_text_len(const struct event_texts *texts) {
    size_t body;
    struct event event;
    event.kind = EVENT_TEXT;
    event.agent = texts->agent;
    event.at_ms = texts->at_ms;
    event.text.text = str_head(texts->text, *texts->lens);
    return event_encoded_len(&event, &body);
}

uint64_t journal_append_texts(struct journal *journal, struct event_texts *texts) {
    assert(!journal->ended && texts->count);
    uint64_t first = journal->appended + 1;
    size_t bytes = 0;
    struct chunk *chunk = journal->tail;
    while (texts->count) {
        size_t count = texts->count;
        size_t len =
            event_put_texts(texts, chunk->bytes + chunk->used, chunk->room - chunk->used);
        if (len == 0) {
            len = first_text_len(texts);
            assert(len <= EVENT_MAX_BYTES);
            chunk = room_for(journal, len, texts->text.len);
            continue;
        }
        journal->appended += count - texts->count;
        journal->appended_bytes += len;
        chunk->used += len;
        chunk->last_seq = journal->appended;
        bytes += len;
    }
    if (!journal->in_memory) keeper_note(journal->options.keeper, journal, false, bytes);
    publish_soon(journal);
    return first;
}

void journal_hurry(struct journal *journal) {
    if (!journal->in_memory) keeper_note(journal->options.keeper, journal, true, 0);
}

void journal_gate(struct journal *journal) {
    if (journal->in_memory) return;
    assert(journal_visible(journal) < journal->appended);
    if (!journal->gate) journal->gate = journal->appended;
    journal->last_gate = journal->asked_gate = journal->appended;
    keeper_note(journal->options.keeper, journal, true, 0);
}

/* --- publishing --------------------------------------------------------------------------- */

static void ring(struct waker *waker);
static void ring_mail(void *ctx);

/* Whether the oldest chunk is beyond the window, and `safe` after it. */
static bool oldest_is_over(const struct journal *journal, uint64_t safe) {
    const struct chunk *oldest = journal->oldest;
    return journal->window_bytes > journal->options.window_max_bytes &&
           oldest->last_seq <= safe &&
           atomic_load_explicit(&oldest->next, memory_order_relaxed) != NULL;
}

/* Forget the oldest chunks that are beyond the window and on disk. */
static void trim_window(struct journal *journal) {
    uint64_t safe = journal->in_memory ? journal_visible(journal) : journal_durable(journal);
    if (!oldest_is_over(journal, safe)) return;
    pthread_mutex_lock(&journal->lock);
    while (oldest_is_over(journal, safe)) {
        struct chunk *oldest = journal->oldest;
        struct chunk *next = atomic_load_explicit(&oldest->next, memory_order_relaxed);
        if (journal->kept.chunk == oldest) {
            bool written = journal->in_memory || journal->kept.offset == oldest->used;
            if (!written) break;
            journal->kept = (struct journal_position){next, 0, oldest->last_seq};
        }
        journal->window_bytes -= oldest->room;
        journal->oldest = chunk_ref(next);
        chunk_unref(oldest);
    }
    pthread_mutex_unlock(&journal->lock);
}

static void ring_all(struct journal *journal) {
    pthread_mutex_lock(&journal->lock);
    LIST_EACH(&journal->wakers, link) {
        struct waker *waker = CONTAINER_OF(link, struct waker, link);
        if (waker->loop == journal->options.loop) {
            loop_defer(waker->loop, &waker->ring);
        } else if (!waker->posted) {
            waker->posted = true;
            loop_post(waker->loop, &waker->mail, ring_mail, waker);
        }
    }
    pthread_mutex_unlock(&journal->lock);
}

/* How far the source is ahead of the disk. */
static uint64_t unkept_bytes(const struct journal *journal) {
    const struct journal_position *kept = &journal->kept;
    return journal->appended_bytes - (kept->chunk->first_byte + kept->offset);
}

/* How far the source is ahead of its own reader; or of the disk, while there is no reader yet
 * because the first event waits for the disk. While memory is scarce the disk counts too: what
 * it does not have cannot be released. */
static uint64_t lag_of(const struct journal *journal) {
    const struct cursor *pacer = journal->pacer;
    bool waits = journal->gate && !pacer;
    bool disk = !journal->in_memory && (waits || mem_scarce());
    uint64_t of_reader = pacer ? journal->appended_bytes - pacer->read_bytes : 0;
    uint64_t of_disk = disk ? unkept_bytes(journal) : 0;
    return of_reader > of_disk ? of_reader : of_disk;
}

/* Stop the source when it is too far ahead, and let it go on when the others caught up. */
static void regulate(struct journal *journal) {
    size_t max_bytes = journal->options.pace_max_bytes;
    uint64_t lag = lag_of(journal);
    bool hold = lag > 0 && lag >= (journal->held ? max_bytes / 2 : max_bytes);
    if (hold == journal->held) return;
    journal->held = hold;
    if (journal->options.on_pace) journal->options.on_pace(hold, journal->options.ctx);
}

static void journal_publish(void *ctx) {
    struct journal *journal = ctx;
    uint64_t visible = journal->gate ? journal->gate - 1 : journal->appended;
    if (visible > journal_visible(journal)) {
        atomic_store_explicit(&journal->visible, visible, memory_order_release);
        ring_all(journal);
    }
    regulate(journal);
    trim_window(journal);
    journal_unref(journal);
}

/* --- the disk ----------------------------------------------------------------------------- */

/* Move `position` past the event `seq`, which is in the journal. */
static void walk_to(struct journal_position *position, uint64_t seq) {
    while (position->seq < seq) {
        struct chunk *next = atomic_load_explicit(&position->chunk->next, memory_order_relaxed);
        if (position->offset == position->chunk->used && next) {
            *position = (struct journal_position){next, 0, position->seq};
            continue;
        }
        struct str rest = str_of(position->chunk->bytes + position->offset,
                                 position->chunk->used - position->offset);
        struct event event = {0};
        struct err e;
        bool whole = event_decode(&rest, &event, &e);
        assert(whole);
        (void)whole;
        position->offset = position->chunk->used - rest.len;
        position->seq++;
    }
}

/* The first event that needs the disk after what is on disk, or 0. */
static uint64_t next_gate(const struct journal *journal) {
    if (journal->last_gate <= journal->kept.seq) return 0;
    if (journal->asked_gate > journal->kept.seq)
        return journal->kept.seq + 1; /* the kind alone does not show it */
    struct journal_position position = journal->kept;
    for (;;) {
        while (position.offset == position.chunk->used) {
            position = (struct journal_position){
                atomic_load_explicit(&position.chunk->next, memory_order_relaxed), 0,
                position.seq};
        }
        enum event_kind kind =
            (enum event_kind)(unsigned char)position.chunk->bytes[position.offset];
        walk_to(&position, position.seq + 1);
        if (event_needs_disk(kind)) return position.seq;
    }
}

void journal_kept(struct journal *journal, struct journal_position position) {
    journal->kept = position;
    journal->gate = next_gate(journal);
    atomic_store_explicit(&journal->durable, position.seq, memory_order_release);
    publish_soon(journal);
    if (journal->options.on_durable) {
        journal->options.on_durable(position.seq, journal->options.ctx);
    }
}

void journal_lost(struct journal *journal, const struct err *why) {
    if (journal->options.on_lost) {
        journal->options.on_lost(why, journal->options.ctx);
    } else {
        journal_retract(journal); /* no owner is left to append anything else */
    }
}

uint64_t journal_retract(struct journal *journal) {
    if (journal->in_memory) return journal->appended;
    uint64_t visible = journal_visible(journal);
    uint64_t stays = journal->gate ? journal->gate - 1 : journal->appended;
    if (stays < visible) stays = visible;
    struct journal_position end = journal->kept;
    walk_to(&end, stays);
    pthread_mutex_lock(&journal->lock);
    /* A reader may have taken `next` already, to see that it need not go there yet. */
    journal->dropped = atomic_exchange(&end.chunk->next, NULL);
    for (struct chunk *chunk = journal->dropped; chunk; chunk = atomic_load(&chunk->next)) {
        journal->window_bytes -= chunk->room;
    }
    journal->tail = end.chunk;
    end.chunk->used = end.offset;
    end.chunk->last_seq = end.offset ? end.seq : 0;
    pthread_mutex_unlock(&journal->lock);
    journal->appended = stays;
    journal->appended_bytes = end.chunk->first_byte + end.offset;
    journal->ended = false;
    journal->gate = journal->last_gate = journal->asked_gate = 0;
    keeper_forget(journal->options.keeper, journal);
    journal->in_memory = true;
    publish_soon(journal);
    return stays;
}

/* --- cursors ------------------------------------------------------------------------------ */

static void ring(struct waker *waker) {
    struct cursor *cursor = waker->cursor;
    if (cursor && cursor->on_ready) cursor->on_ready(cursor->ctx);
}

static void ring_here(void *ctx) {
    ring(ctx);
}

static void ring_mail(void *ctx) {
    struct waker *waker = ctx;
    if (!waker->cursor) {
        pool_give(&wakers, waker);
        return;
    }
    struct journal *journal = waker->cursor->journal;
    pthread_mutex_lock(&journal->lock);
    waker->posted = false;
    pthread_mutex_unlock(&journal->lock);
    loop_defer(waker->loop, &waker->ring);
}

bool cursor_open(struct journal *journal, uint64_t after_seq, struct loop *loop,
                 cursor_ready_fn *on_ready, void *ctx, struct cursor **ret, struct err *e) {
    pthread_mutex_lock(&journal->lock);
    struct chunk *chunk = journal->oldest;
    if (after_seq < chunk->first_seq - 1) {
        uint64_t oldest = chunk->first_seq;
        pthread_mutex_unlock(&journal->lock);
        return err_set(e, ERR_OUT_OF_RANGE,
                       "event %llu has left the window, which begins at %llu; read it from the "
                       "store",
                       (unsigned long long)after_seq + 1, (unsigned long long)oldest);
    }
    /* Never past what is visible: the rest may still be retracted. */
    uint64_t visible = journal_visible(journal);
    struct chunk *next;
    while ((next = atomic_load_explicit(&chunk->next, memory_order_acquire)) &&
           next->first_seq <= after_seq && next->first_seq <= visible) {
        chunk = next;
    }
    struct cursor *cursor = pool_zero(&cursors);
    struct waker *waker = pool_zero(&wakers);
    *waker = (struct waker){.loop = loop, .cursor = cursor};
    task_init(&waker->ring, ring_here, waker);
    *cursor = (struct cursor){.journal = journal_ref(journal),
                              .chunk = chunk_ref(chunk),
                              .seq = chunk->first_seq - 1,
                              .after = after_seq,
                              .read_bytes = chunk->first_byte,
                              .on_ready = on_ready,
                              .ctx = ctx,
                              .waker = waker};
    list_append(&journal->wakers, &waker->link);
    if (on_ready) journal->readers++;
    pthread_mutex_unlock(&journal->lock);
    if (journal_visible(journal) > after_seq) loop_defer(loop, &waker->ring);
    *ret = cursor;
    return true;
}

void cursor_close(struct cursor *cursor) {
    if (!cursor) return;
    struct journal *journal = cursor->journal;
    struct waker *waker = cursor->waker;
    pthread_mutex_lock(&journal->lock);
    list_remove(&waker->link);
    if (cursor->on_ready) {
        journal->readers--;
        journal->left_ms = loop_now_ms(waker->loop);
    }
    bool posted = waker->posted;
    pthread_mutex_unlock(&journal->lock);
    task_cancel(&waker->ring);
    waker->cursor = NULL;
    if (!posted) pool_give(&wakers, waker);
    if (cursor->paces) {
        journal->pacer = NULL;
        publish_soon(journal);
    }
    chunk_unref(cursor->chunk);
    journal_unref(journal);
    pool_give(&cursors, cursor);
}

size_t journal_readers(struct journal *journal, uint64_t *ret_left_ms) {
    pthread_mutex_lock(&journal->lock);
    size_t readers = journal->readers;
    *ret_left_ms = journal->left_ms;
    pthread_mutex_unlock(&journal->lock);
    return readers;
}

/* The bytes from the next event on, which is visible; what follows it may not be. */
static inline struct str cursor_rest(struct cursor *cursor) {
    struct chunk *next;
    while ((next = atomic_load_explicit(&cursor->chunk->next, memory_order_acquire)) &&
           cursor->seq + 1 >= next->first_seq) {
        chunk_ref(next);
        chunk_unref(cursor->chunk);
        cursor->chunk = next;
        cursor->offset = 0;
    }
    return str_of(cursor->chunk->bytes + cursor->offset, cursor->chunk->room - cursor->offset);
}

static inline void cursor_move(struct cursor *cursor, size_t count, size_t bytes) {
    struct journal *journal = cursor->journal;
    cursor->seq += count;
    cursor->offset += bytes;
    cursor->read_bytes += bytes;
    if (cursor->paces && journal->held) publish_soon(journal);
}

bool cursor_next(struct cursor *cursor, struct event *ret) {
    uint64_t visible = journal_visible(cursor->journal);
    struct err e;
    do {
        if (cursor->seq >= visible) return false;
        struct str bytes = cursor_rest(cursor), rest = bytes;
        ret->seq = cursor->seq + 1;
        bool whole = event_decode(&rest, ret, &e);
        assert(whole);
        (void)whole;
        cursor_move(cursor, 1, bytes.len - rest.len);
    } while (cursor->seq <= cursor->after); /* one to be skipped */
    return true;
}

/* The last event up to `visible` that is in the cursor's chunk. Bytes after a chunk's last event
 * are of no event: they may be what another journal wrote there. */
static inline uint64_t last_here(const struct cursor *cursor, uint64_t visible) {
    struct chunk *next = atomic_load_explicit(&cursor->chunk->next, memory_order_acquire);
    return next && next->first_seq <= visible ? next->first_seq - 1 : visible;
}

struct str cursor_texts(struct cursor *cursor, size_t max_bytes, size_t *ret_count) {
    uint64_t visible = journal_visible(cursor->journal);
    *ret_count = 0;
    if (cursor->seq >= visible || cursor->seq < cursor->after) return STR_EMPTY;
    struct str bytes = cursor_rest(cursor), rest = str_head(bytes, max_bytes);
    *ret_count = event_skip_texts(&rest, (size_t)(last_here(cursor, visible) - cursor->seq));
    if (*ret_count == 0) { /* no text, or one that is longer than asked for */
        rest = bytes;
        *ret_count = event_skip_texts(&rest, 1);
    }
    bytes.len = (size_t)(rest.at - bytes.at);
    if (*ret_count) cursor_move(cursor, *ret_count, bytes.len);
    return bytes;
}

bool cursor_is_at_end(const struct cursor *cursor) {
    return cursor->seq >= journal_visible(cursor->journal);
}

uint64_t cursor_seq(const struct cursor *cursor) {
    return cursor->seq > cursor->after ? cursor->seq : cursor->after;
}

void cursor_pace(struct cursor *cursor) {
    struct journal *journal = cursor->journal;
    assert(!journal->pacer && cursor->waker->loop == journal->options.loop);
    journal->pacer = cursor;
    cursor->paces = true;
    publish_soon(journal);
}
