#include "turn/cancel_run.h"

#include "base/mem.h"
#include "session/directory.h"
#include "store/cancelling.h"
#include "turn/dormant_wake.h"

#include <stdlib.h>

struct cancel_run {
    struct session_table *sessions;
    struct loop *loop;
    uint64_t run;
    cancel_run_fn *done;
    void *ctx;
    struct dormant_wake *wake;    /* pending, or NULL */
    struct cancelling_wish *wish; /* pending, or NULL */
    struct task over;             /* ASKED or OVER was known at once: reported later */
    enum cancel_run_answer answer;
    struct str why; /* in `room` */
    char room[];
};

static void cancel_run_report(struct cancel_run *cancel, enum cancel_run_answer answer,
                              const struct err *failed) {
    cancel_run_fn *done = cancel->done;
    void *ctx = cancel->ctx;
    free(cancel);
    done(failed ? CANCEL_RUN_FAILED : answer, failed, ctx);
}

static void on_over(void *ctx) {
    struct cancel_run *cancel = ctx;
    cancel_run_report(cancel, cancel->answer, NULL);
}

static void end_later(struct cancel_run *cancel, enum cancel_run_answer answer) {
    cancel->answer = answer;
    loop_defer(cancel->loop, &cancel->over);
}

/* --- at another replica ------------------------------------------------------------------- */

static bool is_shared(struct session_table *sessions) {
    struct store *store = session_table_store(sessions);
    return store && store_is_shared(store);
}

static void on_wished(bool wished, const struct err *failed, void *ctx) {
    cancel_run_report(ctx, wished ? CANCEL_RUN_ASKED : CANCEL_RUN_OVER, failed);
}

static void cancel_elsewhere(struct cancel_run *cancel) {
    if (is_shared(cancel->sessions))
        cancel->wish = cancelling_wish(session_table_store(cancel->sessions), cancel->loop,
                                       cancel->run, cancel->why, on_wished, cancel);
    else
        end_later(cancel, CANCEL_RUN_OVER);
}

/* --- here --------------------------------------------------------------------------------- */

/* The request is posted to the run's loop; a run that has ended meanwhile takes no notice. */
static bool cancel_here(struct cancel_run *cancel) {
    struct directory *directory = session_table_directory(cancel->sessions);
    if (!directory_cancel(directory, cancel->run, cancel->why)) return false;
    end_later(cancel, CANCEL_RUN_ASKED);
    return true;
}

static void cancel_run_on_awake(const struct err *failed, void *ctx) {
    struct cancel_run *cancel = ctx;
    cancel->wake = NULL;
    if (failed)
        cancel_run_report(cancel, CANCEL_RUN_FAILED, failed);
    else if (!cancel_here(cancel))
        cancel_elsewhere(cancel);
}

static bool cancel_run_wake(struct cancel_run *cancel) {
    const struct dormant_filter filter = {.run = cancel->run};
    cancel->wake = dormant_wake_start(session_table_directory(cancel->sessions), &filter, 1,
                                      cancel->loop, cancel_run_on_awake, cancel);
    return cancel->wake != NULL;
}

struct cancel_run *cancel_run_start(struct session_table *sessions, struct loop *loop,
                                    uint64_t run, struct str why, cancel_run_fn *done,
                                    void *ctx) {
    struct cancel_run *cancel = mem_zero(1, sizeof(*cancel) + why.len);
    cancel->sessions = sessions;
    cancel->loop = loop;
    cancel->run = run;
    cancel->done = done;
    cancel->ctx = ctx;
    if (why.len) memcpy(cancel->room, why.at, why.len);
    cancel->why = str_of(cancel->room, why.len);
    task_init(&cancel->over, on_over, cancel);
    /* Looks twice, because another request may bring it back into memory in between. */
    if (!cancel_here(cancel) && !cancel_run_wake(cancel) && !cancel_here(cancel))
        cancel_elsewhere(cancel);
    return cancel;
}

void cancel_run_forget(struct cancel_run *cancel) {
    if (!cancel) return;
    task_cancel(&cancel->over);
    dormant_wake_cancel(cancel->wake);
    cancelling_forget(cancel->wish);
    free(cancel);
}

void cancel_run_send(struct session_table *sessions, struct loop *loop, uint64_t run,
                     struct str why) {
    if (directory_cancel(session_table_directory(sessions), run, why)) return;
    if (is_shared(sessions))
        cancelling_wish(session_table_store(sessions), loop, run, why, NULL, NULL);
}
