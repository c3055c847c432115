#include "session/idempotency_lookup.h"

#include "base/clock.h"
#include "base/mem.h"
#include "session/key_leases.h"

#include <stdlib.h>

struct idempotency_lookup {
    struct idempotency_lookup_options options; /* its texts are in `texts` */
    struct buf texts;
    struct claim_view view;
    struct task tell; /* reports the answer when the store is not needed */
    struct store_load load;
    /* Among replicas. */
    struct lease_request lease;
    struct lease_key key; /* while `keeps` */
    struct timer again;
    uint64_t until_ms;
    bool keeps, leased;
    bool loading, cancelled; /* the store was asked */
};

#define AGAIN_MS 50

/* The lease is not given back while a look-up needs it. */
static void keep_lease(struct idempotency_lookup *lookup) {
    const struct idempotency_lookup_options *options = &lookup->options;
    struct key_leases *leases = session_table_key_leases(options->sessions);
    if (lookup->keeps) return;
    lookup->key = key_leases_keep(leases, &options->name, options->loop);
    lookup->keeps = true;
}

static void let_lease(struct idempotency_lookup *lookup) {
    if (!lookup->keeps) return;
    key_leases_let(session_table_key_leases(lookup->options.sessions), &lookup->key);
    lookup->keeps = false;
}

static void idempotency_lookup_free(struct idempotency_lookup *lookup) {
    timer_stop(&lookup->again);
    buf_done(&lookup->texts);
    free(lookup);
}

static void idempotency_lookup_report(struct idempotency_lookup *lookup,
                                      enum idempotency_answer answer, uint64_t run,
                                      uint64_t seq, const struct err *failed) {
    struct idempotency_lookup_result result = {answer, run, lookup->view.mark, seq};
    idempotency_lookup_fn *on_answer = lookup->options.on_answer;
    void *ctx = lookup->options.ctx;
    struct err why; /* a copy; the load's own is freed with it */
    if (failed) why = *failed;
    let_lease(lookup);
    idempotency_lookup_free(lookup);
    on_answer(&result, failed ? &why : NULL, ctx);
}

static enum idempotency_answer same_or_other(const struct idempotency_lookup *lookup,
                                             struct str print) {
    return str_equal(print, lookup->options.print) ? IDEMPOTENCY_RUN : IDEMPOTENCY_OTHER;
}

static void report_claimed(void *ctx) {
    struct idempotency_lookup *lookup = ctx;
    struct str print = str_of(lookup->view.print, lookup->view.print_len);
    idempotency_lookup_report(lookup, same_or_other(lookup, print), lookup->view.run,
                              lookup->view.seq, NULL);
}

static void report_free(void *ctx) {
    idempotency_lookup_report(ctx, IDEMPOTENCY_FREE, 0, 0, NULL);
}

/* Runs with the same key begin one after another, with rising ids. */
static bool stands_for_run(const struct idempotency_lookup *lookup,
                           const struct store_key *means) {
    bool young = clock_unix_ms() - means->started_ms < (int64_t)lookup->options.kept_ms;
    bool back = means->left || (means->failed && lookup->options.failures_free);
    if (means->seq) return young; /* it stands for a human's answer */
    return means->run > lookup->view.given_back && (!back || means->acted) && young;
}

/* --- among replicas ----------------------------------------------------------------------- */

static void idempotency_lookup_load(void *ctx);

/* Found free: the holder of the lease may begin. The store is asked again, because another
 * replica may have begun meanwhile. */
static void on_leased(struct lease_request *request, const struct err *failed, void *ctx) {
    struct idempotency_lookup *lookup = ctx;
    struct err late;
    lookup->loading = false;
    lookup->leased = request->held;
    if (lookup->cancelled) {
        idempotency_lookup_free(lookup);
    } else if (failed) {
        idempotency_lookup_report(lookup, IDEMPOTENCY_FAILED, 0, 0, failed);
    } else if (request->held) {
        idempotency_lookup_load(lookup);
    } else if (loop_now_ms(lookup->options.loop) >= lookup->until_ms) {
        err_set(&late, ERR_UNAVAILABLE,
                "replica '%s' has a request with this key under way; try again in a moment",
                request->holder);
        idempotency_lookup_report(lookup, IDEMPOTENCY_FAILED, 0, 0, &late);
    } else {
        timer_start(&lookup->again, AGAIN_MS);
    }
}

