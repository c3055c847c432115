#include "base/clock.h"
#include "base/mem.h"
#include "proto/health.pb.h"
#include "validate/nimi.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define NIMI "/nimi.runtime.v1.Runtime"
#define AI NIMI "AiService/"
#define AUDIT NIMI "AuditService/"
#define LIST_MODELS NIMI "ModelService/ListModels"

#define APP "weir.validate"
#define OTHER_APP "weir.validate.other"
#define NOBODY "weir-validate-nothing"
#define USUAL_MODEL "local/default"

#define SILENT_MAX 2
#define NOT_PLAYED "two calls before it did not end in time, so this one was not tried"
#define PROBE_MS 5000
#define STARTING_PAUSE_MS 50
#define WATCHED_MS 50          /* a subscription is watched for this long, and one other call */
#define LONG_HEADER_BYTES 4097 /* one more than may be */

enum request { NOTHING, SCENARIO, JOB, EXPORT };

/* What differs from a good call. */
enum wrong {
    FINE,
    NO_ENVELOPE,
    OTHER_MAJOR,
    LONG_HEADER,
    FAILING,
    NO_MODEL,
    NO_INPUT,
    NO_APP,
    WRONG_APP,
    NO_CONNECTOR,
    FOREIGN,
    UNKNOWN_JOB,
    WRONG_COUNT,
};

static const char *const wrong_notes[WRONG_COUNT] = {
    [FINE] = "",
    [NO_ENVELOPE] = " without the headers x-nimi-*",
    [OTHER_MAJOR] = " with x-nimi-participant-protocol-version: 9.0.0 beside 1.0.0",
    [LONG_HEADER] = " with x-nimi-surface-id of 4097 bytes",
    [FAILING] = " with the error input",
    [NO_MODEL] = " without a model_id",
    [NO_INPUT] = " without an input",
    [NO_APP] = " without an app_id",
    [WRONG_APP] = " for the app_id " OTHER_APP " with x-nimi-app-id: " APP,
    [NO_CONNECTOR] = " over the connector " NOBODY,
    [FOREIGN] = " with x-nimi-app-id: " OTHER_APP,
    [UNKNOWN_JOB] = " for the job " NOBODY,
};

#define UNARY(service, method, answer) .path = service method, .reply = &answer##_table
#define STREAM(service, method) .path = service method

static const struct scene_row {
    const char *path;
    const struct pb_message *reply; /* of a unary call */
    enum request request;
    int mode; /* of a scenario */
    enum wrong wrong;
    bool leave; /* at the first frame */
} rows[NIMI_SCENE_COUNT] = {
    /* clang-format off */
    [NIMI_PROBE]        = {UNARY("/grpc.health.v1.Health/", "Check", grpc_health_check_response), .wrong = NO_ENVELOPE},
    [NIMI_HEALTH]       = {UNARY(AUDIT, "GetRuntimeHealth", nimi_get_runtime_health_response)},
    [NIMI_NO_ENVELOPE]  = {UNARY(AUDIT, "GetRuntimeHealth", nimi_get_runtime_health_response), .wrong = NO_ENVELOPE},
    [NIMI_OTHER_MAJOR]  = {UNARY(AUDIT, "GetRuntimeHealth", nimi_get_runtime_health_response), .wrong = OTHER_MAJOR},
    [NIMI_LONG_HEADER]  = {UNARY(AUDIT, "GetRuntimeHealth", nimi_get_runtime_health_response), .wrong = LONG_HEADER},
    [NIMI_TEXT]         = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM},
    [NIMI_EXECUTE]      = {UNARY(AI, "ExecuteScenario", nimi_execute_scenario_response), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_SYNC},
    [NIMI_FAILS]        = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM, .wrong = FAILING},
    [NIMI_NO_MODEL]     = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM, .wrong = NO_MODEL},
    [NIMI_NO_INPUT]     = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM, .wrong = NO_INPUT},
    [NIMI_NO_APP]       = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM, .wrong = NO_APP},
    [NIMI_OTHER_APP]    = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM, .wrong = WRONG_APP},
    [NIMI_NO_CONNECTOR] = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM, .wrong = NO_CONNECTOR},
    [NIMI_SUBMIT]       = {UNARY(AI, "SubmitScenarioJob", nimi_submit_scenario_job_response), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_ASYNC_JOB},
    [NIMI_JOB]          = {STREAM(AI, "SubscribeScenarioJobEvents"), .request = JOB},
    [NIMI_JOB_LATE]     = {STREAM(AI, "SubscribeScenarioJobEvents"), .request = JOB},
    [NIMI_JOB_SNAPSHOT] = {UNARY(AI, "GetScenarioJob", nimi_get_scenario_job_response), .request = JOB},
    [NIMI_JOB_FOREIGN]  = {STREAM(AI, "SubscribeScenarioJobEvents"), .request = JOB, .wrong = FOREIGN},
    [NIMI_JOB_UNKNOWN]  = {STREAM(AI, "SubscribeScenarioJobEvents"), .request = JOB, .wrong = UNKNOWN_JOB},
    [NIMI_EXPORT]       = {STREAM(AUDIT, "ExportAuditEvents"), .request = EXPORT},
    [NIMI_WATCH]        = {STREAM(AUDIT, "SubscribeRuntimeHealthEvents"), .leave = true},
    [NIMI_STOP_WATCH]   = {STREAM(AUDIT, "SubscribeRuntimeHealthEvents")},
    [NIMI_STOP_TEXT]    = {STREAM(AI, "StreamScenario"), .request = SCENARIO, .mode = NIMI_EXECUTION_MODE_STREAM},
    /* clang-format on */
};

