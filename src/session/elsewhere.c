#include "session/elsewhere.h"

#include "base/buf.h"
#include "base/mem.h"
#include "session/asked.h"
#include "session/decision.h"
#include "session/directory.h"
#include "session/key_leases.h"
#include "session/posted_answer.h"
#include "store/lease.h"

#include <stdlib.h>

struct elsewhere {
    struct elsewhere_options options; /* its texts are in `texts` */
    struct buf texts;
    struct lease_request request;
    struct asked *asked;
    struct posted_answer *posted;
    struct key_hold key;
    uint64_t run, seq;
    bool asking; /* whose it is */
    bool cancelled;
};

static void elsewhere_free(struct elsewhere *elsewhere) {
    key_hold_end(&elsewhere->key);
    buf_done(&elsewhere->texts);
    free(elsewhere);
}

static void elsewhere_report(struct elsewhere *elsewhere, enum elsewhere_found found,
                             const struct err *failed) {
    const struct elsewhere_result result = {found, elsewhere->run, elsewhere->seq};
    elsewhere_fn *on_end = elsewhere->options.on_end;
    void *ctx = elsewhere->options.ctx;
    struct err why;
    if (failed) why = *failed;
    elsewhere_free(elsewhere);
    on_end(&result, failed ? &why : NULL, ctx);
}

static void on_posted(const struct err *refused, void *ctx) {
    elsewhere_report(ctx, refused ? ELSEWHERE_REFUSED : ELSEWHERE_DECIDED, refused);
}

/* What the question is does not matter for this. */
static bool decides(const struct elsewhere *elsewhere, struct err *e) {
    const struct pending_question asked = {.words = elsewhere->options.decides};
    return !elsewhere->options.decides ||
           decision_settles(&asked, elsewhere->options.text, e) == PENDING_TAKEN;
}

static void post(struct elsewhere *elsewhere) {
    const struct elsewhere_options *options = &elsewhere->options;
    elsewhere->posted = posted_answer_start(
        &(struct posted_answer_options){.loop = options->loop,
                                        .sessions = options->sessions,
                                        .workspace = options->name.workspace,
                                        .words = {.run = elsewhere->run,
                                                  .seq = elsewhere->seq,
                                                  .text = options->text,
                                                  .key = options->key,
                                                  .key_user = options->key_user,
                                                  .print = options->print},
                                        .asks_again = options->asks_again,
                                        .on_end = on_posted,
                                        .ctx = elsewhere});
}

static bool is_meant(const struct elsewhere *elsewhere) {
    const struct elsewhere_options *options = &elsewhere->options;
    return !options->run || (options->run == elsewhere->run && options->seq == elsewhere->seq);
}

static void on_asked(const struct asked_result *result, const struct err *failed, void *ctx) {
    struct elsewhere *elsewhere = ctx;
    struct err why;
    elsewhere->asked = NULL;
    elsewhere->run = result->run;
    elsewhere->seq = result->seq;
    if (result->answer == ASKED_FAILED)
        elsewhere_report(elsewhere, ELSEWHERE_FAILED, failed);
    else if (result->answer != ASKED_QUESTION || !result->waits || !is_meant(elsewhere))
        elsewhere_report(elsewhere, ELSEWHERE_NONE, NULL);
    else if (!decides(elsewhere, &why))
        elsewhere_report(elsewhere, ELSEWHERE_REFUSED, &why);
    else
        post(elsewhere);
}

static void ask(struct elsewhere *elsewhere) {
    elsewhere->asked =
        asked_look(&(struct asked_options){.loop = elsewhere->options.loop,
                                           .sessions = elsewhere->options.sessions,
                                           .name = elsewhere->options.name,
                                           .run = elsewhere->options.run,
                                           .on_answer = on_asked,
                                           .ctx = elsewhere});
}

static void on_holder(struct lease_request *request, const struct err *failed, void *ctx) {
    struct elsewhere *elsewhere = ctx;
    elsewhere->asking = false;
    if (elsewhere->cancelled) {
        elsewhere_free(elsewhere);
    } else if (failed) {
        elsewhere_report(elsewhere, ELSEWHERE_FAILED, failed);
    } else if (request->held || !request->holder[0]) {
        elsewhere_report(elsewhere, ELSEWHERE_NONE, NULL);
    } else {
        ask(elsewhere);
    }
}

static void keep_texts(struct elsewhere *elsewhere) {
    struct elsewhere_options *options = &elsewhere->options;
    struct str *texts[] = {
        &options->name.workspace, &options->name.user, &options->name.session,
        &options->text,           &options->key,       &options->key_user,
        &options->print};
    buf_keep_texts(&elsewhere->texts, texts, ARRAY_LEN(texts));
}

static void hold_key(struct elsewhere *elsewhere) {
    const struct elsewhere_options *options = &elsewhere->options;
    const struct claim_name name = {options->name.workspace, options->key_user, options->key};
    key_hold_begin(&elsewhere->key, session_table_key_leases(options->sessions), &name,
                   options->loop);
}

static bool elsewhere_is_live(const struct elsewhere_options *options) {
    struct live_view view;
    struct directory *directory = session_table_directory(options->sessions);
    bool live = options->run && directory_find(directory, options->run, &view);
    if (live) live_view_done(&view);
    return live;
}

struct elsewhere *elsewhere_start(const struct elsewhere_options *options) {
    struct store *store = session_table_store(options->sessions);
    if (!store || !store_is_shared(store) || elsewhere_is_live(options)) return NULL;
    struct elsewhere *elsewhere = MEM_NEW(struct elsewhere);
    elsewhere->options = *options;
    keep_texts(elsewhere);
    hold_key(elsewhere);
    if (options->run) {
        ask(elsewhere);
        return elsewhere;
    }
    elsewhere->request =
        (struct lease_request){.key = session_lease_key(&elsewhere->options.name),
                               .on_done = on_holder,
                               .ctx = elsewhere};
    elsewhere->asking = true;
    lease_look(store, options->loop, &elsewhere->request);
    return elsewhere;
}

void elsewhere_cancel(struct elsewhere *elsewhere) {
    if (!elsewhere) return;
    elsewhere->cancelled = true;
    asked_cancel(elsewhere->asked);
    posted_answer_cancel(elsewhere->posted);
    if (!elsewhere->asking) elsewhere_free(elsewhere);
}