static void ask_for_lease(struct idempotency_lookup *lookup) {
    const struct idempotency_lookup_options *options = &lookup->options;
    struct session_table *sessions = options->sessions;
    if (!lookup->until_ms)
        lookup->until_ms = loop_now_ms(options->loop) + session_table_wait_ms(sessions);
    keep_lease(lookup);
    lookup->loading = true;
    lookup->lease =
        (struct lease_request){.key = lookup->key, .on_done = on_leased, .ctx = lookup};
    lease_ask(session_table_store(sessions), options->loop, &lookup->lease);
}

/* --- the store ---------------------------------------------------------------------------- */

static void idempotency_lookup_on_loaded(struct store_load *load, const struct err *failed,
                                         void *ctx) {
    struct idempotency_lookup *lookup = ctx;
    lookup->loading = false;
    if (lookup->cancelled) {
        arena_free(load->arena);
        idempotency_lookup_free(lookup);
        return;
    }
    const struct store_key *means = &load->key_means;
    bool stands = !failed && stands_for_run(lookup, means);
    enum idempotency_answer answer = failed   ? IDEMPOTENCY_FAILED
                                     : stands ? same_or_other(lookup, means->print)
                                              : IDEMPOTENCY_FREE;
    uint64_t run = stands ? means->run : 0, seq = stands ? means->seq : 0;
    arena_free(load->arena);
    if (answer == IDEMPOTENCY_FREE && !lookup->leased &&
        session_table_key_leases(lookup->options.sessions)) {
        ask_for_lease(lookup);
        return;
    }
    idempotency_lookup_report(lookup, answer, run, seq, failed);
}

/* Copy the texts, because the request may end before the store answers. */
static void idempotency_lookup_keep_texts(struct idempotency_lookup *lookup) {
    struct claim_name *name = &lookup->options.name;
    struct str *texts[] = {&name->workspace, &name->user, &name->key, &lookup->options.print};
    buf_keep_texts(&lookup->texts, texts, ARRAY_LEN(texts));
}

static void idempotency_lookup_load(void *ctx) {
    struct idempotency_lookup *lookup = ctx;
    const struct claim_name *name = &lookup->options.name;
    lookup->loading = true;
    lookup->load = (struct store_load){.question = STORE_KEY,
                                       .workspace = name->workspace,
                                       .user = name->user,
                                       .key = name->key,
                                       .home = lookup->options.loop,
                                       .on_loaded = idempotency_lookup_on_loaded,
                                       .ctx = lookup};
    store_load(session_table_store(lookup->options.sessions), &lookup->load);
}

struct idempotency_lookup *
idempotency_lookup_start(const struct idempotency_lookup_options *options) {
    struct idempotency_lookup *lookup = MEM_NEW(struct idempotency_lookup);
    struct store *store = session_table_store(options->sessions);
    lookup->options = *options;
    timer_init(&lookup->again, options->loop, idempotency_lookup_load, lookup);
    idempotency_lookup_keep_texts(lookup);
    const struct claim_name *name = &lookup->options.name;
    idempotency_claims_look(session_table_claims(options->sessions), name, &lookup->view);
    task_init(&lookup->tell, lookup->view.run ? report_claimed : report_free, lookup);
    if (lookup->view.run || !store) {
        loop_defer(options->loop, &lookup->tell);
        return lookup;
    }
    idempotency_lookup_load(lookup);
    return lookup;
}

void idempotency_lookup_cancel(struct idempotency_lookup *lookup) {
    if (!lookup) return;
    lookup->cancelled = true;
    let_lease(lookup);
    if (lookup->loading) return; /* the store's answer frees it */
    task_cancel(&lookup->tell);
    idempotency_lookup_free(lookup);
}
