#include "contract/nimi/job/workflow_work.h"

#include "base/log.h"
#include "base/mem.h"
#include "contract/nimi/job/workflow_inner.h"
#include "contract/nimi/ulid.h"

#include <stdlib.h>

#define WORK_BYTES (16 * KIB) /* a live workflow without its request */

/* --- ending ------------------------------------------------------------------------------- */

static void work_stop(struct workflow_work *work, struct str why) {
    workflow_run_stop(work, why);
    job_slot_release(&work->slot);
}

/* Its nodes' jobs are left as they are: they go on, or are taken up with it. */
static void work_free(struct workflow_work *work) {
    struct nimi_instance *instance = work->instance;
    work_stop(work, (struct str){0});
    list_remove(&work->link);
    instance->workflow_count--;
    instance->workflow_bytes -= work->charged_bytes;
    run_job_free(work->job);
    text_done(&work->app);
    text_done(&work->user);
    text_done(&work->owner);
    text_done(&work->trace);
    engine_unref(work->engine);
    free(work);
}

void workflow_fail(struct workflow_work *work, int reason, struct str message) {
    const struct reason *row = reason_get(reason);
    run_job_fail(work->job, row->code, str_from(row->name), message);
    work_stop(work, STR("the workflow has failed"));
}

/* --- callbacks of the job ----------------------------------------------------------------- */

static void report_kept(struct workflow_work *work, uint64_t run) {
    workflow_kept_fn *tell = work->on_kept;
    work->on_kept = NULL;
    if (tell) tell(run, work->ctx);
}

/* It is on disk. */
static void begin_when_ready(struct workflow_work *work) {
    run_job_queue(work->job);
    job_slot_run(&work->slot, work->job);
    job_slot_wait(&work->slot, text_str(work->app), text_str(work->owner));
}

static void on_job_kept(void *ctx) {
    struct workflow_work *work = ctx;
    report_kept(work, run_job_id(work->job));
    begin_when_ready(work);
}

static void on_job_running(void *ctx) {
    workflow_run_start(ctx);
}

static void on_job_cancel(struct str why, void *ctx) {
    struct workflow_work *work = ctx;
    run_job_cancel(work->job, why);
    work_stop(work, STR("the workflow was cancelled"));
    report_kept(work, 0);
}

static void on_job_over(void *ctx) {
    work_free(ctx);
}

static const struct run_job_owner owner = {on_job_kept, on_job_running, on_job_cancel,
                                           on_job_over};

void workflow_work_forget(struct workflow_work *work) {
    work->on_kept = NULL;
}

/* --- beginning ---------------------------------------------------------------------------- */

static struct workflow_work *work_new(struct nimi_instance *instance, size_t request_bytes,
                                      struct str app, struct str user) {
    struct workflow_work *work = MEM_NEW(struct workflow_work);
    work->instance = instance;
    work->engine = engine_ref(instance->host->engine);
    work->app = text_copy(app);
    work->user = text_copy(user);
    work->charged_bytes = WORK_BYTES + request_bytes;
    job_slot_init(&work->slot, instance->runtime->workflows, FAIR_INTERACTIVE,
                  instance->host->loop);
    workflow_run_init(work);
    list_append(&instance->workflows, &work->link);
    instance->workflow_count++;
    instance->workflow_bytes += work->charged_bytes;
    return work;
}

static struct run_job_options options_of(struct workflow_work *work) {
    return (struct run_job_options){.host = work->instance->host,
                                    .engine = work->engine,
                                    .workspace = text_str(work->app),
                                    .user = text_str(work->user),
                                    .text = STR_EMPTY,
                                    .contract = STR(WORKFLOW_CONTRACT),
                                    .key = STR_EMPTY,
                                    .print = STR_EMPTY,
                                    .owner = &owner,
                                    .ctx = work};
}

static void note_known(struct workflow_work *work) {
    char task[ULID_LEN + 1];
    struct buf known;
    buf_init(&known, 4 * KIB);
    ulid_new_numbered(task, run_job_started_ms(work->job), run_job_id(work->job));
    struct json_writer w = json_writer(&known);
    json_open_object(&w);
    json_member_str(&w, "task", str_from(task));
    json_member_str(&w, "trace", text_str(work->trace));
    json_close(&w);
    run_job_item(work->job, STR(WORKFLOW_KNOWN), buf_str(&known));
    buf_done(&known);
}

