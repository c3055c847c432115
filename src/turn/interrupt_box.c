#include "turn/interrupt_box.h"

#include "base/mem.h"
#include "session/directory.h"
#include "session/session.h"
#include "store/changes.h"
#include "store/interrupting.h"
#include "turn/admission.h"

#include <stdlib.h>

struct interrupt_box {
    struct session_table *sessions;
    struct loop *loop;
    struct changes_watcher *watcher;
    struct interrupting_ask *ask; /* the store is asked; or NULL */
    bool changed;                 /* since then */
};

static void interrupt_box_look(void *ctx);

static void make_way(struct interrupt_box *box, const struct interrupting *wish) {
    const struct session_name name = {wish->workspace, wish->user, wish->session};
    struct directory *directory = session_table_directory(box->sessions);
    uint64_t runs[INTERRUPT_MAX];
    size_t count = session_older(box->sessions, &name, wish->run, runs, INTERRUPT_MAX);
    for (size_t i = 0; i < count; i++) directory_cancel(directory, runs[i], STR(INTERRUPT_WHY));
}

/* After a failure nothing is lost: who waits says it again. */
static void on_wishes(const struct interrupting *wishes, size_t count, const struct err *failed,
                      void *ctx) {
    struct interrupt_box *box = ctx;
    (void)failed;
    box->ask = NULL;
    for (size_t i = 0; i < count; i++) make_way(box, &wishes[i]);
    if (box->changed) interrupt_box_look(box);
}

static void interrupt_box_look(void *ctx) {
    struct interrupt_box *box = ctx;
    box->changed = box->ask != NULL;
    if (box->changed) return;
    box->ask = interrupting_read(session_table_store(box->sessions), box->loop, on_wishes, box);
}

struct interrupt_box *interrupt_box_start(struct session_table *sessions, struct loop *loop) {
    struct store *store = session_table_store(sessions);
    if (!store || !store_is_shared(store)) return NULL;
    struct interrupt_box *box = MEM_NEW(struct interrupt_box);
    box->sessions = sessions;
    box->loop = loop;
    box->watcher =
        changes_watch(store_changes(store), CHANGE_POSTED, loop, interrupt_box_look, box);
    return box;
}

void interrupt_box_stop(struct interrupt_box *box) {
    if (!box) return;
    changes_leave(box->watcher);
    interrupting_forget(box->ask);
    free(box);
}
