/* Checks of nimi.runtime.v1: jobs (mode B), exports (mode C), subscriptions (mode D), and what
 * becomes of streams when the server is asked to stop. */
#include "validate/nimi.h"

#include <signal.h>

/* More than a server has room for, if it keeps each. */
#define WATCH_TIMES 32

/* --- jobs ---------------------------------------------------------------------------------------- */

static const struct nimi_scenario_job *submitted(const struct nimi_scene *scene) {
    if (!talk_ended_with(&scene->talk, ERR_NONE) || scene->count != 1) return NULL;
    const struct nimi_submit_scenario_job_response *reply = nimi_frame(scene, 0);
    return reply->job;
}

/* A server need not run text as a job. */
static bool runs_jobs(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_SUBMIT);
    char end[NIMI_END_BYTES];
    bool refuses = str_equal(buf_str(&scene->reader.reason), STR("AI_ROUTE_UNSUPPORTED")) ||
                   talk_ended_with(&scene->talk, ERR_UNIMPLEMENTED);
    return nimi_answers(judge) &&
           (!refuses ||
            judge_skip(judge, "the server runs no job of text: %s", nimi_end_of(scene, end)));
}

void check_job_submit(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_SUBMIT);
    if (!runs_jobs(judge) || !nimi_judge_reply(judge, scene, "an answer of SubmitScenarioJob"))
        return;
    const struct nimi_scenario_job *job = submitted(scene);
    if (!job || !job->job_id.len)
        judge_break(judge, &scene->talk.evidence, "expected a job with a job_id, got none");
}

/* There is a job to look at; its id is kept. */
static bool has_job(struct judge *judge) {
    struct buf *id = &nimi_of(judge)->job;
    if (!runs_jobs(judge)) return false;
    const struct nimi_scenario_job *job = submitted(nimi_scene(judge, NIMI_SUBMIT));
    if (!id->len && job) buf_append(id, job->job_id);
    return id->len || judge_skip(judge, "there is no job to look at (JOBS-01)");
}

static bool has_ended(const struct nimi_scene *scene) {
    return scene->advice.outcome == STREAM_COMPLETED ||
           scene->advice.outcome == STREAM_FAILED ||
           scene->advice.outcome == STREAM_WORK_CANCELLED;
}

static bool job_ends(struct judge *judge) {
    return has_job(judge) && (has_ended(nimi_scene(judge, NIMI_JOB)) ||
                              judge_skip(judge, "the events of a job do not end (JOBS-02)"));
}

void check_job_ends(struct judge *judge) {
    char end[NIMI_END_BYTES];
    if (!has_job(judge)) return;
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_JOB);
    if (!has_ended(scene))
        judge_break(judge, &scene->talk.evidence,
                    "expected a terminal event, then OK, got %zu frames and %s",
                    scene->talk.count, nimi_end_of(scene, end));
    nimi_judge_faults(judge, scene,
                      FAULT_MALFORMED | FAULT_AFTER_END | FAULT_NO_END | FAULT_ERROR_AFTER_END |
                          FAULT_NOT_CLOSED);
}

void check_job_numbers(struct judge *judge) {
    if (job_ends(judge))
        nimi_judge_faults(judge, nimi_scene(judge, NIMI_JOB),
                          FAULT_FIRST_NUMBER | FAULT_NUMBER_ORDER);
}

/* Each event has the job as it was then. */
void check_job_agrees(struct judge *judge) {
    if (!job_ends(judge)) return;
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_JOB);
    for (size_t i = 0; i < scene->count; i++) {
        const struct nimi_scenario_job_event *event = nimi_frame(scene, i);
        if (!event->job || !str_equal(event->job->job_id, buf_str(&nimi_of(judge)->job)))
            judge_break(judge, &scene->talk.evidence,
                        "expected the job's own snapshot in each event, got another or none");
    }
    nimi_judge_faults(judge, scene, FAULT_DISAGREES);
}

static bool is_terminal(int status) {
    return status >= NIMI_SCENARIO_JOB_STATUS_COMPLETED;
}

/* The terminal event, which its snapshot may say alone; NULL: there is none. */
static const struct nimi_scenario_job_event *
nimi_streams_end_of(const struct nimi_scene *scene) {
    for (size_t i = 0; i < scene->count; i++) {
        const struct nimi_scenario_job_event *event = nimi_frame(scene, i);
        if (is_terminal(event->event_type) || (event->job && is_terminal(event->job->status)))
            return event;
    }
    return NULL;
}

void check_job_late(struct judge *judge) {
    char end[NIMI_END_BYTES];
    if (!job_ends(judge)) return;
    const struct nimi_scene *first = nimi_scene(judge, NIMI_JOB);
    const struct nimi_scene *late = nimi_scene(judge, NIMI_JOB_LATE);
    const struct nimi_scenario_job_event *a = nimi_streams_end_of(first),
                                         *b = nimi_streams_end_of(late);
    if (!has_ended(late) || !a || !b)
        judge_break(judge, &late->talk.evidence,
                    "expected all events for who comes after the end, got %zu frames and %s",
                    late->talk.count, nimi_end_of(late, end));
    else if (late->reader.faults & ~first->reader.faults & FAULT_FIRST_NUMBER ||
             late->reader.missing > first->reader.missing)
        judge_break(judge, &late->talk.evidence,
                    "expected all events from number 1 on for who comes after the end");
    else if (late->advice.outcome != first->advice.outcome || a->sequence != b->sequence ||
             a->event_type != b->event_type)
        judge_break(judge, &late->talk.evidence,
                    "expected the same terminal event for who comes after the end: type %d "
                    "with number %llu, got type %d with number %llu",
                    a->event_type, (unsigned long long)a->sequence, b->event_type,
                    (unsigned long long)b->sequence);
}