bool workflow_work_begin(const struct workflow_begin *begin, struct workflow_work **ret,
                         struct err *e) {
    if (begin->instance->workflow_bytes + begin->request.len + WORK_BYTES >
        WORKFLOW_LIVE_MAX_BYTES)
        return err_set(e, ERR_RESOURCE_EXHAUSTED,
                       "too many workflows are not over yet; ask again later");
    struct workflow_work *work =
        work_new(begin->instance, begin->request.len, begin->app, begin->user);
    struct run_job_options options = options_of(work);
    options.text = begin->type;
    options.request = begin->request;
    options.key = begin->key;
    options.print = begin->print;
    options.key_mark = begin->key_mark;
    options.trace = begin->caller;
    work->owner = text_copy(begin->owner);
    work->trace = text_copy(begin->trace);
    if (!run_job_start(&options, &work->job, e)) {
        work_free(work);
        return false;
    }
    work->on_kept = begin->on_kept;
    work->ctx = begin->ctx;
    note_known(work);
    run_job_submit(work->job);
    *ret = work;
    return true;
}

/* --- after a restart ---------------------------------------------------------------------- */

static void workflow_work_resume(struct workflow_work *work, const struct workflow_fold *fold,
                                 uint64_t run) {
    const struct run_job_left left = {.run = run,
                                      .last_seq = fold->run.seq,
                                      .started_ms = fold->run.started_ms,
                                      .last_at_ms = fold->run.last_at_ms,
                                      .trace = fold->run.caller,
                                      .note = fold->run.note};
    struct run_job_options options = options_of(work);
    work->trace = text_copy(fold->trace);
    work->job = run_job_resume(&options, &left);
    if (fold->run.note.attempt >= WORKFLOW_ATTEMPTS_MAX) {
        workflow_fail(work, NIMI_AI_PROVIDER_UNAVAILABLE,
                      STR("the server stopped in the middle of it too often"));
        return;
    }
    begin_when_ready(work);
}

static size_t bytes_of(const struct store_section *sections, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count && i < 1; i++) bytes += sections[i].events.len;
    return bytes;
}

static bool is_workflow(const struct store_section *sections, size_t count) {
    struct event event = {0};
    struct err e;
    struct str rest = count ? sections[0].events : STR_EMPTY;
    return rest.len && event_decode(&rest, &event, &e) && event.kind == EVENT_STARTED &&
           str_equal(event.started.contract, STR(WORKFLOW_CONTRACT));
}

/* Its first events were folded: the request is among them. */
static struct workflow_work *work_of(const struct workflow_fold *fold, size_t bytes,
                                     struct nimi_instance *instance) {
    struct str user = fold->run.subject.len ? fold->run.subject : STR(WORKFLOW_ANONYMOUS);
    return work_new(instance, bytes, fold->run.app, user);
}

static void on_rest_read(const struct err *failed, void *ctx) {
    struct workflow_work *work = ctx;
    uint64_t run = work->left_run;
    work->find = NULL;
    if (failed || work->fold.run.foreign) {
        log_error("workflow %llu cannot be read, and is left as it is",
                  (unsigned long long)run);
        work_free(work);
        return;
    }
    workflow_work_resume(work, &work->fold, run);
}

/* The rest of its events is read from the store, one piece after the other. */
static void read_rest(struct workflow_work *work, uint64_t run) {
    work->left_run = run;
    workflow_fold_init(&work->fold, RUN_FOLD_SHOWN);
    work->find = run_find_new(&(struct run_find_options){.loop = work->instance->host->loop,
                                                         .sessions = work->engine->sessions,
                                                         .run = run,
                                                         .fold = &work->fold.run,
                                                         .on_found = on_rest_read,
                                                         .ctx = work});
}

bool workflow_work_take(uint64_t run, const struct store_section *sections, size_t count,
                        bool whole, struct nimi_instance *instance) {
    struct workflow_fold fold;
    if (!is_workflow(sections, count)) return false;
    workflow_fold_init(&fold, RUN_FOLD_SHOWN);
    bool read = run_fold_sections(&fold.run, sections, count) && run_fold_is_shown(&fold.run);
    if (!read) {
        log_error("workflow %llu cannot be read, and is left as it is",
                  (unsigned long long)run);
    } else if (whole) {
        workflow_work_resume(work_of(&fold, bytes_of(sections, count), instance), &fold, run);
    } else {
        read_rest(work_of(&fold, bytes_of(sections, count), instance), run);
    }
    run_fold_done(&fold.run);
    return true;
}

void workflow_work_leave_all(struct nimi_instance *instance) {
    LIST_EACH(&instance->workflows, link) {
        work_free(CONTAINER_OF(link, struct workflow_work, link));
    }
}
