#include "contract/nimi/job/job_find.h"

#include "base/mem.h"
#include "contract/nimi/ulid.h"
#include "session/directory.h"

#include <stdlib.h>

#define PIECE_MAX_BYTES (1 * MIB)

struct job_find {
    struct job_find_options options;
    char id[ULID_LEN + 1]; /* empty: any */
    uint64_t run;          /* 0: the id cannot be a job's */
    struct job_fold fold;
    struct task look;
    struct store_load load; /* while `loading` */
    bool loading, freed;
};

static void job_find_end(struct job_find *find) {
    job_fold_done(&find->fold);
    free(find);
}

void job_find_free(struct job_find *find) {
    if (!find) return;
    task_cancel(&find->look);
    find->freed = true;
    if (!find->loading) job_find_end(find);
}

static bool is_the_one(const struct job_find *find) {
    const struct job_fold *fold = &find->fold;
    return job_fold_is_shown(fold) &&
           (!find->id[0] || str_equal(fold->job.job_id, str_from(find->id)));
}

static void job_find_tell(struct job_find *find, const struct err *failed) {
    job_found_fn *on_found = find->options.on_found;
    void *ctx = find->options.ctx;
    /* The callback may end the call that owns this object, and thus free it. */
    find->loading = true;
    on_found(!failed && is_the_one(find) ? &find->fold : NULL, failed, ctx);
    job_find_end(find);
}

/* Fold what the journal of a live job shows now. False: it is not live, or its journal no
 * longer reaches back that far. */
static bool read_live(struct job_find *find) {
    struct live_view view;
    struct cursor *cursor;
    struct event event = {0};
    struct err e;
    struct loop *loop = find->options.loop;
    if (!directory_find(session_table_directory(find->options.sessions), find->run, &view))
        return false;
    bool opened = cursor_open(view.journal, find->fold.seq, loop, NULL, NULL, &cursor, &e);
    while (opened && cursor_next(cursor, &event)) job_fold_take(&find->fold, &event);
    if (opened) cursor_close(cursor);
    live_view_done(&view);
    return opened;
}

static void look(void *ctx);

static void job_find_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct job_find *find = ctx;
    struct job_fold *fold = &find->fold;
    find->loading = false;
    if (find->freed) {
        arena_free(load->arena);
        job_find_end(find);
        return;
    }
    uint64_t before = fold->seq;
    if (!failed && !job_fold_sections(fold, load->sections, load->section_count))
        fold->foreign = true;
    arena_free(load->arena);
    bool more = !failed && !fold->foreign && fold->seq > before && !job_fold_is_over(fold);
    if (more) {
        look(find);
    } else {
        job_find_tell(find, failed);
    }
}

static void read_store(struct job_find *find, struct store *store) {
    find->loading = true;
    find->load = (struct store_load){.question = STORE_RUN,
                                     .run = find->run,
                                     .after_seq = find->fold.seq,
                                     .max_bytes = PIECE_MAX_BYTES,
                                     .home = find->options.loop,
                                     .on_loaded = job_find_on_loaded,
                                     .ctx = find};
    store_load(store, &find->load);
}

static void look(void *ctx) {
    struct job_find *find = ctx;
    struct store *store = session_table_store(find->options.sessions);
    if (!find->run || read_live(find) || !store) {
        job_find_tell(find, NULL);
    } else {
        read_store(find, store);
    }
}

struct job_find *job_find_new(const struct job_find_options *options) {
    struct job_find *find = MEM_NEW(struct job_find);
    struct str id = options->job_id;
    find->options = *options;
    find->options.job_id = STR_EMPTY; /* borrowed only until now */
    find->run = options->run;
    if (id.at) {
        find->run = 0;
        if (ulid_number(id, &find->run)) memcpy(find->id, id.at, ULID_LEN);
    }
    job_fold_init(&find->fold, options->depth);
    task_init(&find->look, look, find);
    loop_defer(options->loop, &find->look);
    return find;
}
