#include "session/session_load.h"

#include "base/buf.h"
#include "base/mem.h"
#include "session/history_read.h"

#include <assert.h>
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

static struct str keep_name(struct buf *names, struct str name) {
    size_t at = names->len;
    buf_append(names, name);
    return str_of(names->at + at, name.len);
}

void session_load(struct store *store, const struct session_name *name, struct loop *home,
                  session_loaded_fn *on_loaded, void *ctx) {
    struct loading *loading = MEM_NEW(struct loading);
    loading->on_loaded = on_loaded;
    loading->ctx = ctx;
    size_t len = name->workspace.len + name->user.len + name->session.len + 1;
    buf_init(&loading->names, len);
    char *room = buf_room(&loading->names, len);
    assert(room);
    (void)room;
    loading->load =
        (struct store_load){.question = STORE_SESSION,
                            .workspace = keep_name(&loading->names, name->workspace),
                            .user = keep_name(&loading->names, name->user),
                            .session = keep_name(&loading->names, name->session),
                            .runs_max = HISTORY_TURNS_MAX,
                            .max_bytes = LOAD_MAX_BYTES,
                            .home = home,
                            .on_loaded = on_sections,
                            .ctx = loading};
    store_load(store, &loading->load);
}
