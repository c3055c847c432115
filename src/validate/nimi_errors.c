/* Checks of nimi.runtime.v1: what is refused, and how a refusal carries its reason. */
#include "validate/nimi.h"

#include <stddef.h>

/* --- what is refused ----------------------------------------------------------------------------- */

/* Refused before any frame. Another reason than the contract's is a remark. */
static void judge_refusal(struct judge *judge, enum nimi_scene_id id, enum err_code code,
                          struct str reason, struct str or_reason, const char *what) {
    const struct nimi_scene *scene = nimi_scene(judge, id);
    struct str seen = buf_str(&scene->reader.reason);
    if (!nimi_judge_refused(judge, scene, code, what) || !seen.len) return;
    if (!str_equal(seen, reason) && !str_equal(seen, or_reason))
        judge_warn(judge, &scene->talk.evidence,
                   "expected the reason " STR_FMT " for %s, got " STR_FMT, STR_ARG(reason),
                   what, STR_ARG(seen));
}

#define ENVELOPE STR("PROTOCOL_ENVELOPE_INVALID")

void check_envelope_missing(struct judge *judge) {
    judge_refusal(judge, NIMI_NO_ENVELOPE, ERR_INVALID_ARGUMENT, ENVELOPE, ENVELOPE,
                  "a call without the headers x-nimi-*");
}

void check_envelope_major(struct judge *judge) {
    judge_refusal(judge, NIMI_OTHER_MAJOR, ERR_INVALID_ARGUMENT, ENVELOPE, ENVELOPE,
                  "two versions of the protocol that differ");
}

void check_envelope_long(struct judge *judge) {
    judge_refusal(judge, NIMI_LONG_HEADER, ERR_INVALID_ARGUMENT, ENVELOPE, ENVELOPE,
                  "a header of 4097 bytes");
}

void check_refusal_model(struct judge *judge) {
    judge_refusal(judge, NIMI_NO_MODEL, ERR_INVALID_ARGUMENT, STR("AI_MODEL_ID_REQUIRED"),
                  ENVELOPE, "a request without a model_id");
}

void check_refusal_input(struct judge *judge) {
    judge_refusal(judge, NIMI_NO_INPUT, ERR_INVALID_ARGUMENT, STR("AI_INPUT_INVALID"),
                  STR("AI_INPUT_INVALID"), "a request without an input");
}

void check_refusal_app(struct judge *judge) {
    judge_refusal(judge, NIMI_NO_APP, ERR_INVALID_ARGUMENT, STR("AI_APP_ID_REQUIRED"),
                  STR("AI_APP_ID_REQUIRED"), "a request without an app_id");
}

void check_refusal_other_app(struct judge *judge) {
    judge_refusal(judge, NIMI_OTHER_APP, ERR_INVALID_ARGUMENT, STR("AI_APP_ID_CONFLICT"),
                  STR("PROTOCOL_DOMAIN_FIELD_CONFLICT"),
                  "an app_id that is not the one of x-nimi-app-id");
}

void check_refusal_connector(struct judge *judge) {
    judge_refusal(judge, NIMI_NO_CONNECTOR, ERR_NOT_FOUND, STR("AI_CONNECTOR_NOT_FOUND"),
                  STR("AI_CONNECTOR_NOT_FOUND"), "a connector that is unknown");
}

/* --- the three carriers: the status, its message, its details ------------------------------------ */

struct rpc_status {
    int32_t code;
};
static const struct pb_field rpc_status_fields[] = {
    {1, PB_INT32, PB_IMPLICIT, offsetof(struct rpc_status, code), 0, NULL, "code"}};
static const struct pb_message rpc_status_table = {
    "google.rpc.Status", rpc_status_fields, 1, 1, sizeof(struct rpc_status), false};

/* What each of the two says by itself. */
struct carriers {
    struct reader message, details;
    bool json;    /* the message is an object with a reasonCode */
    int32_t code; /* in the details; -1: there are none */
};

