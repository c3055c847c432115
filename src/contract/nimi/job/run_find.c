#include "contract/nimi/job/run_find.h"

#include "base/mem.h"
#include "session/directory.h"

#include <stdlib.h>

#define PIECE_MAX_BYTES (1 * MIB)

struct run_find {
    struct run_find_options options;
    struct task look;
    struct store_load load; /* while `loading` */
    size_t place;           /* where the last piece ended */
    bool loading, freed;
};

void run_find_free(struct run_find *find) {
    if (!find) return;
    task_cancel(&find->look);
    find->freed = true;
    if (!find->loading) free(find);
}

static void run_find_report(struct run_find *find, const struct err *failed) {
    run_found_fn *on_found = find->options.on_found;
    void *ctx = find->options.ctx;
    free(find);
    on_found(failed, ctx);
}

/* Fold what the journal of a live run shows now. False: it is not live, or its journal no
 * longer reaches back that far. */
static bool run_find_read_live(struct run_find *find) {
    const struct run_find_options *options = &find->options;
    struct live_view view;
    struct cursor *cursor;
    struct event event = {0};
    struct err e;
    if (!directory_find(session_table_directory(options->sessions), options->run, &view))
        return false;
    bool opened =
        cursor_open(view.journal, options->fold->seq, options->loop, NULL, NULL, &cursor, &e);
    while (opened && cursor_next(cursor, &event))
        options->fold->kind->take(options->fold, &event);
    if (opened) cursor_close(cursor);
    live_view_done(&view);
    return opened;
}

static void run_find_look(void *ctx);

static void run_find_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct run_find *find = ctx;
    struct run_fold *fold = find->options.fold;
    find->loading = false;
    if (find->freed) {
        arena_free(load->arena);
        free(find);
        return;
    }
    uint64_t before = fold->seq;
    find->place = load->place;
    bool whole = !failed && run_fold_sections(fold, load->sections, load->section_count);
    arena_free(load->arena);
    if (whole && !fold->foreign && !run_fold_is_over(fold) && fold->seq > before) {
        run_find_look(find);
    } else {
        run_find_report(find, failed);
    }
}

static void read_store(struct run_find *find, struct store *store) {
    find->loading = true;
    find->load = (struct store_load){.question = STORE_RUN,
                                     .run = find->options.run,
                                     .after_seq = find->options.fold->seq,
                                     .place = find->place,
                                     .max_bytes = PIECE_MAX_BYTES,
                                     .home = find->options.loop,
                                     .on_loaded = run_find_on_loaded,
                                     .ctx = find};
    store_load(store, &find->load);
}

static void run_find_look(void *ctx) {
    struct run_find *find = ctx;
    struct store *store = session_table_store(find->options.sessions);
    if (!find->options.run || run_find_read_live(find) || !store) {
        run_find_report(find, NULL);
    } else {
        read_store(find, store);
    }
}

struct run_find *run_find_new(const struct run_find_options *options) {
    struct run_find *find = MEM_NEW(struct run_find);
    find->options = *options;
    task_init(&find->look, run_find_look, find);
    loop_defer(options->loop, &find->look);
    return find;
}
