#include "session/session_load.h"

#include "base/buf.h"
#include "base/mem.h"
#include "session/history_read.h"

#include <stdlib.h>

#define LOAD_MAX_BYTES (1 * MIB)

struct loading {
    struct store_load load;
    struct buf names;
    session_loaded_fn *on_loaded;
    void *ctx;
};

static void on_sections(struct store_load *load, const struct err *failed, void *ctx) {
    struct loading *loading = ctx;
    struct history *history = NULL;
    struct err e;
    if (failed) {
        e = *failed;
    } else if (!history_read(load->sections, load->section_count, &history, &e)) {
        history = NULL;
    }
    loading->on_loaded(history, &e, loading->ctx);
    arena_free(load->arena);
    buf_done(&loading->names);
    free(loading);
}

void session_load(struct store *store, const struct session_name *name, struct loop *home,
                  session_loaded_fn *on_loaded, void *ctx) {
    struct loading *loading = MEM_NEW(struct loading);
    loading->on_loaded = on_loaded;
    loading->ctx = ctx;
    struct session_name kept = *name;
    struct str *texts[] = {&kept.workspace, &kept.user, &kept.session};
    buf_keep_texts(&loading->names, texts, ARRAY_LEN(texts));
    loading->load = (struct store_load){.question = STORE_SESSION,
                                        .workspace = kept.workspace,
                                        .user = kept.user,
                                        .session = kept.session,
                                        .runs_max = HISTORY_TURNS_MAX,
                                        .max_bytes = LOAD_MAX_BYTES,
                                        .home = home,
                                        .on_loaded = on_sections,
                                        .ctx = loading};
    store_load(store, &loading->load);
}
