/* A workflow's nodes run: each when what it needs is there, independent ones at once. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "contract/nimi/job/workflow_inner.h"
#include "contract/nimi/job/workflow_value.h"
#include "contract/nimi/ulid.h"
#include "session/session.h"
#include "turn/cancel_run.h"

#include <assert.h>
#include <stdio.h>

#define INPUTS_MAX_BYTES (12 * MIB)
#define ASK_MAX_BYTES (64 * MIB)
#define NOTE_MAX_BYTES (WORKFLOW_OUTPUT_MAX_BYTES + 64 * KIB)
#define ERROR_MAX_BYTES 1024
#define STARTS_A_TURN 16 /* nodes started before the loop serves others */
#define NO_NODE SIZE_MAX

static size_t index_of(const struct node_run *node) {
    return (size_t)(node - node->work->nodes);
}

static const struct graph_node *graph_of(const struct node_run *node) {
    return &node->work->graph.nodes[index_of(node)];
}

/* The only function that writes a node's state, except that it is restored after a restart. */
static void node_move(struct node_run *node, enum node_state next) {
    assert(states_allow(node_states, node->note.state, next));
    node->note.state = node->work->views[index_of(node)].state = next;
}

static void advance_later(struct workflow_work *work) {
    loop_defer(work->instance->host->loop, &work->advance);
}

/* --- notes -------------------------------------------------------------------------------- */

/* Note the node's state; subscribers see it, as `event`, once it is on disk. Every member of a
 * note has a limit. A note that is too long nevertheless ends the workflow, at the loop's next
 * turn: callers still use the node. */
static void node_report(struct node_run *node, int32_t event) {
    struct workflow_note note = node->note;
    struct buf bytes;
    buf_init(&bytes, NOTE_MAX_BYTES);
    note.node = graph_of(node)->node->node_id;
    note.event = event;
    note.job = text_str(node->job);
    note.error = text_str(node->error);
    note.callback = graph_of(node)->external ? graph_of(node)->node->callback_ref : STR_EMPTY;
    if (event != NIMI_WORKFLOW_EVENT_NODE_COMPLETED) note.output = STR_EMPTY;
    if (workflow_note_write(&note, &bytes)) {
        run_job_item(node->work->job, STR(WORKFLOW_NODE), buf_str(&bytes));
        run_job_gate(node->work->job);
    } else {
        node->work->unwritten = true;
        advance_later(node->work);
    }
    buf_done(&bytes);
}

static void set_error(struct node_run *node, struct str why) {
    text_done(&node->error);
    node->error = text_copy(str_head(why, utf8_cut(why, ERROR_MAX_BYTES)));
}

/* --- outputs ------------------------------------------------------------------------------ */

static void drop_output(struct node_run *node) {
    node->work->held_bytes -= node->output.len;
    text_done(&node->output);
}

/* An output is held while a node after it is not over; the last one is the workflow's. */
static void release_outputs(struct workflow_work *work) {
    for (size_t i = 0; i < work->graph.count; i++) {
        const struct graph_node *node = &work->graph.nodes[i];
        bool needed = i == work->last;
        for (size_t a = 0; a < node->after_count && !needed; a++)
            needed = !node_is_over(work->views[node->after[a]].state);
        if (!needed) drop_output(&work->nodes[i]);
    }
}

static void add_artifacts(struct workflow_work *work, struct json output) {
    struct json_reader reader = json_enter(json_find(output, STR("artifacts")));
    struct json item;
    while (json_next_item(&reader, &item)) {
        if (work->artifacts.len) buf_append(&work->artifacts, STR(","));
        buf_append(&work->artifacts, item.raw);
    }
}

static size_t target_of(const struct workflow_work *work, struct json output) {
    struct json target = json_find(output, STR("selected_target"));
    for (size_t i = 0; i < work->graph.count; i++) {
        if (json_is(target, work->graph.nodes[i].node->node_id)) return i;
    }
    return NO_NODE;
}

