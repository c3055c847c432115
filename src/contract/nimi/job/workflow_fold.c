#include "contract/nimi/job/workflow_fold.h"

#include "contract/nimi/job/workflow_value.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/reason.h"

#define MESSAGE_MAX_BYTES (4 * MIB - 4 * KIB) /* what clients take, less tags and lengths */

/* --- items -------------------------------------------------------------------------------- */

static bool copy_nodes(struct workflow_fold *fold,
                       const struct nimi_workflow_definition *definition) {
    size_t count = definition->nodes_count;
    fold->nodes = arena_alloc(fold->run.arena, (count + 1) * sizeof(*fold->nodes));
    if (!fold->nodes) return false;
    for (size_t i = 0; i < count; i++) {
        if (!arena_str(fold->run.arena, definition->nodes[i].node_id, &fold->nodes[i].node))
            return false;
    }
    fold->node_count = count;
    return true;
}

static bool workflow_fold_take_request(struct workflow_fold *fold, struct str bytes) {
    struct arena *arena = arena_new(16 * bytes.len + MIB);
    struct nimi_submit_workflow_request request;
    struct err e;
    bool whole =
        pb_decode_view(&nimi_submit_workflow_request_table, bytes, arena, &request, &e) &&
        request.definition && copy_nodes(fold, request.definition) &&
        arena_str(fold->run.arena, request.app_id, &fold->run.app) &&
        arena_str(fold->run.arena, request.subject_user_id, &fold->run.subject);
    if (whole && fold->run.depth == RUN_FOLD_WHOLE)
        whole = arena_str(fold->run.arena, bytes, &fold->run.request);
    arena_free(arena);
    return whole;
}

static bool take_known(struct workflow_fold *fold, struct str bytes) {
    struct json known;
    struct err e;
    struct str kept;
    return arena_str(fold->run.arena, bytes, &kept) && json_read(kept, &known, &e) &&
           json_str(json_find(known, STR("task")), fold->run.arena, &fold->run.id) &&
           json_str(json_find(known, STR("trace")), fold->run.arena, &fold->trace);
}

/* Keep a text unless it is there already: notes repeat them. */
static bool workflow_fold_keep(struct workflow_fold *fold, struct str *into, struct str text) {
    return str_equal(*into, text) || arena_str(fold->run.arena, text, into);
}

/* What a note does not say keeps its value; a job and an error belong to their attempt. */
static bool merge_note(struct workflow_fold *fold, struct workflow_note *node,
                       const struct workflow_note *note) {
    struct str output = fold->run.depth == RUN_FOLD_WHOLE ? note->output : STR_EMPTY;
    struct workflow_note merged = *note;
    merged.node = node->node;
    merged.job = node->job;
    merged.error = node->error;
    merged.callback = STR_EMPTY;
    merged.output = STR_EMPTY;
    if (!workflow_fold_keep(fold, &merged.job, note->job) ||
        !workflow_fold_keep(fold, &merged.error, note->error) ||
        (output.len && !arena_str(fold->run.arena, output, &merged.output)))
        return false;
    *node = merged;
    return true;
}

static struct workflow_note *node_of(struct workflow_fold *fold, struct str id) {
    for (size_t i = 0; i < fold->node_count; i++) {
        if (str_equal(fold->nodes[i].node, id)) return &fold->nodes[i];
    }
    return NULL;
}

/* The note's texts live as long as the event; escaped ones are in the fold. */
static bool take_node(struct workflow_fold *fold, const struct event *event) {
    struct workflow_note note;
    if (!workflow_note_read(event->item.bytes, fold->run.arena, &note)) return false;
    struct workflow_note *node = node_of(fold, note.node);
    if (!node || !merge_note(fold, node, &note)) return false;
    fold->event = note.event;
    fold->change = note;
    return true;
}

static bool take_result(struct workflow_fold *fold, struct str bytes) {
    return arena_str(fold->run.arena, bytes, &fold->result);
}

static bool take_item(struct workflow_fold *fold, const struct event *event) {
    struct str type = event->item.type, bytes = event->item.bytes;
    if (str_equal(type, STR(RUN_JOB_REQUEST))) return workflow_fold_take_request(fold, bytes);
    if (str_equal(type, STR(WORKFLOW_KNOWN))) return take_known(fold, bytes);
    if (str_equal(type, STR(WORKFLOW_NODE))) return take_node(fold, event);
    if (str_equal(type, STR(WORKFLOW_RESULT))) return take_result(fold, bytes);
    return true; /* an item of another part */
}

/* --- states ------------------------------------------------------------------------------- */

