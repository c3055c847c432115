#include "reader/frame.h"

#include "base/attr.h"
#include "proto/nimi.pb.h"
#include "proto/runtime.pb.h"
#include "wire/event.h"
#include "wire/json.h"

#include <assert.h>

/* --- a number alone ----------------------------------------------------------------------- */

/* Messages whose other fields we do not know, by the field that holds their number. */
struct numbered {
    uint64_t number;
};
static const struct pb_field number_fields[][1] = {
    {{1, PB_UINT64, PB_IMPLICIT, 0, 0, NULL, "number"}},
    {{2, PB_UINT64, PB_IMPLICIT, 0, 0, NULL, "number"}},
};
static const struct pb_message numbered_tables[] = {
    {"numbered", number_fields[0], 1, 0, sizeof(struct numbered), false},
    {"numbered", number_fields[1], 1, 0, sizeof(struct numbered), false},
};

static void read_plain(const struct reader_method *method, struct str message,
                       struct arena *arena, struct frame_facts *ret) {
    struct numbered numbered;
    struct err none;
    if (method->number_field == 0) return;
    assert(method->number_field <= ARRAY_LEN(numbered_tables));
    ret->has_number = pb_decode_view(&numbered_tables[method->number_field - 1], message, arena,
                                     &numbered, &none);
    ret->malformed = !ret->has_number;
    ret->number = ret->has_number ? numbered.number : 0;
}

/* --- StreamScenario ----------------------------------------------------------------------- */

static void read_delta(const struct nimi_stream_scenario_event *event,
                       struct frame_facts *ret) {
    const struct nimi_scenario_stream_delta *delta =
        event->which_payload == NIMI_STREAM_SCENARIO_EVENT_DELTA ? event->delta : NULL;
    if (delta && delta->which_delta == NIMI_SCENARIO_STREAM_DELTA_TEXT)
        ret->text = delta->text->text;
    if (!ret->text.len && event->frame) ret->text = event->frame->text_delta;
}

/* The payload, the event type and frame.done each say whether the stream is complete. Any of
 * them is believed, and a failure before a success. */
static void read_scenario(const void *message, struct frame_facts *ret) {
    const struct nimi_stream_scenario_event *event = message;
    bool completed = event->which_payload == NIMI_STREAM_SCENARIO_EVENT_COMPLETED;
    bool failed = event->which_payload == NIMI_STREAM_SCENARIO_EVENT_FAILED;
    bool done = event->frame && event->frame->done;
    int reason = failed ? event->failed->reason_code : 0;
    if (done && !reason) reason = event->frame->reason_code;
    ret->has_number = true;
    ret->number = event->sequence;
    read_delta(event, ret);
    bool says_completed = event->event_type == NIMI_STREAM_EVENT_COMPLETED;
    bool says_failed = event->event_type == NIMI_STREAM_EVENT_FAILED;
    ret->disagrees = says_completed != completed || says_failed != failed ||
                     (done && !completed && !failed) ||
                     (event->frame && !done && (completed || failed)) ||
                     (completed && reason != 0);
    if (failed || says_failed || (done && reason)) {
        ret->last = LAST_FAILED;
        ret->reason_code = reason;
        ret->message = failed ? event->failed->action_hint : STR_EMPTY;
    } else if (completed || says_completed || done) {
        ret->last = LAST_DONE;
    }
}

/* --- jobs and workflows ------------------------------------------------------------------- */

/* What a terminal number of an enum stands for; LAST_DATA for all others. */
static enum stream_outcome_last last_of(int value, int completed, int failed, int cancelled,
                                        int timed_out) {
    if (value == completed) return LAST_DONE;
    if (value == cancelled) return LAST_CANCELLED;
    return value == failed || value == timed_out ? LAST_FAILED : LAST_DATA;
}

/* A terminal snapshot counts, even if the event's type says something else. */
static void read_job(const void *message, struct frame_facts *ret) {
    const struct nimi_scenario_job_event *event = message;
    const struct nimi_scenario_job *job = event->job;
    enum stream_outcome_last by_type = last_of(
        event->event_type, NIMI_SCENARIO_JOB_EVENT_COMPLETED, NIMI_SCENARIO_JOB_EVENT_FAILED,
        NIMI_SCENARIO_JOB_EVENT_CANCELED, NIMI_SCENARIO_JOB_EVENT_TIMEOUT);
    enum stream_outcome_last by_snapshot =
        job ? last_of(job->status, NIMI_SCENARIO_JOB_STATUS_COMPLETED,
                      NIMI_SCENARIO_JOB_STATUS_FAILED, NIMI_SCENARIO_JOB_STATUS_CANCELED,
                      NIMI_SCENARIO_JOB_STATUS_TIMEOUT)
            : by_type;
    ret->has_number = true;
    ret->number = event->sequence;
    ret->last = by_snapshot > LAST_DATA ? by_snapshot : by_type;
    ret->disagrees = by_snapshot != by_type;
    if (ret->last != LAST_FAILED || !job) return;
    ret->reason_code = job->reason_code;
    ret->message = job->reason_detail;
}

static void read_workflow(const void *message, struct frame_facts *ret) {
    const struct nimi_workflow_event *event = message;
    ret->has_number = true;
    ret->number = event->sequence;
    ret->last =
        last_of(event->event_type, NIMI_WORKFLOW_EVENT_COMPLETED, NIMI_WORKFLOW_EVENT_FAILED,
                NIMI_WORKFLOW_EVENT_CANCELED, NIMI_WORKFLOW_EVENT_FAILED);
    if (ret->last == LAST_FAILED) ret->reason_code = event->reason_code;
}