/* The node has this output. */
static void keep_output(struct node_run *node, struct str output) {
    struct workflow_work *work = node->work;
    size_t index = index_of(node);
    struct json made = json_of(output);
    node->output = text_copy(output);
    work->held_bytes += output.len;
    work->made_bytes += output.len;
    work->last = index;
    if (graph_of(node)->is_branch) work->views[index].selected = target_of(work, made);
    if (graph_of(node)->is_ai) add_artifacts(work, made);
}

/* Append {"slot": value, ...} of what the nodes before it have made. */
static bool write_inputs(const struct node_run *node, struct buf *out) {
    const struct graph_node *graph = graph_of(node);
    struct buf value;
    struct json_writer w = json_writer(out);
    buf_init(&value, WORKFLOW_OUTPUT_MAX_BYTES);
    json_open_object(&w);
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct workflow_input *input = &graph->inputs[i];
        struct str output = text_str(node->work->nodes[input->from].output);
        buf_clear(&value);
        if (!output.len || !workflow_output_named(output, input->output, &value) || !value.len)
            continue;
        json_key(&w, input->slot);
        json_write_raw(&w, buf_str(&value));
    }
    json_close(&w);
    buf_done(&value);
    return buf_ok(out);
}

/* --- the end of the workflow -------------------------------------------------------------- */

static void write_ids(const struct workflow_work *work, struct json_writer *w, const char *key,
                      enum node_state state) {
    json_member_array(w, key);
    for (size_t i = 0; i < work->graph.count; i++) {
        if (work->views[i].state == state)
            json_write_str(w, work->graph.nodes[i].node->node_id);
    }
    json_close(w);
}

static void write_result(const struct workflow_work *work, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "task_id", work->fold.run.id);
    json_member_str(&w, "workflow_type", work->request.definition->workflow_type);
    write_ids(work, &w, "completed_nodes", NODE_COMPLETED);
    write_ids(work, &w, "skipped_nodes", NODE_SKIPPED);
    write_ids(work, &w, "failed_nodes", NODE_FAILED);
    json_member_array(&w, "artifacts");
    if (work->artifacts.len) json_write_raw(&w, buf_str(&work->artifacts));
    json_close(&w);
    if (work->last != NO_NODE) {
        json_member_str(&w, "last_node", work->graph.nodes[work->last].node->node_id);
        json_member_raw(&w, "output", text_str(work->nodes[work->last].output));
    }
    json_close(&w);
}

static void complete(struct workflow_work *work) {
    struct buf result;
    buf_init(&result, NOTE_MAX_BYTES);
    write_result(work, &result);
    if (buf_ok(&result)) {
        run_job_item(work->job, STR(WORKFLOW_RESULT), buf_str(&result));
        run_job_done(work->job, STR_EMPTY);
        workflow_run_stop(work, STR("the workflow is over"));
    } else {
        workflow_fail(work, NIMI_AI_OUTPUT_INVALID,
                      STR("what it has made is longer than one message holds"));
    }
    buf_done(&result);
}

static void fail_by(struct workflow_work *work, size_t index) {
    const struct node_run *node = &work->nodes[index];
    struct str id = work->graph.nodes[index].node->node_id;
    struct buf why;
    buf_init(&why, 2 * ERROR_MAX_BYTES);
    buf_printf(&why, "node '" STR_FMT "': " STR_FMT, STR_ARG(id),
               STR_ARG(text_str(node->error)));
    workflow_fail(work, node->note.reason, buf_str(&why));
    buf_done(&why);
}

static void finish_if_over(struct workflow_work *work) {
    for (size_t i = 0; i < work->graph.count; i++) {
        if (!node_is_over(work->views[i].state)) return;
    }
    size_t failed = workflow_failure(&work->graph, work->views);
    if (failed == NO_NODE) {
        complete(work);
    } else {
        fail_by(work, failed);
    }
}

/* --- the end of a node -------------------------------------------------------------------- */