/* A unary call for the reader, which is asked for the reason of its refusal only. */
static const struct reader_method unary = {.mode = CLOSE_DONE, .kind = READER_PLAIN};

/* --- requests ------------------------------------------------------------------------------------ */

/* The requests of StreamScenario, ExecuteScenario and SubmitScenarioJob have the same first four
 * fields, and nothing else is set here. */
static void put_scenario(const struct nimi *nimi, const struct scene_row *row,
                         struct buf *out) {
    struct nimi_scenario_request_head head = {.app_id = STR(APP),
                                              .subject_user_id = nimi->options->user,
                                              .model_id = buf_str(&nimi->model),
                                              .route_policy = NIMI_ROUTE_POLICY_LOCAL,
                                              .fallback = NIMI_FALLBACK_POLICY_DENY};
    struct nimi_chat_message message = {.role = STR("user"),
                                        .content = buf_str(&nimi->message)};
    if (row->wrong == FAILING) message.content = buf_str(&nimi->error_message);
    if (row->wrong == NO_MODEL) head.model_id = STR_EMPTY;
    if (row->wrong == NO_APP) head.app_id = STR_EMPTY;
    if (row->wrong == WRONG_APP) head.app_id = STR(OTHER_APP);
    if (row->wrong == NO_CONNECTOR) head.connector_id = STR(NOBODY);
    const struct nimi_text_generate_scenario_spec text = {
        .input = &message, .input_count = row->wrong == NO_INPUT ? 0 : 1};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE,
                                            .text_generate = &text};
    const struct nimi_submit_scenario_job_request request = {
        .head = &head,
        .scenario_type = NIMI_SCENARIO_TYPE_TEXT_GENERATE,
        .execution_mode = row->mode,
        .spec = &spec};
    pb_encode(&nimi_submit_scenario_job_request_table, &request, out);
}

/* All requests about one job are its id. */
static void put_request(const struct nimi *nimi, const struct scene_row *row, struct buf *out) {
    const struct nimi_get_scenario_job_request job = {
        .job_id = row->wrong == UNKNOWN_JOB ? STR(NOBODY) : buf_str(&nimi->job)};
    const struct nimi_export_audit_events_request export = {.app_id = STR(APP)};
    switch (row->request) {
    case NOTHING: return;
    case SCENARIO: put_scenario(nimi, row, out); return;
    case JOB: pb_encode(&nimi_get_scenario_job_request_table, &job, out); return;
    case EXPORT: pb_encode(&nimi_export_audit_events_request_table, &export, out); return;
    }
}

struct headers {
    struct grpc_metadata at[GRPC_CALL_METADATA_MAX];
    size_t count;
    struct buf bearer, key, filler;
};

static void nimi_scene_add(struct headers *headers, struct str name, struct str value) {
    assert(headers->count < GRPC_CALL_METADATA_MAX);
    headers->at[headers->count++] = (struct grpc_metadata){name, value};
}

static void nimi_scene_fill(struct buf *out, size_t len) {
    while (out->len < len && buf_append_byte(out, 'x')) {
    }
}