static const struct reader_method refusal = {.mode = CLOSE_DONE, .kind = READER_PLAIN};

static void carriers_init(const struct nimi_scene *scene, struct carriers *ret) {
    const struct talk_field *field = talk_find(&scene->talk, STR("grpc-status-details-bin"));
    struct str said = scene->talk.end.said;
    struct json object;
    struct rpc_status status;
    struct err e;
    struct arena *arena = arena_new(64 * KIB);
    reader_init(&ret->message, &refusal, 1);
    reader_init(&ret->details, &refusal, 1);
    reader_status_message(&ret->message, said);
    if (field) reader_status_details(&ret->details, field->value);
    ret->json = json_read(said, &object, &e) && object.kind == JSON_OBJECT &&
                json_find(object, STR("reasonCode")).kind == JSON_STRING;
    ret->code = field && pb_decode_view(&rpc_status_table, field->value, arena, &status, &e)
                    ? status.code
                    : -1;
    arena_free(arena);
}

static void carriers_done(struct carriers *carriers) {
    reader_done(&carriers->message);
    reader_done(&carriers->details);
}

typedef void judge_carriers_fn(struct judge *judge, const struct nimi_scene *scene,
                               const struct carriers *carriers);

static void judge_details(struct judge *judge, const struct nimi_scene *scene,
                          const struct carriers *carriers) {
    if (!carriers->details.reason.len)
        judge_break(judge, &scene->talk.evidence,
                    "expected google.rpc.ErrorInfo with a reason in grpc-status-details-bin, "
                    "got none");
}

static void judge_message(struct judge *judge, const struct nimi_scene *scene,
                          const struct carriers *carriers) {
    if (!carriers->json || !carriers->message.reason.len)
        judge_break(judge, &scene->talk.evidence,
                    "expected a JSON object with reasonCode as grpc-message, got '" STR_FMT "'",
                    STR_ARG(str_head(scene->talk.end.said, 200)));
}

static void judge_agreement(struct judge *judge, const struct nimi_scene *scene,
                            const struct carriers *carriers) {
    struct str by_message = buf_str(&carriers->message.reason);
    struct str by_details = buf_str(&carriers->details.reason);
    if (by_message.len && by_details.len && !str_equal(by_message, by_details))
        judge_break(judge, &scene->talk.evidence,
                    "expected one reason, got " STR_FMT " in the message and " STR_FMT
                    " in the details",
                    STR_ARG(by_message), STR_ARG(by_details));
    else if (carriers->code >= 0 && carriers->code != (int32_t)scene->talk.end.code)
        judge_break(judge, &scene->talk.evidence,
                    "expected the status %d in the details too, got %d",
                    (int)scene->talk.end.code, carriers->code);
}

/* Each refusal of the other checks. */
static void judge_all(struct judge *judge, judge_carriers_fn *judge_one) {
    static const enum nimi_scene_id ids[] = {NIMI_NO_ENVELOPE, NIMI_OTHER_MAJOR, NIMI_NO_MODEL,
                                             NIMI_NO_INPUT,    NIMI_NO_APP,      NIMI_OTHER_APP,
                                             NIMI_NO_CONNECTOR};
    size_t refused = 0;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct nimi_scene *scene = nimi_scene(judge, ids[i]);
        struct carriers carriers;
        if (!scene->talk.ended || !scene->talk.end.from_server ||
            scene->talk.end.code == ERR_NONE)
            continue;
        refused++;
        carriers_init(scene, &carriers);
        judge_one(judge, scene, &carriers);
        carriers_done(&carriers);
    }
    if (!refused) judge_skip(judge, "there was no refusal to look at");
}

void check_refusal_details(struct judge *judge) {
    judge_all(judge, judge_details);
}

void check_refusal_message(struct judge *judge) {
    judge_all(judge, judge_message);
}

void check_refusal_agrees(struct judge *judge) {
    judge_all(judge, judge_agreement);
}