/* A node fails, or its attempt for the last time. */
static void node_fail(struct node_run *node, int reason, struct str why) {
    struct workflow_work *work = node->work;
    set_error(node, why);
    node->note.reason = reason;
    node_move(node, NODE_FAILED);
    if (graph_of(node)->external) node_report(node, NIMI_WORKFLOW_EVENT_NODE_EXTERNAL_FAILED);
    node_report(node, NIMI_WORKFLOW_EVENT_NODE_COMPLETED);
    if (workflow_may_recover(&work->graph, index_of(node))) {
        advance_later(work);
    } else {
        fail_by(work, index_of(node));
    }
}

static void node_complete(struct node_run *node, struct str output) {
    struct workflow_work *work = node->work;
    struct json value;
    struct err e;
    if (output.len > WORKFLOW_OUTPUT_MAX_BYTES ||
        work->held_bytes + output.len > WORKFLOW_HELD_MAX_BYTES ||
        work->made_bytes + output.len > WORKFLOW_MADE_MAX_BYTES) {
        node_fail(node, NIMI_AI_OUTPUT_INVALID,
                  STR("its output, all that the workflow holds, or all that it has made is too "
                      "large: 3, 8 and 32 MiB at most"));
        return;
    }
    if (!json_read_depth(output, WORKFLOW_DEPTH_MAX, &value, &e)) {
        node_fail(node, NIMI_AI_OUTPUT_INVALID, STR("its output is nested too deeply"));
        return;
    }
    node_move(node, NODE_COMPLETED);
    node->note.percent = 100;
    node->note.output = output;
    if (graph_of(node)->external)
        node_report(node, NIMI_WORKFLOW_EVENT_NODE_EXTERNAL_COMPLETED);
    node_report(node, NIMI_WORKFLOW_EVENT_NODE_COMPLETED);
    node->note.output = STR_EMPTY;
    keep_output(node, value.raw);
    release_outputs(work);
    advance_later(work);
}

static void node_skip(struct node_run *node, enum node_skip why) {
    node->note.skip = node->work->views[index_of(node)].skip = why;
    node_move(node, NODE_SKIPPED);
    node_report(node, NIMI_WORKFLOW_EVENT_NODE_SKIPPED);
}

/* --- AI nodes ----------------------------------------------------------------------------- */

static void attempt_failed(struct node_run *node, int reason, struct str why) {
    workflow_ask_free(node->ask);
    node->ask = NULL;
    if (!workflow_attempt_helps(reason) ||
        node->note.retries >= graph_of(node)->node->retry_max_attempts) {
        node_fail(node, reason, why);
        return;
    }
    uint64_t wait_ms = workflow_backoff_ms(&graph_of(node)->backoff, node->note.retries);
    set_error(node, why);
    node->note.reason = reason;
    node->note.percent = 0;
    node->note.next_ms = clock_unix_ms() + (int64_t)wait_ms;
    node_move(node, NODE_RETRYING);
    node_report(node, NIMI_WORKFLOW_EVENT_NODE_PROGRESS);
    timer_start(&node->retry, wait_ms);
}

/* The job's id, and how far it is. */
static void on_job_changed(const struct job_fold *job, void *ctx) {
    struct node_run *node = ctx;
    bool external = graph_of(node)->external;
    bool runs = job->job.status == NIMI_SCENARIO_JOB_STATUS_RUNNING;
    if (!str_equal(text_str(node->job), job->job.job_id)) {
        text_done(&node->job);
        node->job = text_copy(job->job.job_id);
        node_report(node, external ? NIMI_WORKFLOW_EVENT_NODE_EXTERNAL_SUBMITTED : 0);
    }
    if (external && runs && !node->external_runs) {
        node->external_runs = true;
        node_report(node, NIMI_WORKFLOW_EVENT_NODE_EXTERNAL_RUNNING);
    }
    if (runs && job->job.progress_percent > node->note.percent) {
        node->note.percent = job->job.progress_percent;
        node_report(node, NIMI_WORKFLOW_EVENT_NODE_PROGRESS);
    }
}