/* A command's random token is no JWT, so it is not shown. */
static void headers_init(struct nimi *nimi, enum wrong wrong, struct headers *ret) {
    struct str app = wrong == FOREIGN ? STR(OTHER_APP) : STR(APP);
    ret->count = 0;
    buf_init(&ret->bearer, 64 * KIB);
    buf_init(&ret->key, KIB);
    buf_init(&ret->filler, 2 * (size_t)LONG_HEADER_BYTES);
    if (nimi->target->kind == TARGET_URL && nimi->options->token.len) {
        buf_printf(&ret->bearer, "Bearer " STR_FMT, STR_ARG(nimi->options->token));
        nimi_scene_add(ret, STR("authorization"), buf_str(&ret->bearer));
    }
    if (wrong == NO_ENVELOPE) return;
    buf_printf(&ret->key, "weir-validate-%s-%u", nimi->run, nimi->calls++);
    nimi_scene_add(ret, STR("x-nimi-protocol-version"), STR("1.0.0"));
    nimi_scene_add(ret, STR("x-nimi-participant-protocol-version"),
                   wrong == OTHER_MAJOR ? STR("9.0.0") : STR("1.0.0"));
    nimi_scene_add(ret, STR("x-nimi-participant-id"), app);
    nimi_scene_add(ret, STR("x-nimi-domain"), STR("runtime.rpc"));
    nimi_scene_add(ret, STR("x-nimi-caller-kind"), STR("third-party-app"));
    nimi_scene_add(ret, STR("x-nimi-caller-id"), app);
    nimi_scene_add(ret, STR("x-nimi-app-id"), app);
    nimi_scene_add(ret, STR("x-nimi-idempotency-key"), buf_str(&ret->key));
    if (wrong != LONG_HEADER) return;
    nimi_scene_fill(&ret->filler, LONG_HEADER_BYTES);
    nimi_scene_add(ret, STR("x-nimi-surface-id"), buf_str(&ret->filler));
}

static void headers_done(struct headers *headers) {
    buf_done(&headers->bearer);
    buf_done(&headers->key);
    buf_done(&headers->filler);
}

/* --- playing a scene ----------------------------------------------------------------------------- */

bool nimi_has_frame(const struct talk *talk, void *ctx) {
    (void)ctx;
    return talk->count > 0;
}

static void ask_row(struct nimi *nimi, const struct scene_row *row, struct talk *ret) {
    struct headers headers;
    struct buf message;
    buf_init(&message, 2 * TALK_TEXT_MAX_BYTES);
    put_request(nimi, row, &message);
    headers_init(nimi, row->wrong, &headers);
    talk_open(nimi->target->asker,
              &(struct talk_options){.url = buf_str(&nimi->target->url),
                                     .path = str_from(row->path),
                                     .metadata = headers.at,
                                     .metadata_count = headers.count},
              ret);
    talk_say(ret, buf_str(&message));
    talk_finish(ret);
    headers_done(&headers);
    buf_done(&message);
}

/* Another call on the same connection. */
static bool ask_health(struct nimi *nimi) {
    struct talk talk;
    ask_row(nimi, &rows[NIMI_HEALTH], &talk);
    bool in_time = talk_wait(&talk, NULL, NULL, nimi->options->timeout_ms);
    talk_done(&talk);
    return in_time;
}

static void wait_for(struct nimi *nimi, struct nimi_scene *scene, bool leave) {
    bool in_time =
        talk_wait(&scene->talk, leave ? nimi_has_frame : NULL, NULL, nimi->options->timeout_ms);
    if (leave && in_time) {
        in_time = ask_health(nimi);
        asker_wait(nimi->target->asker, WATCHED_MS);
    }
    if (!in_time) nimi->silent++;
}

bool nimi_watch_once(struct judge *judge) {
    struct nimi *nimi = nimi_of(judge);
    struct talk talk;
    ask_row(nimi, &rows[NIMI_WATCH], &talk);
    bool in_time = talk_wait(&talk, nimi_has_frame, NULL, nimi->options->timeout_ms);
    if (!in_time) nimi->silent++;
    bool came = talk.count > 0;
    talk_done(&talk);
    return came;
}

/* --- what came of it ----------------------------------------------------------------------------- */

const void *nimi_frame(const struct nimi_scene *scene, size_t index) {
    assert(index < scene->count);
    return scene->frames + index * scene->frame->size;
}

static void describe_frame(size_t index, const struct reader_frame *frame, size_t len,
                           struct buf *out) {
    buf_printf(out, "frame %zu", index + 1);
    if (frame->has_number) buf_printf(out, ", number %llu", (unsigned long long)frame->number);
    buf_printf(out, ", %zu bytes", len);
    if (frame->text.len)
        buf_printf(out, ", text '" STR_FMT "'", STR_ARG(str_head(frame->text, 200)));
    buf_append(out, frame->last      ? STR(", the completing one\n")
                    : frame->dropped ? STR(", after the end\n")
                                     : STR("\n"));
}

