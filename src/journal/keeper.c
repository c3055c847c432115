#include "journal/keeper.h"

#include "base/mem.h"
#include "journal/inner.h"

#include <assert.h>
#include <stdlib.h>

#define ROW_MAX_BYTES (256 * MIB) /* a row holds at least one whole stretch */
/* Reading a run back reads all rows with text of it, so shared rows stay small. */
#define SHARED_MAX_BYTES (16 * KIB) /* a shared row of this size takes no more */
#define ALONE_BYTES (4 * KIB)       /* so much text of one run has a row to itself */

struct keeper {
    struct loop *loop;
    struct store *store;
    struct list urgent; /* journals that readers wait for */
    struct list dirty;  /* journals with something to write, at the tick */
    size_t dirty_bytes; /* since the last tick */
    struct timer tick;
    struct task send;
    bool send_all; /* the next send takes the dirty ones too */
    size_t on_their_way;
    size_t expected; /* events that a flush waits for */
    task_fn *on_kept;
    void *on_kept_ctx;
};

/* One journal's part of a write. */
struct stretch {
    struct journal *journal;     /* holds a reference */
    struct journal_position end; /* up to here, once it is written */
};

struct batch {
    struct store_write write;
    struct keeper *keeper;
    struct stretch *stretches;
    size_t stretch_count;
};

static void send(void *ctx);
static void on_tick(void *ctx);

struct keeper *keeper_new(struct loop *loop, struct store *store) {
    struct keeper *keeper = MEM_NEW(struct keeper);
    keeper->loop = loop;
    keeper->store = store;
    list_init(&keeper->urgent);
    list_init(&keeper->dirty);
    timer_init(&keeper->tick, loop, on_tick, keeper);
    task_init(&keeper->send, send, keeper);
    return keeper;
}

void keeper_free(struct keeper *keeper) {
    if (!keeper) return;
    assert(keeper->on_their_way == 0 && keeper->expected == 0);
    assert(list_empty(&keeper->urgent));
    assert(list_empty(&keeper->dirty));
    timer_stop(&keeper->tick);
    task_cancel(&keeper->send);
    free(keeper);
}

/* --- what waits --------------------------------------------------------------------------- */

/* Being in a list holds the journal. */
static void keeper_join(struct list *list, struct journal *journal) {
    if (list_linked(&journal->link)) {
        list_remove(&journal->link);
    } else {
        journal_ref(journal);
    }
    list_append(list, &journal->link);
}

static void keeper_leave(struct journal *journal) {
    if (!list_linked(&journal->link)) return;
    list_remove(&journal->link);
    journal_unref(journal);
}

void keeper_note(struct keeper *keeper, struct journal *journal, bool urgent, size_t bytes) {
    if (urgent) {
        keeper_join(&keeper->urgent, journal);
        loop_defer(keeper->loop, &keeper->send);
        return;
    }
    if (!list_linked(&journal->link)) keeper_join(&keeper->dirty, journal);
    keeper->dirty_bytes += bytes;
    if (keeper->dirty_bytes >= KEEPER_TICK_BYTES) {
        keeper->send_all = true;
        loop_defer(keeper->loop, &keeper->send);
    } else if (!timer_waits(&keeper->tick)) {
        timer_start(&keeper->tick, KEEPER_TICK_MS);
    }
}

void keeper_forget(struct keeper *keeper, struct journal *journal) {
    (void)keeper;
    keeper_leave(journal);
}

static void on_tick(void *ctx) {
    struct keeper *keeper = ctx;
    keeper->send_all = true;
    loop_defer(keeper->loop, &keeper->send);
}

/* --- sending ------------------------------------------------------------------------------ */

static uint64_t unwritten_bytes(const struct journal *journal) {
    return journal->appended_bytes - journal->kept.chunk->first_byte - journal->kept.offset;
}

#define SECTION_BYTES (64 * KIB) /* a section of this size takes no more chunks */
#define SECTION_HEAD_BYTES 64    /* more than one takes */

/* How many bytes the next section has: those of one or more chunks from `from` on. */
static size_t section_len(struct journal_position from) {
    size_t len = 0;
    for (struct chunk *chunk = from.chunk; chunk && len < SECTION_BYTES;
         chunk = atomic_load_explicit(&chunk->next, memory_order_relaxed)) {
        len += chunk->used - from.offset;
        from.offset = 0;
    }
    return len;
}

/* Append everything of `journal` that is not on disk; returns where that ends. */
static struct journal_position pack(struct journal *journal, struct buf *row) {
    struct journal_position position = journal->kept;
    size_t left = 0; /* of the section that was begun */
    bool fits = true;
    buf_room(row, unwritten_bytes(journal) + SECTION_HEAD_BYTES); /* it need not grow again */
    for (;;) {
        struct chunk *chunk = position.chunk;
        size_t len = chunk->used - position.offset;
        if (len && !left) {
            left = section_len(position);
            fits = store_section_begin(row, journal->options.run, position.seq + 1, left);
        }
        if (len) {
            fits = fits && buf_append(row, str_of(chunk->bytes + position.offset, len));
            left -= len;
            position.seq = chunk->last_seq;
            position.offset = chunk->used;
        }
        assert(fits);
        struct chunk *next = atomic_load_explicit(&chunk->next, memory_order_relaxed);
        if (!next) return position;
        position = (struct journal_position){next, 0, position.seq};
    }
}

