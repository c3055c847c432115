/* runs: one run, and the runs of a session, as JSON. */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "wire/json.h"

#include <stdlib.h>

#define LIST_RUNS_MAX 100
#define NAME_MAX_BYTES (4 * KIB)
#define BODY_MAX_BYTES (32 * MIB)

/* --- a run as JSON ------------------------------------------------------------------------ */

static void write_run(struct json_writer *json, const struct run_summary *summary) {
    json_open_object(json);
    event_json_id(json, "id", summary->run);
    json_member_str(json, "state", run_summary_state(summary));
    json_member_bool(json, "interrupted", summary->interrupted);
    json_member_str(json, "workspace", summary->workspace);
    json_member_str(json, "user", summary->user);
    json_member_str(json, "session_id", summary->session);
    json_member_str(json, "agent", summary->agent);
    json_member_str(json, "contract", summary->contract);
    json_member_str(json, "text", summary->text);
    if (summary->parent) event_json_id(json, "parent", summary->parent);
    json_member_i64(json, "started_unix_ms", summary->started_ms);
    if (summary->ended_ms) json_member_i64(json, "ended_unix_ms", summary->ended_ms);
    json_member_u64(json, "last_seq", summary->last_seq);
    json_member_object(json, "usage");
    json_member_i64(json, "model_calls", summary->usage.call_sequence);
    event_json_count(json, "prompt_tokens", summary->usage.prompt);
    event_json_count(json, "completion_tokens", summary->usage.completion);
    event_json_count(json, "total_tokens", summary->usage.total);
    json_close(json);
    json_close(json);
}

/* --- GET /weir/v1/runs/{id}, POST /weir/v1/runs/{id}/cancel ------------------------------- */

struct get {
    struct route_call *call;
    struct api_instance *instance;
    bool cancels; /* cancel the run, if it is alive */
    struct api_caller caller;
    struct run_summary summary;
    struct run_scan *scan;
    struct cancel_run *cancel;
    struct late late; /* the refusal: no such run */
};

static void get_over(void *ctx) {
    struct get *get = ctx;
    late_stop(&get->late);
    run_scan_cancel(get->scan);
    cancel_run_forget(get->cancel);
    run_summary_done(&get->summary);
    free(get);
}

static const struct route_watch get_watch = {.left = get_over, .closed = get_over};

static void get_reply(const struct get *get, int status) {
    struct route_json reply;
    write_run(route_json_begin(&reply, BODY_MAX_BYTES), &get->summary);
    route_json_reply(&reply, get->call, status);
}