void check_job_snapshot(struct judge *judge) {
    if (!job_ends(judge)) return;
    const struct nimi_scenario_job_event *last =
        nimi_streams_end_of(nimi_scene(judge, NIMI_JOB));
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_JOB_SNAPSHOT);
    if (!nimi_judge_reply(judge, scene, "an answer of GetScenarioJob")) return;
    const struct nimi_get_scenario_job_response *reply = nimi_frame(scene, 0);
    int status = reply->job ? reply->job->status : 0;
    if (!last || !last->job || status != last->job->status)
        judge_break(judge, &scene->talk.evidence,
                    "expected the status %d of the terminal event, got %d",
                    last && last->job ? last->job->status : 0, status);
}

/* The answer need not show whether it exists. */
void check_job_foreign(struct judge *judge) {
    if (!has_job(judge)) return;
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_JOB_FOREIGN);
    bool hidden = talk_ended_with(&scene->talk, ERR_NOT_FOUND);
    nimi_judge_refused(judge, scene, hidden ? ERR_NOT_FOUND : ERR_PERMISSION_DENIED,
                       "the events of another app's job");
}

void check_job_unknown(struct judge *judge) {
    if (runs_jobs(judge))
        nimi_judge_refused(judge, nimi_scene(judge, NIMI_JOB_UNKNOWN), ERR_NOT_FOUND,
                           "a job that is unknown");
}

/* --- exports ------------------------------------------------------------------------------------- */

/* It needs a capability that not every caller has. */
static bool may_export(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_EXPORT);
    char end[NIMI_END_BYTES];
    bool refused = talk_ended_with(&scene->talk, ERR_UNAUTHENTICATED) ||
                   talk_ended_with(&scene->talk, ERR_PERMISSION_DENIED) ||
                   talk_ended_with(&scene->talk, ERR_UNIMPLEMENTED);
    return !refused ||
           judge_skip(judge, "the server refuses us an export: %s", nimi_end_of(scene, end));
}

static bool export_ends(struct judge *judge) {
    return may_export(judge) && (nimi_scene(judge, NIMI_EXPORT)->reader.last > LAST_DATA ||
                                 judge_skip(judge, "an export has no end (EXPT-01)"));
}

void check_export_ends(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_EXPORT);
    char end[NIMI_END_BYTES];
    if (!may_export(judge)) return;
    if (scene->reader.last <= LAST_DATA)
        judge_break(judge, &scene->talk.evidence,
                    "expected a chunk with eof, then OK, got %zu chunks and %s",
                    scene->talk.count, nimi_end_of(scene, end));
    nimi_judge_faults(judge, scene, FAULT_MALFORMED | FAULT_ERROR_AFTER_END | FAULT_NOT_CLOSED);
}

void check_export_last(struct judge *judge) {
    if (export_ends(judge))
        nimi_judge_faults(judge, nimi_scene(judge, NIMI_EXPORT), FAULT_AFTER_END);
}

void check_export_numbers(struct judge *judge) {
    if (export_ends(judge))
        nimi_judge_faults(judge, nimi_scene(judge, NIMI_EXPORT),
                          FAULT_FIRST_NUMBER | FAULT_GAP | FAULT_NUMBER_ORDER);
}

/* --- subscriptions ------------------------------------------------------------------------------- */

static bool watches(struct judge *judge) {
    return nimi_scene(judge, NIMI_WATCH)->count ||
           judge_skip(judge, "a subscription of health has no first event (SUBS-01)");
}

void check_watch_first(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_WATCH);
    char end[NIMI_END_BYTES];
    if (!scene->count) {
        judge_break(judge, &scene->talk.evidence, "expected an event at once, got %s",
                    nimi_end_of(scene, end));
        return;
    }
    const struct nimi_runtime_health_event *event = nimi_frame(scene, 0);
    if (!event->sequence || !event->status)
        judge_break(judge, &scene->talk.evidence,
                    "expected the first event with a sequence and a status, got %llu and %d",
                    (unsigned long long)event->sequence, event->status);
}

/* Another call while it is open: so it was not over with its first event. */
void check_watch_open(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_WATCH);
    char end[NIMI_END_BYTES];
    if (!watches(judge)) return;
    if (scene->advice.outcome != STREAM_CANCELLED)
        judge_break(judge, &scene->talk.evidence,
                    "expected a subscription to stay open until it is cancelled, got %s",
                    nimi_end_of(scene, end));
}