static struct store_row *new_row(struct batch *batch, uint64_t run) {
    struct store_row *row = &batch->write.rows[batch->write.row_count++];
    row->run = run;
    buf_init(&row->bytes, ROW_MAX_BYTES);
    return row;
}

/* A first row, a row that the owner waits for, or one that the session's history needs. */
static bool needs_own_row(const struct journal *journal) {
    return journal->kept.seq == 0 || journal->gate != 0 ||
           journal->last_own > journal->kept.seq;
}

static struct store_row *row_for_text(struct batch *batch, const struct journal *journal,
                                      struct store_row **shared) {
    if (unwritten_bytes(journal) >= ALONE_BYTES) return new_row(batch, 0);
    if (*shared && (*shared)->bytes.len >= SHARED_MAX_BYTES) *shared = NULL;
    if (!*shared) *shared = new_row(batch, 0);
    return *shared;
}

/* Take the journals of `list` that have no write on its way; plain text shares rows. */
static void keeper_take(struct batch *batch, struct list *list, struct store_row **shared) {
    LIST_EACH(list, link) {
        struct journal *journal = CONTAINER_OF(link, struct journal, link);
        if (journal->writing) continue;
        bool own = needs_own_row(journal);
        struct store_row *row =
            own ? new_row(batch, journal->options.run) : row_for_text(batch, journal, shared);
        journal->writing = true;
        batch->stretches[batch->stretch_count++] =
            (struct stretch){journal_ref(journal), pack(journal, &row->bytes)};
        keeper_leave(journal);
    }
}

static size_t keeper_count(const struct list *list) {
    size_t links = 0;
    for (const struct list *link = list->next; link != list; link = link->next) links++;
    return links;
}

static void free_batch(struct batch *batch) {
    for (size_t i = 0; i < batch->write.row_count; i++) buf_done(&batch->write.rows[i].bytes);
    free(batch->write.rows);
    free(batch->stretches);
    free(batch);
}

static bool at_rest(const struct keeper *keeper) {
    return !keeper->on_their_way && !keeper->expected && list_empty(&keeper->urgent) &&
           list_empty(&keeper->dirty);
}

static void keeper_settle(struct keeper *keeper) {
    if (!at_rest(keeper)) return;
    task_fn *on_kept = keeper->on_kept;
    keeper->on_kept = NULL;
    if (on_kept) on_kept(keeper->on_kept_ctx);
}

static void keeper_on_written(struct store_write *write, const struct err *failed, void *ctx) {
    struct batch *batch = ctx;
    struct keeper *keeper = batch->keeper;
    (void)write;
    keeper->on_their_way--;
    for (size_t i = 0; i < batch->stretch_count; i++) {
        struct journal *journal = batch->stretches[i].journal;
        journal->writing = false;
        bool waited_for = journal->gate != 0 && journal->gate <= batch->stretches[i].end.seq;
        if (journal->in_memory) {
            /* retracted meanwhile */
        } else if (!failed) {
            journal_kept(journal, batch->stretches[i].end);
        } else if (waited_for || keeper->on_kept /* a flush tries once */ ||
                   failed->code == ERR_OUTCOME_UNKNOWN) { /* it may be there already */
            journal_lost(journal, failed);
        } else {
            keeper_note(keeper, journal, false, 0); /* text: try again at the next tick */
        }
        if (list_linked(&journal->link)) loop_defer(keeper->loop, &keeper->send);
        if (keeper->on_kept) keeper->send_all = true;
        journal_unref(journal);
    }
    free_batch(batch);
    keeper_settle(keeper);
}

static void send(void *ctx) {
    struct keeper *keeper = ctx;
    size_t waiting = keeper_count(&keeper->urgent);
    if (keeper->send_all) waiting += keeper_count(&keeper->dirty);
    struct batch *batch = MEM_NEW(struct batch);
    batch->keeper = keeper;
    batch->stretches = mem_zero(waiting, sizeof(struct stretch));
    batch->write = (struct store_write){.rows = mem_zero(waiting + 1, sizeof(struct store_row)),
                                        .home = keeper->loop,
                                        .on_written = keeper_on_written,
                                        .ctx = batch};
    struct store_row *shared = NULL;
    keeper_take(batch, &keeper->urgent, &shared);
    if (keeper->send_all) {
        keeper_take(batch, &keeper->dirty, &shared);
        keeper->send_all = false;
        keeper->dirty_bytes = 0;
        timer_stop(&keeper->tick);
        if (!list_empty(&keeper->dirty)) timer_start(&keeper->tick, KEEPER_TICK_MS);
    }
    if (batch->stretch_count == 0) {
        free_batch(batch);
        keeper_settle(keeper);
        return;
    }
    keeper->on_their_way++;
    store_write(keeper->store, &batch->write);
}

void keeper_flush(struct keeper *keeper, task_fn *on_kept, void *ctx) {
    assert(!keeper->on_kept);
    keeper->on_kept = on_kept;
    keeper->on_kept_ctx = ctx;
    keeper->send_all = true;
    loop_defer(keeper->loop, &keeper->send);
}

void keeper_expect(struct keeper *keeper) {
    keeper->expected++;
}

void keeper_expect_no_more(struct keeper *keeper) {
    assert(keeper->expected > 0);
    if (--keeper->expected == 0 && keeper->on_kept) loop_defer(keeper->loop, &keeper->send);
}