static void job_completed(struct node_run *node, const struct job_fold *job) {
    struct fault fault;
    struct buf output;
    buf_init(&output, WORKFLOW_OUTPUT_MAX_BYTES);
    bool whole = workflow_node_take(job, &output, &fault);
    workflow_ask_free(node->ask);
    node->ask = NULL;
    if (whole) {
        node_complete(node, buf_str(&output));
    } else {
        node_fail(node, fault.reason, err_text(&fault.why));
    }
    buf_done(&output);
}

static void on_ended(const struct job_fold *job, const struct fault *failed, void *ctx) {
    struct node_run *node = ctx;
    struct buf why;
    if (failed) {
        attempt_failed(node, failed->reason, err_text(&failed->why));
        return;
    }
    on_job_changed(job, node); /* a job of an earlier process may be over already */
    if (job->job.status == NIMI_SCENARIO_JOB_STATUS_COMPLETED) {
        job_completed(node, job);
        return;
    }
    bool cancelled = job->job.status == NIMI_SCENARIO_JOB_STATUS_CANCELED;
    buf_init(&why, 2 * ERROR_MAX_BYTES);
    buf_printf(&why, STR_FMT, STR_ARG(str_head(job->job.reason_detail, ERROR_MAX_BYTES)));
    if (cancelled) {
        workflow_ask_free(node->ask);
        node->ask = NULL;
        node_fail(node, NIMI_AI_PROVIDER_UNAVAILABLE, STR("its job was cancelled"));
    } else {
        attempt_failed(node, job->job.reason_code, buf_str(&why));
    }
    buf_done(&why);
}

static const struct workflow_ask_events ask_events = {on_job_changed, on_ended};

static void start_ask(struct node_run *node,
                      const struct nimi_submit_scenario_job_request *request) {
    struct workflow_work *work = node->work;
    char key[96];
    snprintf(key, sizeof(key), "nimi-workflow:" STR_FMT ":%zu:%d", STR_ARG(work->fold.run.id),
             index_of(node), (int)node->note.attempt);
    node->ask =
        workflow_ask_start(&(struct workflow_ask_options){.instance = work->instance,
                                                          .request = request,
                                                          .user = text_str(work->user),
                                                          .owner = text_str(work->owner),
                                                          .trace = text_str(work->trace),
                                                          .caller = run_job_trace(work->job),
                                                          .key = str_from(key),
                                                          .events = &ask_events,
                                                          .ctx = node});
}

static void ask_with(struct node_run *node, struct json inputs) {
    struct workflow_work *work = node->work;
    struct nimi_submit_scenario_job_request request;
    struct arena *arena = arena_new(ASK_MAX_BYTES);
    struct fault fault;
    if (workflow_node_ask(graph_of(node), inputs, text_str(work->app),
                          work->request.subject_user_id, arena, &request, &fault)) {
        start_ask(node, &request);
    } else {
        node_fail(node, fault.reason, err_text(&fault.why));
    }
    arena_free(arena);
}

/* --- starting a node ---------------------------------------------------------------------- */

static struct workflow_merged count_before(const struct node_run *node) {
    const struct graph_node *graph = graph_of(node);
    struct workflow_merged merged = {.all = graph->before_count};
    for (size_t i = 0; i < graph->before_count; i++)
        merged.completed += node->work->views[graph->before[i]].state == NODE_COMPLETED;
    return merged;
}

static void make_with(struct node_run *node, struct json inputs) {
    const struct workflow_merged merged = count_before(node);
    struct fault fault;
    struct buf output;
    buf_init(&output, WORKFLOW_OUTPUT_MAX_BYTES);
    if (workflow_node_make(graph_of(node), inputs, &merged, &output, &fault)) {
        if (buf_ok(&output)) {
            node_complete(node, buf_str(&output));
        } else {
            node_fail(node, NIMI_AI_OUTPUT_INVALID, STR("its output is larger than 3 MiB"));
        }
    } else {
        node_fail(node, fault.reason, err_text(&fault.why));
    }
    buf_done(&output);
}