/* Feed the reader: each frame, then the status with its reason, then the end. */
static void feed(struct nimi_scene *scene, const struct reader_method *method,
                 struct buf *text) {
    const struct talk *talk = &scene->talk;
    const struct talk_field *details = talk_find(talk, STR("grpc-status-details-bin"));
    struct arena *arena = arena_new(TALK_DECODED_MAX_BYTES);
    reader_init(&scene->reader, method, 1);
    for (size_t i = 0; i < talk->count; i++) {
        struct reader_frame frame;
        reader_message(&scene->reader, talk->messages[i], arena, &frame);
        describe_frame(i, &frame, talk->messages[i].len, text);
    }
    if (details) reader_status_details(&scene->reader, details->value);
    if (talk->end.said.len) reader_status_message(&scene->reader, talk->end.said);
    bool open = !talk->ended && scene->reader.state == READER_FINISHED;
    const struct reader_end end = {.code = talk->ended ? talk->end.code : ERR_NONE,
                                   .from_server = talk->ended && talk->end.from_server,
                                   .never_seen = talk->ended && talk->end.never_seen,
                                   .by_us = !talk->ended && !open,
                                   .open = open};
    scene->advice = reader_close(&scene->reader, &end);
    arena_free(arena);
}

static void put_end(const struct nimi_scene *scene, struct buf *out) {
    talk_describe_end(&scene->talk, out);
    if (scene->reader.method == &unary) return;
    buf_printf(out, " (" STR_FMT ")", STR_ARG(stream_outcome_name(scene->advice.outcome)));
}

const char *nimi_end_of(const struct nimi_scene *scene, char room[NIMI_END_BYTES]) {
    struct buf text;
    buf_init(&text, NIMI_END_BYTES - 1);
    put_end(scene, &text);
    snprintf(room, NIMI_END_BYTES, STR_FMT, STR_ARG(buf_str(&text)));
    buf_done(&text);
    return room;
}

static void nimi_scene_describe(enum nimi_scene_id id, struct nimi_scene *scene,
                                struct str frames) {
    struct buf text;
    buf_init(&text, 2 * FINDING_SEEN_MAX_BYTES);
    buf_append(&text, str_head(frames, FINDING_SEEN_MAX_BYTES));
    buf_append(&text, STR("end: "));
    put_end(scene, &text);
    buf_printf(&scene->talk.sent_text, "%s%s", rows[id].path, wrong_notes[rows[id].wrong]);
    talk_show(&scene->talk, buf_str(&text));
    buf_done(&text);
}

/* --- scenes -------------------------------------------------------------------------------------- */

struct nimi_scene *nimi_scene_begin(struct judge *judge, enum nimi_scene_id id) {
    struct nimi *nimi = nimi_of(judge);
    struct nimi_scene *scene = &nimi->scenes[id];
    assert(!nimi->played[id]);
    scene->not_played = nimi->silent >= SILENT_MAX;
    if (scene->not_played)
        talk_none(nimi->target->asker, &scene->talk);
    else
        ask_row(nimi, &rows[id], &scene->talk);
    return scene;
}

void nimi_scene_end(struct judge *judge, enum nimi_scene_id id) {
    struct nimi *nimi = nimi_of(judge);
    struct nimi_scene *scene = &nimi->scenes[id];
    const struct pb_message *reply = rows[id].reply;
    const struct reader_method *method =
        reply ? &unary : reader_method_find(str_from(rows[id].path));
    const void *frames;
    struct buf text;
    buf_init(&text, FINDING_SEEN_MAX_BYTES);
    talk_leave(&scene->talk);
    scene->frame = reply ? reply : method->frame;
    scene->count = talk_decode(&scene->talk, scene->frame, &frames);
    scene->frames = frames;
    feed(scene, method, &text);
    nimi_scene_describe(id, scene, buf_str(&text));
    buf_done(&text);
    nimi->played[id] = true;
}

const struct nimi_scene *nimi_scene(struct judge *judge, enum nimi_scene_id id) {
    struct nimi *nimi = nimi_of(judge);
    struct nimi_scene *scene = &nimi->scenes[id];
    if (!nimi->played[id]) {
        nimi_scene_begin(judge, id);
        if (!scene->not_played) wait_for(nimi, scene, rows[id].leave);
        nimi_scene_end(judge, id);
    }
    if (scene->not_played) judge_skip(judge, NOT_PLAYED);
    return scene;
}