/* A workflow that a restart interrupted runs again, but has started only once. */
static bool take_state(struct workflow_fold *fold, const struct event *event,
                       const struct run_job_note *note) {
    static const int32_t events[] = {[RUN_JOB_RUNNING] = NIMI_WORKFLOW_EVENT_STARTED,
                                     [RUN_JOB_COMPLETED] = NIMI_WORKFLOW_EVENT_COMPLETED,
                                     [RUN_JOB_FAILED] = NIMI_WORKFLOW_EVENT_FAILED,
                                     [RUN_JOB_CANCELLED] = NIMI_WORKFLOW_EVENT_CANCELED,
                                     [RUN_JOB_TIMED_OUT] = NIMI_WORKFLOW_EVENT_FAILED};
    run_fold_note(&fold->run, note);
    fold->event = events[note->state];
    fold->change = (struct workflow_note){.node = STR_EMPTY};
    if (note->state == RUN_JOB_RUNNING && fold->running_ms) fold->event = 0;
    if (note->state == RUN_JOB_RUNNING && !fold->running_ms)
        fold->running_ms = fold->run.started_ms + event->at_ms;
    fold->reason = NIMI_ACTION_EXECUTED;
    if (event->kind == EVENT_FAILED) {
        fold->reason = reason_of_job_failure(event->failed.reason, event->failed.code);
        fold->change.reason = fold->reason;
        return arena_str(fold->run.arena, event->failed.message, &fold->why);
    }
    if (event->kind == EVENT_CANCELLED)
        return arena_str(fold->run.arena, event->cancelled.message, &fold->why);
    return true;
}

bool workflow_fold_take(struct workflow_fold *fold, const struct event *event) {
    struct run_job_note note;
    fold->event = 0;
    if (!run_fold_begin(&fold->run, event, STR(WORKFLOW_CONTRACT))) return false;
    bool good = run_job_read(event, &note)
                    ? fold->nodes && take_state(fold, event, &note)
                    : event->kind != EVENT_ITEM || take_item(fold, event);
    fold->run.shown = fold->run.id.len && fold->nodes;
    fold->changed_ms = fold->run.started_ms + event->at_ms;
    return run_fold_end(&fold->run, good, fold->event != 0);
}

static void fold_init(struct run_fold *fold, enum run_fold_depth depth) {
    workflow_fold_init(CONTAINER_OF(fold, struct workflow_fold, run), depth);
}

static void fold_take(struct run_fold *fold, const struct event *event) {
    workflow_fold_take(CONTAINER_OF(fold, struct workflow_fold, run), event);
}

const struct run_kind workflow_fold_kind = {"workflow", fold_init, fold_take};

void workflow_fold_init(struct workflow_fold *fold, enum run_fold_depth depth) {
    *fold = (struct workflow_fold){.run = run_fold_new(&workflow_fold_kind, depth)};
}

/* --- showing it --------------------------------------------------------------------------- */

int32_t workflow_fold_status(const struct workflow_fold *fold) {
    static const int32_t statuses[RUN_JOB_STATE_COUNT] = {
        [RUN_JOB_SUBMITTED] = NIMI_WORKFLOW_STATUS_ACCEPTED,
        [RUN_JOB_QUEUED] = NIMI_WORKFLOW_STATUS_QUEUED,
        [RUN_JOB_RUNNING] = NIMI_WORKFLOW_STATUS_RUNNING,
        [RUN_JOB_COMPLETED] = NIMI_WORKFLOW_STATUS_COMPLETED,
        [RUN_JOB_FAILED] = NIMI_WORKFLOW_STATUS_FAILED,
        [RUN_JOB_CANCELLED] = NIMI_WORKFLOW_STATUS_CANCELED,
        [RUN_JOB_TIMED_OUT] = NIMI_WORKFLOW_STATUS_FAILED};
    /* One that lost its process waits for a slot, but has begun. */
    if (fold->run.note.state == RUN_JOB_QUEUED && fold->running_ms)
        return NIMI_WORKFLOW_STATUS_RUNNING;
    return statuses[fold->run.note.state];
}

static struct str skip_reason(enum node_skip skip) {
    return skip == SKIP_UPSTREAM_FAILED ? STR("upstream_failed") : STR("branch_not_selected");
}

/* What an event says besides its own fields, as JSON. */
static void write_payload(const struct workflow_fold *fold, struct buf *out) {
    const struct workflow_note *change = &fold->change;
    struct json_writer w = json_writer(out);
    if (fold->event == NIMI_WORKFLOW_EVENT_COMPLETED && fold->result.len) {
        buf_append(out, fold->result);
        return;
    }
    if (change->output.len) {
        buf_append(out, change->output);
        return;
    }
    json_open_object(&w);
    if (!change->node.len && fold->why.len) json_member_str(&w, "reason", fold->why);
    if (change->state == NODE_SKIPPED) json_member_str(&w, "reason", skip_reason(change->skip));
    if (change->error.len) json_member_str(&w, "error", change->error);
    if (change->attempt) json_member_i64(&w, "attempt", change->attempt);
    if (change->job.len) json_member_str(&w, "provider_job_id", change->job);
    if (change->callback.len) json_member_str(&w, "callback_ref", change->callback);
    json_close(&w);
}