/* Do what the attempt is. It may have been begun by an earlier process. */
static void node_do(struct node_run *node) {
    struct buf inputs;
    buf_init(&inputs, INPUTS_MAX_BYTES);
    if (!write_inputs(node, &inputs)) {
        node_fail(node, NIMI_AI_INPUT_INVALID, STR("its inputs are larger than 12 MiB"));
    } else if (graph_of(node)->is_ai) {
        ask_with(node, json_of(buf_str(&inputs)));
    } else {
        make_with(node, json_of(buf_str(&inputs)));
    }
    buf_done(&inputs);
}

static void node_start(struct node_run *node) {
    node->note.attempt++;
    node->note.percent = node->note.reason = 0;
    node->external_runs = false;
    text_done(&node->job);
    text_done(&node->error);
    node_move(node, NODE_RUNNING);
    node_report(node, NIMI_WORKFLOW_EVENT_NODE_STARTED);
    node_do(node);
}

static void on_retry(void *ctx) {
    struct node_run *node = ctx;
    node->note.retries++;
    node->note.next_ms = 0;
    node_start(node);
}

/* --- all nodes ---------------------------------------------------------------------------- */

/* Start or skip what can be, at most STARTS_A_TURN nodes. The end of a node calls again. */
static void on_advance(void *ctx) {
    struct workflow_work *work = ctx;
    size_t started = 0;
    if (work->unwritten) {
        workflow_fail(work, NIMI_AI_OUTPUT_INVALID,
                      STR("the state of a node is longer than the store takes"));
        return;
    }
    for (size_t i = 0; i < work->graph.count && work->arena; i++) {
        enum node_skip why;
        enum node_turn turn = workflow_turn(&work->graph, work->views, i, &why);
        if (turn == TURN_WAIT) continue;
        if (started++ == STARTS_A_TURN) {
            advance_later(work);
            return;
        }
        if (turn == TURN_SKIP) {
            node_skip(&work->nodes[i], why);
            advance_later(work);
        } else {
            node_start(&work->nodes[i]);
        }
    }
    if (work->arena) finish_if_over(work);
}

static void on_timeout(void *ctx) {
    workflow_fail(ctx, NIMI_WF_TIMEOUT,
                  STR("the workflow has taken longer than its timeout_ms, or two minutes"));
}

/* --- beginning, and after a restart ------------------------------------------------------- */

static void restore_node(struct node_run *node, const struct workflow_note *from) {
    struct node_view *view = &node->work->views[index_of(node)];
    node->note = *from;
    node->note.node = node->note.job = node->note.error = node->note.output = STR_EMPTY;
    node->job = text_copy(from->job);
    node->error = text_copy(from->error);
    view->state = from->state;
    view->skip = from->skip;
    if (from->state == NODE_COMPLETED) keep_output(node, from->output);
}

/* Cancel the job of an attempt that is not followed, if it was taken up already. */
static void cancel_job(const struct node_run *node) {
    struct session_table *sessions = node->work->engine->sessions;
    uint64_t run;
    if (ulid_number(text_str(node->job), &run))
        cancel_run_send(sessions, node->work->instance->host->loop, run,
                        STR("its workflow does not go on with it"));
}

/* Go on with an attempt that an earlier process began. */
static void node_resume(struct node_run *node) {
    int64_t wait_ms = node->note.next_ms - clock_unix_ms();
    if (node->note.state == NODE_RETRYING) {
        timer_start(&node->retry, wait_ms > 0 ? (uint64_t)wait_ms : 0);
    } else if (node->note.state == NODE_RUNNING && graph_of(node)->manual) {
        cancel_job(node);
        node_fail(node, NIMI_AI_PROVIDER_UNAVAILABLE,
                  STR("the server stopped in the middle of it, and its resume_strategy is "
                      "MANUAL: submit the workflow again"));
    } else if (node->note.state == NODE_RUNNING) {
        node_do(node);
    }
}

