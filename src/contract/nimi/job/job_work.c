#include "contract/nimi/job/job_work.h"

#include "base/log.h"
#include "base/mem.h"
#include "contract/nimi/job/job_inner.h"
#include "contract/nimi/ulid.h"

#include <assert.h>
#include <stdlib.h>

#define ARENA_EXTRA_BYTES (64 * MIB) /* for pictures that the request refers to */

/* --- ending ------------------------------------------------------------------------------- */

/* Stop and release everything that could still call back. */
static void job_work_stop(struct job_work *work, struct str why) {
    const struct job_asked *asked = work->asked;
    work->asked = NULL;
    if (asked) asked->stop(work, why);
    job_slot_release(&work->slot);
}

static void work_free(struct job_work *work) {
    job_work_stop(work, STR("the job was left"));
    if (list_linked(&work->link)) {
        list_remove(&work->link);
        work->instance->job_count--;
    }
    run_job_free(work->job);
    buf_done(&work->text);
    arena_free(work->arena);
    engine_unref(work->engine);
    free(work);
}

void job_fail(struct job_work *work, enum err_code code, struct str reason,
              struct str message) {
    run_job_fail(work->job, code, reason, message);
    job_work_stop(work, message);
}

static void fail_with(struct job_work *work, const struct fault *fault) {
    job_fail(work, fault->why.code, str_from(reason_get(fault->reason)->name),
             err_text(&fault->why));
}

/* --- results ------------------------------------------------------------------------------ */

struct nimi_usage_stats job_usage(const struct event_usage *usage) {
    return (struct nimi_usage_stats){
        .input_tokens = usage->prompt, .output_tokens = usage->completion, .compute_ms = -1};
}

bool job_note(struct job_work *work, const char *type, const struct pb_message *table,
              const void *message) {
    struct buf bytes;
    buf_init(&bytes, JOB_OUTPUT_MAX_BYTES);
    bool fits = pb_encode(table, message, &bytes);
    if (fits) run_job_item(work->job, str_from(type), buf_str(&bytes));
    buf_done(&bytes);
    return fits;
}

void job_complete(struct job_work *work, const struct nimi_scenario_output *output,
                  struct str model) {
    const struct nimi_scenario_job known = {.model_resolved = model, .usage = &work->usage};
    bool fits = buf_ok(&work->text) &&
                (!output || job_note(work, JOB_OUTPUT, &nimi_scenario_output_table, output));
    if (!fits || !job_note(work, JOB_PATCH, &nimi_scenario_job_table, &known)) {
        job_fail(work, ERR_INTERNAL, STR("AI_OUTPUT_INVALID"),
                 STR("what came is more than one message holds; ask for less"));
        return;
    }
    run_job_done(work->job, model);
    job_work_stop(work, STR_EMPTY);
}

/* --- callbacks of the job ----------------------------------------------------------------- */

static void report_kept(struct job_work *work, uint64_t run) {
    job_kept_fn *on_kept = work->on_kept;
    work->on_kept = NULL;
    if (on_kept) on_kept(run, work->ctx);
}

static void on_job_kept(void *ctx) {
    struct job_work *work = ctx;
    report_kept(work, run_job_id(work->job));
    run_job_queue(work->job);
    job_slot_run(&work->slot, work->job);
}

static void on_job_running(void *ctx) {
    struct job_work *work = ctx;
    struct err e;
    work->usage = (struct nimi_usage_stats){-1, -1, -1};
    buf_clear(&work->text);
    work->asked = work->spec.is_text ? &job_asks_model : &job_asks_media;
    if (!work->asked->ask(work, &e)) job_fail(work, e.code, STR_EMPTY, err_text(&e));
}

static void on_job_cancel(struct str why, void *ctx) {
    struct job_work *work = ctx;
    run_job_cancel(work->job, why);
    job_work_stop(work, STR("the job was cancelled"));
    report_kept(work, 0);
}

static void on_job_over(void *ctx) {
    work_free(ctx);
}

static const struct run_job_owner owner = {on_job_kept, on_job_running, on_job_cancel,
                                           on_job_over};

void job_work_forget(struct job_work *work) {
    work->on_kept = NULL;
}

void job_work_cancel(struct job_work *work, struct str why) {
    job_work_forget(work);
    on_job_cancel(why, work);
}

/* --- beginning ---------------------------------------------------------------------------- */

static struct job_work *work_new(struct nimi_instance *instance, size_t request_bytes) {
    struct job_work *work = MEM_NEW(struct job_work);
    work->instance = instance;
    work->owner = STR_EMPTY;
    work->engine = engine_ref(instance->host->engine);
    work->arena = arena_new(16 * request_bytes + ARENA_EXTRA_BYTES);
    job_slot_init(&work->slot, instance->runtime->scheduler, FAIR_BACKGROUND,
                  instance->host->loop);
    buf_init(&work->text, JOB_OUTPUT_MAX_BYTES);
    list_init(&work->puts);
    list_append(&instance->jobs, &work->link);
    instance->job_count++;
    return work;
}

/* Copy the request into the job's arena; *ret_bytes is in the arena too. */
static bool keep_request(struct job_work *work, struct str bytes, struct str *ret_bytes,
                         struct fault *fault) {
    struct err e = {.code = ERR_RESOURCE_EXHAUSTED};
    if (arena_str(work->arena, bytes, ret_bytes) &&
        pb_decode_view(&nimi_submit_scenario_job_request_table, *ret_bytes, work->arena,
                       &work->request, &e))
        return true;
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the request is larger than a job may be");
}