/* --- exports ------------------------------------------------------------------------------ */

static void read_export(const void *message, struct frame_facts *ret) {
    const struct nimi_audit_export_chunk *chunk = message;
    ret->has_number = true;
    ret->number = chunk->sequence;
    if (chunk->eof) ret->last = LAST_DONE;
}

/* --- Converse ----------------------------------------------------------------------------- */

/* "ERROR: CODE: text", or "ERROR: text". */
static void read_failed_turn(struct str model, struct frame_facts *ret) {
    struct str text, said = str_trim(str_skip(model, STR("ERROR:").len));
    struct str code = str_trim(str_split(said, ':', &text));
    bool coded = text.at && code.len && str_is_plain(code, "_");
    ret->last = LAST_FAILED;
    ret->reason = coded ? code : STR_EMPTY;
    ret->message = coded ? str_trim(text) : said;
}

static void read_converse(const void *message, struct frame_facts *ret) {
    const struct crawbl_converse_event *event = message;
    if (event->which_event == CRAWBL_CONVERSE_EVENT_CHUNK) ret->text = event->chunk->text;
    if (event->which_event != CRAWBL_CONVERSE_EVENT_DONE) return;
    struct str model = str_trim(event->done->model);
    ret->last = LAST_DONE;
    if (str_starts(model, STR("ERROR:"))) read_failed_turn(model, ret);
}

typedef void read_fn(const void *message, struct frame_facts *ret);

static read_fn *const readers[READER_KIND_COUNT] = {
    [READER_SCENARIO] = read_scenario, [READER_JOB] = read_job,
    [READER_WORKFLOW] = read_workflow, [READER_EXPORT] = read_export,
    [READER_CONVERSE] = read_converse,
};

void frame_read_message(const struct reader_method *method, struct str message,
                        struct arena *arena, struct frame_facts *ret) {
    struct err none;
    *ret = (struct frame_facts){.last = LAST_DATA};
    if (!readers[method->kind]) {
        read_plain(method, message, arena, ret);
        return;
    }
    void *decoded = arena_alloc(arena, method->frame->size);
    ret->malformed = !decoded || !pb_decode_view(method->frame, message, arena, decoded, &none);
    if (!ret->malformed) readers[method->kind](decoded, ret);
}

/* --- server-sent events ------------------------------------------------------------------- */

/* A text of an object; empty if it has none under that name. */
static struct str reader_frame_member(struct json object, struct str name,
                                      struct arena *arena) {
    struct json value = json_find(object, name);
    struct str text = STR_EMPTY;
    if (value.kind == JSON_STRING && !json_str(value, arena, &text)) return STR_EMPTY;
    return text;
}

/* {"error": "text"}, or {"error": {"code", "message"}}. */
static void frame_read_error(struct json data, struct arena *arena, struct frame_facts *ret) {
    struct json error = json_find(data, STR("error"));
    ret->announces_failure = true;
    ret->message = reader_frame_member(data, STR("error"), arena);
    if (error.kind != JSON_OBJECT) return;
    ret->reason = reader_frame_member(error, STR("code"), arena);
    ret->message = reader_frame_member(error, STR("message"), arena);
}

/* [DONE] completes the stream; an error before it says that the run failed. */
static void read_turn(const struct sse_event *event, struct arena *arena,
                      struct frame_facts *ret) {
    struct json data;
    struct err none;
    bool implicit = str_equal(event->type, STR("message"));
    bool error = str_equal(event->type, STR("error"));
    if (implicit && str_equal(str_trim(event->data), STR("[DONE]"))) {
        ret->last = LAST_DONE;
    } else if (!json_read(event->data, &data, &none)) {
        ret->malformed = implicit || error;
        ret->announces_failure = error;
        ret->message = error ? event->data : STR_EMPTY;
    } else if (error || (implicit && json_find(data, STR("error")).kind != JSON_NONE)) {
        frame_read_error(data, arena, ret);
    } else if (implicit) {
        ret->text = reader_frame_member(data, STR("delta"), arena);
        if (!ret->text.len) ret->text = reader_frame_member(data, STR("text"), arena);
    }
}

/* The id is "<epoch>-<seq>". */
static void frame_read_place(const struct sse_event *event, struct frame_facts *ret) {
    struct str number;
    str_split(event->id, '-', &number);
    ret->has_number = number.at && str_to_u64(number, &ret->number);
}

static bool is_kind(const struct sse_event *event, enum event_kind kind) {
    return str_equal(event->type, event_kind_name(kind));
}

static void read_run(const struct sse_event *event, struct arena *arena,
                     struct frame_facts *ret) {
    struct json data;
    struct err none;
    ret->malformed = !json_read(event->data, &data, &none);
    frame_read_place(event, ret);
    if (is_kind(event, EVENT_DONE)) ret->last = LAST_DONE;
    if (is_kind(event, EVENT_CANCELLED)) ret->last = LAST_CANCELLED;
    if (is_kind(event, EVENT_FAILED)) ret->last = LAST_FAILED;
    if (ret->malformed) return;
    if (is_kind(event, EVENT_TEXT)) ret->text = reader_frame_member(data, STR("text"), arena);
    if (ret->last != LAST_FAILED) return;
    ret->reason = reader_frame_member(data, STR("reason"), arena);
    ret->message = reader_frame_member(data, STR("message"), arena);
}

void frame_read_event(const struct reader_method *method, const struct sse_event *event,
                      struct arena *arena, struct frame_facts *ret) {
    *ret = (struct frame_facts){.last = LAST_DATA};
    if (method->kind == READER_TURN) read_turn(event, arena, ret);
    if (method->kind == READER_RUN) read_run(event, arena, ret);
}