/* A stored definition is checked as a new one is: an earlier version may have accepted more. */
static bool read_request(struct workflow_work *work, struct fault *fault) {
    struct str bytes = work->fold.run.request;
    struct err e;
    work->arena = arena_new(32 * bytes.len + 4 * MIB);
    if (!pb_decode_view(&nimi_submit_workflow_request_table, bytes, work->arena, &work->request,
                        &e) ||
        !work->request.definition ||
        !workflow_graph_read(work->request.definition, work->arena, &work->graph, fault))
        return false;
    size_t count = work->graph.count;
    work->nodes = arena_alloc(work->arena, count * sizeof(*work->nodes));
    work->views = arena_alloc(work->arena, count * sizeof(*work->views));
    return work->nodes && work->views;
}

static uint64_t left_ms(const struct workflow_work *work) {
    int32_t asked_ms = work->request.timeout_ms;
    int64_t total_ms = asked_ms > 0 ? asked_ms : WORKFLOW_DEFAULT_MS;
    int64_t left = work->fold.running_ms + total_ms - clock_unix_ms();
    if (left > total_ms) left = total_ms; /* the clock was set back */
    return left > 0 ? (uint64_t)left : 0;
}

static void run_nodes(struct workflow_work *work) {
    for (size_t i = 0; i < work->graph.count; i++) {
        struct node_run *node = &work->nodes[i];
        *node = (struct node_run){.work = work};
        timer_init(&node->retry, work->instance->host->loop, on_retry, node);
        restore_node(node, &work->fold.nodes[i]);
    }
    release_outputs(work);
    timer_start(&work->timeout, left_ms(work));
    for (size_t i = 0; i < work->graph.count && work->arena; i++) node_resume(&work->nodes[i]);
    if (work->arena) advance_later(work);
}

static void workflow_run_on_read(const struct err *failed, void *ctx) {
    struct workflow_work *work = ctx;
    struct fault fault;
    work->find = NULL;
    fault_set(&fault, NIMI_AI_PROVIDER_UNAVAILABLE,
              "the workflow cannot be read from the store");
    if (!failed && run_fold_is_shown(&work->fold.run) && read_request(work, &fault)) {
        run_nodes(work);
    } else {
        workflow_fail(work, fault.reason, err_text(&fault.why));
    }
}

void workflow_run_init(struct workflow_work *work) {
    work->last = NO_NODE;
    buf_init(&work->artifacts, WORKFLOW_OUTPUT_MAX_BYTES);
    timer_init(&work->timeout, work->instance->host->loop, on_timeout, work);
    task_init(&work->advance, on_advance, work);
}

void workflow_run_start(struct workflow_work *work) {
    struct loop *loop = work->instance->host->loop;
    run_fold_done(&work->fold.run);
    workflow_fold_init(&work->fold, RUN_FOLD_WHOLE);
    work->find = run_find_new(&(struct run_find_options){.loop = loop,
                                                         .sessions = work->engine->sessions,
                                                         .run = run_job_id(work->job),
                                                         .fold = &work->fold.run,
                                                         .on_found = workflow_run_on_read,
                                                         .ctx = work});
}

static void stop_nodes(struct workflow_work *work, struct str why) {
    for (size_t i = 0; work->nodes && i < work->graph.count; i++) {
        struct node_run *node = &work->nodes[i];
        if (why.at) {
            workflow_ask_cancel(node->ask, why);
        } else {
            workflow_ask_free(node->ask);
        }
        timer_stop(&node->retry);
        text_done(&node->job);
        text_done(&node->error);
        text_done(&node->output);
    }
}

void workflow_run_stop(struct workflow_work *work, struct str why) {
    if (!work->fold.run.arena) return;
    run_find_free(work->find);
    work->find = NULL;
    stop_nodes(work, why);
    timer_stop(&work->timeout);
    task_cancel(&work->advance);
    buf_done(&work->artifacts);
    run_fold_done(&work->fold.run);
    arena_free(work->arena);
    work->arena = NULL;
    work->nodes = NULL;
    work->graph.count = 0;
}
