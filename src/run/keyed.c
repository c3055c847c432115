#include "run/keyed.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>

struct keyed {
    struct keyed_options options; /* its texts lie in `texts` */
    struct buf texts;
    struct claim_view view;
    struct task tell; /* the answer, when the store need not be asked */
    struct store_load load;
    bool loading, cancelled;
};

static void keyed_free(struct keyed *keyed) {
    buf_done(&keyed->texts);
    free(keyed);
}

static void tell(struct keyed *keyed, enum keyed_answer answer, uint64_t run, uint64_t seq,
                 const struct err *failed) {
    struct keyed_result result = {answer, run, keyed->view.mark, seq};
    keyed_fn *on_answer = keyed->options.on_answer;
    void *ctx = keyed->options.ctx;
    struct err why; /* the load's own goes with it */
    if (failed) why = *failed;
    keyed_free(keyed);
    on_answer(&result, failed ? &why : NULL, ctx);
}

static enum keyed_answer same_or_other(const struct keyed *keyed, struct str print) {
    return str_equal(print, keyed->options.print) ? KEYED_RUN : KEYED_OTHER;
}

static void tell_claimed(void *ctx) {
    struct keyed *keyed = ctx;
    struct str print = str_of(keyed->view.print, keyed->view.print_len);
    tell(keyed, same_or_other(keyed, print), keyed->view.run, keyed->view.seq, NULL);
}

static void tell_free(void *ctx) {
    tell(ctx, KEYED_FREE, 0, 0, NULL);
}

/* Runs of one key begin one after the other, and their numbers rise. */
static bool stands_for_run(const struct keyed *keyed, const struct store_key *means) {
    bool young = clock_unix_ms() - means->started_ms < (int64_t)keyed->options.kept_ms;
    bool back = means->left || (means->failed && keyed->options.failures_free);
    if (means->seq) return young; /* a human's answer was given */
    return means->run > keyed->view.given_back && (!back || means->acted) && young;
}

static void on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct keyed *keyed = ctx;
    keyed->loading = false;
    if (keyed->cancelled) {
        arena_free(load->arena);
        keyed_free(keyed);
        return;
    }
    const struct store_key *means = &load->key_means;
    bool stands = !failed && stands_for_run(keyed, means);
    enum keyed_answer answer = failed   ? KEYED_FAILED
                               : stands ? same_or_other(keyed, means->print)
                                        : KEYED_FREE;
    uint64_t run = stands ? means->run : 0, seq = stands ? means->seq : 0;
    arena_free(load->arena);
    tell(keyed, answer, run, seq, failed);
}

/* The request may be gone before the store has answered. */
static void keep_texts(struct keyed *keyed) {
    struct claim_name *name = &keyed->options.name;
    struct str *texts[] = {&name->workspace, &name->user, &name->key, &keyed->options.print};
    buf_keep_texts(&keyed->texts, texts, ARRAY_LEN(texts));
}

struct keyed *keyed_look(const struct keyed_options *options) {
    struct keyed *keyed = MEM_NEW(struct keyed);
    struct store *store = session_table_store(options->sessions);
    keyed->options = *options;
    keep_texts(keyed);
    const struct claim_name *name = &keyed->options.name;
    claims_look(session_table_claims(options->sessions), name, &keyed->view);
    if (keyed->view.run || !store) {
        task_init(&keyed->tell, keyed->view.run ? tell_claimed : tell_free, keyed);
        loop_defer(options->loop, &keyed->tell);
        return keyed;
    }
    keyed->loading = true;
    keyed->load = (struct store_load){.question = STORE_KEY,
                                      .workspace = name->workspace,
                                      .user = name->user,
                                      .key = name->key,
                                      .home = options->loop,
                                      .on_loaded = on_loaded,
                                      .ctx = keyed};
    store_load(store, &keyed->load);
    return keyed;
}

void keyed_cancel(struct keyed *keyed) {
    if (!keyed) return;
    keyed->cancelled = true;
    if (keyed->loading) return; /* the store's answer frees it */
    task_cancel(&keyed->tell);
    keyed_free(keyed);
}