/* --- the world ----------------------------------------------------------------------------------- */

struct nimi *nimi_of(const struct judge *judge) {
    return judge->world;
}

static uint64_t probe_ms(const struct validate_options *options) {
    return options->timeout_ms < PROBE_MS ? options->timeout_ms : PROBE_MS;
}

/* The one that was asked for, the first that the server lists, or any name. */
static void choose_model(struct nimi *nimi) {
    static const struct scene_row row = {.path = LIST_MODELS};
    struct nimi_list_models_response models;
    struct talk talk;
    struct err e;
    buf_init(&nimi->model, KIB);
    buf_append(&nimi->model, str_head(nimi->options->model, KIB));
    if (nimi->model.len) return;
    struct arena *arena = arena_new(TALK_DECODED_MAX_BYTES);
    ask_row(nimi, &row, &talk);
    bool ended = talk_wait(&talk, NULL, NULL, probe_ms(nimi->options));
    if (ended && talk.count &&
        pb_decode_view(&nimi_list_models_response_table, talk.messages[0], arena, &models,
                       &e) &&
        models.models_count)
        buf_append(&nimi->model, str_head(models.models[0].model_id, KIB));
    if (!nimi->model.len) buf_append(&nimi->model, STR(USUAL_MODEL));
    talk_done(&talk);
    arena_free(arena);
}

static bool is_starting(struct nimi *nimi) {
    struct nimi_get_runtime_health_response health = {.status = 0};
    struct talk talk;
    struct err e;
    struct arena *arena = arena_new(TALK_DECODED_MAX_BYTES);
    ask_row(nimi, &rows[NIMI_HEALTH], &talk);
    bool ended = talk_wait(&talk, NULL, NULL, probe_ms(nimi->options));
    bool starting = ended && talk.count &&
                    pb_decode_view(&nimi_get_runtime_health_response_table, talk.messages[0],
                                   arena, &health, &e) &&
                    health.status == NIMI_RUNTIME_HEALTH_STATUS_STARTING;
    talk_done(&talk);
    arena_free(arena);
    return starting;
}

/* A server that was started for this may answer before it is ready. */
static void wait_until_ready(struct nimi *nimi) {
    struct target *target = nimi->target;
    uint64_t late_ms = clock_mono_ms() + nimi->options->boot_timeout_ms;
    talk_until_available(target->asker,
                         &(struct talk_options){.url = buf_str(&target->url),
                                                .path = str_from(rows[NIMI_HEALTH].path)},
                         nimi->options->boot_timeout_ms);
    while (clock_mono_ms() < late_ms && is_starting(nimi))
        asker_wait(target->asker, STARTING_PAUSE_MS);
}

void *nimi_open(struct target *target, const struct validate_options *options) {
    struct nimi *nimi = MEM_NEW(struct nimi);
    uint32_t random = 0;
    ssize_t got = getrandom(&random, sizeof(random), 0);
    assert(got == sizeof(random));
    (void)got;
    nimi->target = target;
    nimi->options = options;
    snprintf(nimi->run, sizeof(nimi->run), "%08x", random);
    talk_put_message(options->input, &nimi->message);
    talk_put_message(options->error_input, &nimi->error_message);
    buf_init(&nimi->job, KIB);
    if (target->kind != TARGET_URL) wait_until_ready(nimi);
    choose_model(nimi);
    return nimi;
}

static void scene_done(struct nimi_scene *scene) {
    talk_done(&scene->talk);
    reader_done(&scene->reader);
}

void nimi_close(void *world) {
    struct nimi *nimi = world;
    for (size_t i = 0; i < NIMI_SCENE_COUNT; i++) {
        if (nimi->played[i]) scene_done(&nimi->scenes[i]);
    }
    buf_done(&nimi->message);
    buf_done(&nimi->error_message);
    buf_done(&nimi->model);
    buf_done(&nimi->job);
    free(nimi);
}

/* The calls are without the envelope, so nothing is executed. */
bool nimi_speaks(struct target *target, const struct validate_options *options) {
    static const enum nimi_scene_id asked[] = {NIMI_HEALTH, NIMI_TEXT};
    bool speaks = false;
    for (size_t i = 0; i < ARRAY_LEN(asked) && !speaks; i++)
        speaks = talk_serves(target->asker,
                             &(struct talk_options){.url = buf_str(&target->url),
                                                    .path = str_from(rows[asked[i]].path)},
                             probe_ms(options));
    return speaks;
}