/* What a message has room for beside its other members. */
static size_t room_beside(const struct pb_message *type, const void *message) {
    size_t len = pb_encoded_len(type, message);
    return len < MESSAGE_MAX_BYTES ? MESSAGE_MAX_BYTES - len : 0;
}

bool workflow_fold_event(const struct workflow_fold *fold, struct buf *out) {
    const struct workflow_note *change = &fold->change;
    struct google_timestamp at = nimi_moment(fold->changed_ms);
    struct json payload;
    struct buf text;
    struct err e;
    buf_init(&text, WORKFLOW_OUTPUT_MAX_BYTES + 64 * KIB);
    write_payload(fold, &text);
    struct arena *arena = arena_new(64 * text.len + 64 * KIB);
    struct nimi_workflow_event event = {.event_type = fold->event,
                                        .sequence = fold->run.sequence,
                                        .task_id = fold->run.id,
                                        .trace_id = fold->trace,
                                        .timestamp = &at,
                                        .node_id = change->node,
                                        .progress_percent = change->percent,
                                        .reason_code = change->reason ? change->reason
                                                                      : NIMI_ACTION_EXECUTED};
    if (buf_ok(&text) && json_read(buf_str(&text), &payload, &e) && json_count(payload))
        event.payload = workflow_struct_within(
            payload, room_beside(&nimi_workflow_event_table, &event), arena);
    bool fits = pb_encode(&nimi_workflow_event_table, &event, out);
    arena_free(arena);
    buf_done(&text);
    return fits;
}

static void show_node(const struct workflow_note *node, struct arena *arena,
                      struct nimi_workflow_node_status *ret) {
    static const int32_t statuses[NODE_STATE_COUNT] = {
        [NODE_PENDING] = NIMI_WORKFLOW_STATUS_QUEUED,
        [NODE_RUNNING] = NIMI_WORKFLOW_STATUS_RUNNING,
        [NODE_RETRYING] = NIMI_WORKFLOW_STATUS_QUEUED,
        [NODE_COMPLETED] = NIMI_WORKFLOW_STATUS_COMPLETED,
        [NODE_FAILED] = NIMI_WORKFLOW_STATUS_FAILED,
        [NODE_SKIPPED] = NIMI_WORKFLOW_STATUS_SKIPPED,
        [NODE_CANCELED] = NIMI_WORKFLOW_STATUS_CANCELED};
    struct google_timestamp *next =
        node->state == NODE_RETRYING ? ARENA_NEW(arena, struct google_timestamp) : NULL;
    if (next) *next = nimi_moment(node->next_ms);
    *ret = (struct nimi_workflow_node_status){.node_id = node->node,
                                              .status = statuses[node->state],
                                              .attempt = node->attempt,
                                              .provider_job_id = node->job,
                                              .next_poll_at = next,
                                              .retry_count = node->retries,
                                              .last_error = node->error};
    if (node->state == NODE_SKIPPED) ret->reason = skip_reason(node->skip);
    if (node->reason) ret->reason = str_from(reason_get(node->reason)->name);
}

/* Nodes that were not over when the workflow ended are canceled. */
static struct workflow_note final_note(const struct workflow_fold *fold, size_t i) {
    struct workflow_note node = fold->nodes[i];
    if (run_fold_is_over(&fold->run) && !node_is_over(node.state)) node.state = NODE_CANCELED;
    return node;
}

bool workflow_fold_reply(const struct workflow_fold *fold, struct arena *arena,
                         struct nimi_get_workflow_response *ret) {
    struct nimi_workflow_node_status *nodes =
        arena_alloc(arena, (fold->node_count + 1) * sizeof(*nodes));
    struct json result;
    struct err e;
    if (!nodes) return false;
    for (size_t i = 0; i < fold->node_count; i++) {
        struct workflow_note node = final_note(fold, i);
        show_node(&node, arena, &nodes[i]);
    }
    *ret = (struct nimi_get_workflow_response){
        .task_id = fold->run.id,
        .status = workflow_fold_status(fold),
        .nodes = nodes,
        .nodes_count = fold->node_count,
        .reason_code = fold->reason ? fold->reason : NIMI_ACTION_EXECUTED};
    if (fold->result.len && fold->run.note.state == RUN_JOB_COMPLETED &&
        json_read(fold->result, &result, &e))
        ret->output = workflow_struct_within(
            result, room_beside(&nimi_get_workflow_response_table, ret), arena);
    return true;
}