static void refuse_store(struct route_call *call, const struct err *failed) {
    route_refuse(call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
}

static void refuse_ended(struct route_call *call) {
    route_refuse(call, 409, STR("RUN_ENDED"), "this run has ended: there is nothing to cancel");
}

static void weir_runs_on_cancel(enum cancel_run_answer answer, const struct err *failed,
                                void *ctx) {
    struct get *get = ctx;
    get->cancel = NULL;
    switch (answer) {
    case CANCEL_RUN_ASKED: get_reply(get, 202); break;
    case CANCEL_RUN_OVER: refuse_ended(get->call); break;
    case CANCEL_RUN_FAILED: refuse_store(get->call, failed); break;
    }
}

static void runs_cancel(struct get *get) {
    if (get->summary.ended_ms)
        refuse_ended(get->call);
    else
        get->cancel =
            cancel_run_start(get->instance->sessions, get->instance->loop, get->summary.run,
                             STR("it was cancelled by request"), weir_runs_on_cancel, get);
}

static void get_answer(const struct err *failed, void *ctx) {
    struct get *get = ctx;
    const struct run_summary *summary = &get->summary;
    get->scan = NULL;
    if (failed)
        refuse_store(get->call, failed);
    else if (!summary->known || !api_may_see(&get->caller, summary->workspace, summary->user))
        late_refuse(&get->late, get->instance->loop, get->call, api_refuse_unknown_run_late,
                    NULL);
    else if (get->cancels)
        runs_cancel(get);
    else
        get_reply(get, 200);
}

static void get_run(struct route_call *call, struct api_instance *instance, bool cancels) {
    struct api_caller caller;
    uint64_t run;
    if (!api_identify(call, instance, &caller) || !api_run_id(call, &run)) return;
    struct get *get = MEM_NEW(struct get);
    late_begin(&get->late);
    get->call = call;
    get->instance = instance;
    get->cancels = cancels;
    get->caller = caller;
    run_summary_init(&get->summary, run);
    route_watch(call, &get_watch, get);
    if (run_summary_read_live(&get->summary, instance->directory, instance->loop)) {
        get_answer(NULL, get);
    } else {
        get->scan =
            run_scan_start(instance->loop, instance->store, &get->summary, get_answer, get);
    }
}

void api_get_run(struct route_call *call, void *ctx) {
    get_run(call, ctx, false);
}

void api_cancel_run(struct route_call *call, void *ctx) {
    get_run(call, ctx, true);
}

/* --- GET /weir/v1/runs?session_id= -------------------------------------------------------- */

struct list_call {
    struct api_instance *instance;
    struct route_call *call; /* NULL once it is gone */
    struct buf names;        /* owns the three names below */
    struct str workspace, user, session;
    struct store_load load; /* the runs in the store */
    bool loading;
    struct session_runs live; /* the runs that were live when the request arrived */
    size_t next;              /* index of the next run: the store's, then the live ones */
    struct run_summary summary;
    struct run_scan *scan; /* while a run is read from the store */
    struct route_json reply;
};

static void list_free(struct list_call *list) {
    run_scan_cancel(list->scan);
    run_summary_done(&list->summary);
    arena_free(list->load.arena);
    buf_done(&list->reply.text);
    buf_done(&list->names);
    free(list);
}

static void list_over(void *ctx) {
    struct list_call *list = ctx;
    list->call = NULL;
    if (!list->loading) list_free(list);
}

static const struct route_watch list_watch = {.left = list_over, .closed = list_over};

static bool was_stored(const struct store_load *load, uint64_t run) {
    for (size_t i = 0; i < load->section_count; i++) {
        if (load->sections[i].run == run) return true;
    }
    return false;
}

static void list_end(struct list_call *list) {
    json_close(&list->reply.w);
    json_member_bool(&list->reply.w, "more", list->load.more);
    route_watch(list->call, NULL, NULL);
    route_json_reply(&list->reply, list->call, 200);
    list_free(list);
}

static void list_refuse(struct list_call *list, const struct err *failed) {
    route_watch(list->call, NULL, NULL);
    route_refuse(list->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    list_free(list);
}

static void list_go_on(struct list_call *list);

static void list_scanned(const struct err *failed, void *ctx) {
    struct list_call *list = ctx;
    list->scan = NULL;
    if (failed) {
        list_refuse(list, failed);
        return;
    }
    if (list->summary.known) write_run(&list->reply.w, &list->summary);
    list_go_on(list);
}

/* The next run to list, or 0: the store's runs, oldest first, then live runs not in the store
 * yet. */
static uint64_t list_next(struct list_call *list) {
    const struct store_load *load = &list->load;
    if (list->next < load->section_count) return load->sections[list->next++].run;
    while (list->next < load->section_count + list->live.count) {
        uint64_t run = list->live.runs[list->next++ - load->section_count];
        if (!was_stored(load, run)) return run;
    }
    return 0;
}

/* List one run after another: from its journal if that is complete, otherwise from the
 * store. */
static void list_go_on(struct list_call *list) {
    struct api_instance *instance = list->instance;
    uint64_t run;
    while ((run = list_next(list))) {
        run_summary_done(&list->summary);
        run_summary_init(&list->summary, run);
        if (!run_summary_read_live(&list->summary, instance->directory, instance->loop)) {
            list->scan = run_scan_start(instance->loop, instance->store, &list->summary,
                                        list_scanned, list);
            return;
        }
        write_run(&list->reply.w, &list->summary);
    }
    list_end(list);
}

static void list_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct list_call *list = ctx;
    (void)load; /* it is list->load */
    list->loading = false;
    if (!list->call) {
        list_free(list);
        return;
    }
    if (failed) {
        list_refuse(list, failed);
        return;
    }
    json_member_array(route_json_object(&list->reply, BODY_MAX_BYTES), "runs");
    list_go_on(list);
}

/* A name from the query, or `otherwise`. False: it was refused. */
static bool take_name(struct list_call *list, struct str name, struct str otherwise,
                      struct str *ret) {
    struct buf value = {.at = buf_room(&list->names, NAME_MAX_BYTES),
                        .room = NAME_MAX_BYTES,
                        .max_bytes = NAME_MAX_BYTES};
    enum query_value found = route_query(list->call, name, &value);
    if (found == QUERY_ABSENT) buf_append(&value, otherwise);
    if (found == QUERY_BAD || !buf_ok(&value)) {
        route_refuse(list->call, 400, STR("INVALID_INPUT"),
                     "the parameter " STR_FMT " is not valid text, or too long", STR_ARG(name));
        return false;
    }
    buf_grew(&list->names, value.len);
    *ret = buf_str(&value);
    return true;
}

static bool take_names(struct list_call *list, const struct api_caller *caller) {
    char *room = buf_room(&list->names, 3 * NAME_MAX_BYTES); /* the views must not move */
    (void)room;
    return take_name(list, STR("workspace"),
                     caller->all_workspaces ? STR("default") : api_workspace(caller),
                     &list->workspace) &&
           take_name(list, STR("user"), caller->all_users ? STR("anonymous") : api_user(caller),
                     &list->user) &&
           take_name(list, STR("session_id"), STR_EMPTY, &list->session);
}

void api_list_runs(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_caller caller;
    if (!api_query_has(call, STR("session_id"))) {
        api_list_newest_runs(call, instance);
        return;
    }
    if (!api_identify(call, instance, &caller)) return;
    struct list_call *list = MEM_NEW(struct list_call);
    *list = (struct list_call){.instance = instance, .call = call};
    buf_init(&list->names, 3 * NAME_MAX_BYTES);
    run_summary_init(&list->summary, 0);
    if (!take_names(list, &caller)) {
        list_free(list);
        return;
    }
    bool allowed = api_may_see(&caller, list->workspace, list->user);
    if (list->session.len == 0 || !allowed) {
        if (allowed) {
            route_refuse(
                call, 400, STR("INVALID_INPUT"),
                "say whose runs: ?session_id=... (and user=, workspace= where the caller "
                "may see several)");
        } else {
            route_refuse(call, 403, STR("FORBIDDEN"),
                         "these runs belong to another workspace or user");
        }
        list_free(list);
        return;
    }
    /* Before asking the store, so that a run that begins or ends meanwhile is in at least one
     * list. */
    directory_of_session(instance->directory, list->workspace, list->user, list->session,
                         &list->live);
    list->loading = true;
    route_watch(call, &list_watch, list);
    list->load = (struct store_load){.question = STORE_SESSION_RUNS,
                                     .workspace = list->workspace,
                                     .user = list->user,
                                     .session = list->session,
                                     .runs_max = LIST_RUNS_MAX,
                                     .home = instance->loop,
                                     .on_loaded = list_loaded,
                                     .ctx = list};
    store_load(instance->store, &list->load);
}