/* A server that does not notice runs out of room. */
void check_watch_left(struct judge *judge) {
    if (!watches(judge)) return;
    for (int i = 1; i <= WATCH_TIMES && !judge_is_settled(judge); i++) {
        if (!nimi_watch_once(judge))
            judge_break(judge, NULL,
                        "expected cancelled subscriptions to make room, got no event for "
                        "number %d",
                        i);
    }
}

/* --- the server is asked to stop ----------------------------------------------------------------- */

/* As a shell says it. */
static bool was_killed(const struct judge *judge) {
    return nimi_of(judge)->target->exit_code == 128 + SIGKILL;
}

/* Both streams are opened, then the server gets SIGTERM. Nothing can be asked after this. */
static void play_stop(struct judge *judge) {
    struct nimi *nimi = nimi_of(judge);
    uint64_t timeout_ms = judge->options->timeout_ms;
    if (nimi->played[NIMI_STOP_WATCH]) return;
    (void)nimi_scene(judge, NIMI_TEXT);
    struct nimi_scene *watch = nimi_scene_begin(judge, NIMI_STOP_WATCH);
    bool in_time =
        !watch->not_played && talk_wait(&watch->talk, nimi_has_frame, NULL, timeout_ms);
    struct nimi_scene *text = nimi_scene_begin(judge, NIMI_STOP_TEXT);
    in_time = in_time && talk_wait(&text->talk, nimi_has_frame, NULL, timeout_ms);
    nimi->frames_before_stop = watch->talk.count;
    nimi->text_over = text->talk.ended;
    if (nimi->target->child) child_stop(nimi->target->child);
    if (in_time)
        in_time = talk_wait(&watch->talk, NULL, NULL, timeout_ms) &&
                  talk_wait(&text->talk, NULL, NULL, timeout_ms);
    if (!in_time) nimi->silent++;
    target_stop(nimi->target);
    nimi_scene_end(judge, NIMI_STOP_WATCH);
    nimi_scene_end(judge, NIMI_STOP_TEXT);
}

/* The stream that was open then; NULL: it cannot be judged. */
static const struct nimi_scene *stopped(struct judge *judge, enum nimi_scene_id id) {
    if (nimi_of(judge)->target->kind != TARGET_COMMAND) {
        judge_skip(judge, "only a server that was started for it is told to stop");
        return NULL;
    }
    play_stop(judge);
    const struct nimi_scene *scene = nimi_scene(judge, id);
    bool told = scene->talk.ended && scene->talk.end.from_server;
    if (!told && was_killed(judge))
        judge_skip(judge, "the server had to be killed half a second after SIGTERM, and its "
                          "streams had not ended");
    return judge_is_settled(judge) ? NULL : scene;
}

/* READY: a sample that was on its way. STOPPING: the state itself, not an end. */
static void judge_frames_after_stop(struct judge *judge, const struct nimi_scene *scene) {
    for (size_t i = nimi_of(judge)->frames_before_stop; i < scene->count; i++) {
        const struct nimi_runtime_health_event *event = nimi_frame(scene, i);
        if (event->status != NIMI_RUNTIME_HEALTH_STATUS_STOPPING &&
            event->status != NIMI_RUNTIME_HEALTH_STATUS_READY)
            judge_break(judge, &scene->talk.evidence,
                        "expected no event after SIGTERM but STOPPING (5), got %d",
                        event->status);
    }
}

void check_stop_watch(struct judge *judge) {
    const struct nimi_scene *scene = stopped(judge, NIMI_STOP_WATCH);
    char end[NIMI_END_BYTES];
    if (!scene) return;
    if (!nimi_of(judge)->frames_before_stop)
        judge_skip(judge, "a subscription of health has no first event (SUBS-01)");
    if (scene->advice.outcome != STREAM_DISCONNECTED ||
        !talk_ended_with(&scene->talk, ERR_CANCELLED))
        judge_break(judge, &scene->talk.evidence, "expected CANCELLED after SIGTERM, got %s",
                    nimi_end_of(scene, end));
    else if (scene->reader.reason.len)
        judge_break(judge, &scene->talk.evidence,
                    "expected plain text as grpc-message of CANCELLED, got the reason " STR_FMT,
                    STR_ARG(buf_str(&scene->reader.reason)));
    judge_frames_after_stop(judge, scene);
}

/* Its real end, or none. */
void check_stop_text(struct judge *judge) {
    const struct nimi_scene *scene = stopped(judge, NIMI_STOP_TEXT);
    char end[NIMI_END_BYTES];
    if (!scene || !nimi_answers(judge)) return;
    if (nimi_of(judge)->text_over) {
        judge_skip(judge, "the answer was over before the server was told to stop: give an "
                          "--input with a longer answer");
        return;
    }
    if (scene->advice.outcome != STREAM_PREEMPTED && scene->advice.outcome != STREAM_COMPLETED)
        judge_break(judge, &scene->talk.evidence,
                    "expected CANCELLED without a terminal event after SIGTERM, or the real "
                    "end, got %s",
                    nimi_end_of(scene, end));
    nimi_judge_faults(judge, scene, FAULT_AFTER_END | FAULT_ERROR_AFTER_END | FAULT_NOT_CLOSED);
}