static bool admit(struct job_work *work, const struct envelope *envelope, struct fault *fault) {
    const struct nimi_submit_scenario_job_request *from = &work->request;
    const struct scenario asked = {from->head, from->scenario_type, from->execution_mode,
                                   from->spec, from->extensions,    from->extensions_count};
    return admit_scenario(work->instance->settings, envelope, &asked, ADMIT_SUBMIT,
                          &work->admission, fault) &&
           job_spec_read(from, &work->admission, work->arena, &work->spec, fault);
}

static struct str user_of(const struct job_work *work) {
    struct str subject = work->request.head->subject_user_id;
    return subject.len ? subject : STR(JOB_ANONYMOUS);
}

static void note_known(struct job_work *work, struct str trace) {
    char id[ULID_LEN + 1];
    uint64_t run = run_job_id(work->job);
    ulid_new_numbered(id, run_job_started_ms(work->job), run);
    const struct nimi_scenario_job known = {.job_id = str_from(id),
                                            .trace_id = trace,
                                            .route_decision = work->admission.route,
                                            .model_resolved = work->admission.model};
    bool fits = job_note(work, JOB_PATCH, &nimi_scenario_job_table, &known);
    assert(fits); /* it was part of a request */
    (void)fits;
}

static struct run_job_options options_of(struct job_work *work) {
    return (struct run_job_options){.host = work->instance->host,
                                    .engine = work->engine,
                                    .workspace = work->request.head->app_id,
                                    .user = user_of(work),
                                    .text = work->spec.asked,
                                    .contract = STR(JOB_CONTRACT),
                                    .key = STR_EMPTY,
                                    .print = STR_EMPTY,
                                    .owner = &owner,
                                    .ctx = work};
}

static enum job_begun begin_run(struct job_work *work, const struct job_ask *ask,
                                struct str request, struct fault *fault) {
    struct run_job_options options = options_of(work);
    struct err e;
    options.request = request;
    options.key = ask->key;
    options.print = ask->print;
    options.key_mark = ask->key_mark;
    options.trace = ask->caller;
    if (!arena_str(work->arena, ask->owner, &work->owner)) work->owner = STR_EMPTY;
    if (job_slot_take(&work->slot, work->request.head->app_id, work->owner) == TICKET_REFUSED) {
        fault_set_code(fault, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_RESOURCE_EXHAUSTED,
                       "too many calls of this app wait for a model; ask again later");
        return JOB_REFUSED;
    }
    if (!run_job_start(&options, &work->job, &e)) {
        if (e.code == ERR_ALREADY_EXISTS) return JOB_KEY_TAKEN;
        fault_set_code(fault, NIMI_AI_INPUT_INVALID, e.code, "%s", e.text);
        return JOB_REFUSED;
    }
    note_known(work, ask->trace);
    run_job_submit(work->job);
    return JOB_BEGUN;
}

enum job_begun job_work_begin(const struct job_ask *ask, struct job_work **ret,
                              struct fault *fault) {
    struct job_work *work = work_new(ask->instance, ask->request.len);
    struct str request;
    enum job_begun begun = JOB_REFUSED;
    if (keep_request(work, ask->request, &request, fault) && admit(work, ask->envelope, fault))
        begun = begin_run(work, ask, request, fault);
    if (begun != JOB_BEGUN) {
        work_free(work);
        return begun;
    }
    work->on_kept = ask->on_kept;
    work->ctx = ask->ctx;
    *ret = work;
    return begun;
}

/* --- after a restart ---------------------------------------------------------------------- */

static void job_work_resume(struct job_work *work, const struct job_fold *fold, uint64_t run) {
    const struct run_job_left left = {.run = run,
                                      .last_seq = fold->run.seq,
                                      .started_ms = fold->run.started_ms,
                                      .last_at_ms = fold->run.last_at_ms,
                                      .trace = fold->run.caller,
                                      .note = fold->run.note};
    const struct envelope no_caller = {0};
    struct run_job_options options = options_of(work);
    struct fault fault;
    work->job = run_job_resume(&options, &left);
    if (fold->run.note.attempt >= JOB_ATTEMPTS_MAX) {
        fault_set(&fault, NIMI_AI_PROVIDER_UNAVAILABLE,
                  "the server stopped in the middle of it %d times; it is not begun again",
                  JOB_ATTEMPTS_MAX);
        fail_with(work, &fault);
    } else if (!admit(work, &no_caller, &fault)) {
        fail_with(work, &fault); /* its connector was removed or changed */
    } else {
        run_job_queue(work->job);
        job_slot_run(&work->slot, work->job);
        job_slot_wait(&work->slot, work->request.head->app_id, work->owner);
    }
}

void job_work_take(uint64_t run, const struct store_section *sections, size_t count,
                   void *ctx) {
    struct nimi_instance *instance = ctx;
    struct job_fold fold;
    struct fault fault;
    struct str request;
    job_fold_init(&fold, RUN_FOLD_WHOLE);
    if (!run_fold_sections(&fold.run, sections, count) || !fold.run.request.len) {
        log_error("job %llu cannot be read, and is left as it is", (unsigned long long)run);
    } else {
        struct job_work *work = work_new(instance, fold.run.request.len);
        if (keep_request(work, fold.run.request, &request, &fault) && work->request.head) {
            job_work_resume(work, &fold, run);
        } else {
            log_error("job %llu cannot be read, and is left as it is", (unsigned long long)run);
            work_free(work);
        }
    }
    run_fold_done(&fold.run);
}

void job_work_leave_all(struct nimi_instance *instance) {
    LIST_EACH(&instance->jobs, link) {
        work_free(CONTAINER_OF(link, struct job_work, link));
    }
}
