/* inner: the parts of a run that its files share. Private to run/. */
#ifndef WEIR_RUN_INNER_H
#define WEIR_RUN_INNER_H

#include "base/arena.h"
#include "base/utf8_tail.h"
#include "conversation/conversation.h"
#include "run/admission.h"
#include "run/approval.h"
#include "run/calls.h"
#include "run/compacting.h"
#include "run/record.h"
#include "run/request.h"
#include "run/shaping.h"
#include "run/spending.h"
#include "run/working.h"

struct run {
    unsigned refs;
    struct record record;
    enum run_state state;
    struct list link; /* in host->runs */
    struct arena *arena;
    struct admission admission;
    struct history *seen; /* the snapshot that `conversation` borrows from */
    struct timer limit;   /* turn_max_ms */
    struct timer alone;   /* detached: ends it when nobody has read it for `alone_ms` */
    uint64_t alone_ms;

    struct turn_request request;
    const struct agent *agent; /* who has the turn now */

    /* As the model sees it: history, then this turn. */
    struct conversation conversation;

    /* The reply that is coming in. */
    struct provider_call *provider_call;
    struct provider_request asked;
    reply_event_fn *on_reply; /* of it */
    struct utf8_tail text_tail, thinking_tail;
    struct buf draft; /* of one that must have a shape: it is not shown before it has */
    struct str model; /* who answered last */
    bool held;        /* the listener lags: the provider is paused */
    unsigned model_calls;

    struct spending spending;
    bool repairing; /* the reply before this one had not the shape it must have */

    /* A history that is too long. */
    struct buf summary; /* while it is being written */
    bool compacting;    /* the call that is out writes it */
    bool compacted;     /* it was done: the summary stands for the history */

    struct calls calls; /* what it asks for */
    bool ending_begun;  /* its last events are being written */

    struct approval approval;

    struct buf turns;      /* for EVENT_DONE */
    struct str end_reason; /* of a failure; kept */
};

/* --- run.c -------------------------------------------------------------------------------- */

/* Where a run begins: a new one with all zero, another one where an earlier process left it. */
struct run_left {
    uint64_t id, last_seq;
    enum run_state state;
};

/* It holds itself. */
struct run *run_new(struct run_host *host, struct engine *engine, const struct agent *agent,
                    struct run_left left);

/* One that never was, as far as anybody has seen. */
void run_discard(struct run *run);

void run_enter_directory(struct run *run);

/* One that waits for a human and that nobody can find any more: the store has it. */
void run_let_go(struct run *run);

/* The session is ours: its first event, and its first question. */
void run_begin(struct run *run);

/* The only function that writes run->state, once run_new() has said where it begins. */
void run_move(struct run *run, enum run_state next);

/* Append `event` with its time and, unless it names one, its agent, and fold it into the
 * conversation. 0, and nothing appended: the run's memory is full, and it fails. */
uint64_t run_append(struct run *run, struct event *event);

/* The same, of texts that live as long as the run. */
uint64_t run_append_kept(struct run *run, struct event *event);

/* What the turn's answer must follow, or NULL. */
static inline const struct schema *run_schema(const struct run *run) {
    return run->request.schema ? run->request.schema : run->agent->schema;
}

/* Keep a copy in the run's arena; false, and the run fails, at its limit. */
bool run_keep(struct run *run, struct str text, struct str *ret);

/* Fail it, because what it holds has reached its limit. */
void run_fail_memory(struct run *run);

/* End it. Harmless when it is ending already. */
void run_done(struct run *run);
void run_fail(struct run *run, enum err_code code, struct str reason, struct str message);

/* As run_cancel(), because its caller left: he may ask again with the same key. */
void run_cancel_left(struct run *run, struct str why);

/* --- leaving.c: whose caller has left ------------------------------------------------------
 */

/* The timer of a run that was detached for some time. */
void run_alone(void *ctx);

/* --- asking.c: a model answers ------------------------------------------------------------ */

void run_ask(struct run *run);
void run_stop_asking(struct run *run);

/* The call that run_start_call() was asked for, once its budget lets it begin. */
void run_make_call(struct run *run);

/* Have the agent's provider answer `request` (copied; what it points to must live until then);
 * `on_reply` hears it, with the run as its ctx. */
void run_start_call(struct run *run, const struct provider_request *request,
                    reply_event_fn *on_reply);

/* --- revive.c: a run that was made anew from its events -------------------------------------
 */

/* The session is ours: what was said in it before this run stands in front of the run's own.
 * Harmless for a run that has that already. */
void run_look_back(struct run *run);

#endif
