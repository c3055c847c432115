#include "run/recover.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct recovery {
    struct store *store;
    struct loop *loop;
    recovered_fn *done;
    void *ctx;
    struct store_load load;
    struct store_write write;
};

static void finish(struct recovery *recovery, const struct err *failed) {
    size_t count = recovery->write.row_count;
    struct err why;
    if (failed) why = *failed;
    for (size_t i = 0; i < count; i++) buf_done(&recovery->write.rows[i].bytes);
    free(recovery->write.rows);
    arena_free(recovery->load.arena);
    recovered_fn *done = recovery->done;
    void *ctx = recovery->ctx;
    free(recovery);
    done(failed ? 0 : count, failed ? &why : NULL, ctx);
}

static void on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    finish(ctx, failed);
}

static void append_interrupted(struct store_row *row, uint64_t run, uint64_t seq) {
    struct event event = {
        .kind = EVENT_FAILED,
        .agent = STR_EMPTY,
        .failed = {ERR_ABORTED, STR_INIT("INTERRUPTED"),
                   STR_INIT("the server stopped while this turn was running; ask again")}};
    struct buf bytes;
    buf_init(&bytes, 4 * KIB);
    buf_init(&row->bytes, 8 * KIB);
    row->run = run;
    bool fits = event_encode(&event, &bytes) &&
                store_section_append(&row->bytes, run, seq, buf_str(&bytes));
    assert(fits);
    (void)fits;
    buf_done(&bytes);
}

static void on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct recovery *recovery = ctx;
    if (failed || load->section_count == 0) {
        finish(recovery, failed);
        return;
    }
    struct store_write *write = &recovery->write;
    *write = (struct store_write){
        .rows = mem_zero(load->section_count, sizeof(struct store_row)),
        .row_count = load->section_count,
        .home = recovery->loop,
        .on_written = on_written,
        .ctx = recovery,
    };
    for (size_t i = 0; i < load->section_count; i++) {
        append_interrupted(&write->rows[i], load->sections[i].run,
                           load->sections[i].first_seq + 1);
    }
    store_write(recovery->store, write);
}

void recover_start(struct store *store, struct loop *loop, recovered_fn *done, void *ctx) {
    struct recovery *recovery = MEM_NEW(struct recovery);
    *recovery = (struct recovery){.store = store, .loop = loop, .done = done, .ctx = ctx};
    recovery->load = (struct store_load){.question = STORE_UNFINISHED,
                                         .max_bytes = SIZE_MAX,
                                         .home = loop,
                                         .on_loaded = on_loaded,
                                         .ctx = recovery};
    store_load(store, &recovery->load);
}
