/* Streams as servers send them, honest and lying, through the gRPC decoder and cut at every
 * byte: the frames, the faults and the outcome must always be the same. */
#include "reader/reader.h"

#include "base/mem.h"
#include "client/grpc_reply.h"
#include "contract/nimi/methods.h"
#include "contract/nimi/reason.h"
#include "helper/assert_str.h"
#include "helper/moves.h"
#include "proto/nimi.pb.h"
#include "proto/runtime.pb.h"

static void a_reader_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"waiting reading", "waiting finished",
                                        "waiting closed",  "reading finished",
                                        "reading closed",  "finished closed"};
    assert_moves(reader_states, READER_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- frames by letters -------------------------------------------------------------------- */

#define SEEN_MAX_BYTES (64 * KIB)
#define ROOM (16 * KIB)

static void put_scenario(char letter, uint64_t number, struct buf *out) {
    const struct nimi_text_stream_delta text = {.text = STR("hi")};
    const struct nimi_scenario_stream_delta delta = {
        .which_delta = NIMI_SCENARIO_STREAM_DELTA_TEXT, .text = &text};
    const struct nimi_scenario_stream_started started = {.model_resolved = STR("m")};
    const struct nimi_scenario_stream_completed completed = {.finish_reason = 1};
    const struct nimi_scenario_stream_failed failed = {
        .reason_code = letter == 'G' ? NIMI_AI_OUTPUT_INVALID : NIMI_AI_PROVIDER_TIMEOUT,
        .action_hint = STR("try later")};
    const struct nimi_stream_frame done = {.done = true}, bare = {.text_delta = STR("ho")};
    const struct nimi_stream_frame refused = {.done = true,
                                              .reason_code = NIMI_AI_PROVIDER_TIMEOUT};
    struct nimi_stream_scenario_event event = {.sequence = number};
    switch (letter) {
    case 's':
        event.event_type = NIMI_STREAM_EVENT_STARTED;
        event.which_payload = NIMI_STREAM_SCENARIO_EVENT_STARTED;
        event.started = &started;
        break;
    case 'd':
        event.event_type = NIMI_STREAM_EVENT_DELTA;
        event.which_payload = NIMI_STREAM_SCENARIO_EVENT_DELTA;
        event.delta = &delta;
        break;
    case 'b': /* the text in `frame` alone */
        event.event_type = NIMI_STREAM_EVENT_DELTA;
        event.frame = &bare;
        break;
    case '?': event.event_type = 77; break;
    case 'C': /* upstream's payload alone */
    case 'c': /* and `frame` beside it */
        event.frame = letter == 'c' ? &done : NULL;
        event.event_type = NIMI_STREAM_EVENT_COMPLETED;
        event.which_payload = NIMI_STREAM_SCENARIO_EVENT_COMPLETED;
        event.completed = &completed;
        break;
    case 'F':
    case 'G':
        event.event_type = NIMI_STREAM_EVENT_FAILED;
        event.which_payload = NIMI_STREAM_SCENARIO_EVENT_FAILED;
        event.failed = &failed;
        break;
    case 'E': event.frame = &done; break;    /* done alone */
    case 'R': event.frame = &refused; break; /* done with a reason alone */
    case 'L':                                /* a COMPLETED that has a reason */
        event.event_type = NIMI_STREAM_EVENT_COMPLETED;
        event.which_payload = NIMI_STREAM_SCENARIO_EVENT_COMPLETED;
        event.completed = &completed;
        event.frame = &refused;
        break;
    default: fail_msg("no frame '%c'", letter);
    }
    assert_true(pb_encode(&nimi_stream_scenario_event_table, &event, out));
}

static void put_job(char letter, uint64_t number, struct buf *out) {
    struct nimi_scenario_job job = {.status = NIMI_SCENARIO_JOB_STATUS_RUNNING};
    struct nimi_scenario_job_event event = {
        .event_type = NIMI_SCENARIO_JOB_EVENT_RUNNING, .sequence = number, .job = &job};
    switch (letter) {
    case 'r': break;
    case '?': event.event_type = 99; break;
    case 'C':
        event.event_type = NIMI_SCENARIO_JOB_EVENT_COMPLETED;
        job.status = NIMI_SCENARIO_JOB_STATUS_COMPLETED;
        break;
    case 'F':
        event.event_type = NIMI_SCENARIO_JOB_EVENT_FAILED;
        job.status = NIMI_SCENARIO_JOB_STATUS_FAILED;
        job.reason_code = NIMI_AI_OUTPUT_INVALID;
        job.reason_detail = STR("not JSON");
        break;
    case 'T':
        event.event_type = NIMI_SCENARIO_JOB_EVENT_TIMEOUT;
        job.status = NIMI_SCENARIO_JOB_STATUS_TIMEOUT;
        break;
    case 'X':
        event.event_type = NIMI_SCENARIO_JOB_EVENT_CANCELED;
        job.status = NIMI_SCENARIO_JOB_STATUS_CANCELED;
        break;
    case 'S': job.status = NIMI_SCENARIO_JOB_STATUS_COMPLETED; break; /* the snapshot alone */
    default: fail_msg("no frame '%c'", letter);
    }
    assert_true(pb_encode(&nimi_scenario_job_event_table, &event, out));
}

static void put_workflow(char letter, uint64_t number, struct buf *out) {
    static const struct {
        char letter;
        int type;
    } types[] = {{'r', NIMI_WORKFLOW_EVENT_NODE_STARTED},
                 {'C', NIMI_WORKFLOW_EVENT_COMPLETED},
                 {'F', NIMI_WORKFLOW_EVENT_FAILED},
                 {'X', NIMI_WORKFLOW_EVENT_CANCELED},
                 {'e', NIMI_WORKFLOW_EVENT_NODE_EXTERNAL_COMPLETED},
                 {'?', 55}};
    struct nimi_workflow_event event = {.event_type = -1, .sequence = number};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].letter == letter) event.event_type = types[i].type;
    }
    assert_true(event.event_type >= 0);
    if (letter == 'F') event.reason_code = NIMI_WF_TIMEOUT;
    assert_true(pb_encode(&nimi_workflow_event_table, &event, out));
}

static void put_export(char letter, uint64_t number, struct buf *out) {
    const struct nimi_audit_export_chunk chunk = {
        .sequence = number, .chunk = STR("{}\n"), .eof = letter == 'E'};
    assert_true(pb_encode(&nimi_audit_export_chunk_table, &chunk, out));
}

static void put_health(char letter, uint64_t number, struct buf *out) {
    const struct nimi_runtime_health_event event = {.sequence = number,
                                                    .status = letter == 'z' ? 5 : 3};
    assert_true(pb_encode(&nimi_runtime_health_event_table, &event, out));
}

static void put_account(char letter, uint64_t number, struct buf *out) {
    const struct nimi_account_session_event event = {.event_type = letter, .sequence = number};
    assert_true(pb_encode(&nimi_account_session_event_table, &event, out));
}

static void put_memory(char letter, uint64_t number, struct buf *out) {
    const struct nimi_memory_event event = {.event_type = letter, .sequence = number};
    assert_true(pb_encode(&nimi_memory_event_table, &event, out));
}

static void put_realtime(char letter, uint64_t number, struct buf *out) {
    const struct nimi_realtime_event event = {.event_type = letter, .sequence = number};
    assert_true(pb_encode(&nimi_realtime_event_table, &event, out));
}

static void put_converse(char letter, uint64_t number, struct buf *out) {
    (void)number;
    const struct crawbl_chunk_event chunk = {.agent_id = STR("a"), .text = STR("yo")};
    const struct crawbl_done_event done = {.model = STR("m")};
    const struct crawbl_done_event failed = {.model = STR("ERROR: NOT_FOUND: no such agent")};
    const struct crawbl_converse_event event =
        letter == 't'
            ? (struct crawbl_converse_event){.which_event = CRAWBL_CONVERSE_EVENT_CHUNK,
                                             .chunk = &chunk}
            : (struct crawbl_converse_event){.which_event = CRAWBL_CONVERSE_EVENT_DONE,
                                             .done = letter == 'F' ? &failed : &done};
    assert_true(pb_encode(&crawbl_converse_event_table, &event, out));
}

typedef void put_fn(char letter, uint64_t number, struct buf *out);

/* --- cases -------------------------------------------------------------------------------- */

#define LOST -1 /* no trailers: the connection is gone */
#define OPEN -2 /* nothing after the frames */

/* Frames are numbered from `first`; '+' leaves a number out, '-' takes one again, '!' is a frame
 * that is no message. */
struct script {
    const char *method;
    put_fn *put;
    uint64_t first;
    const char *frames;
    int status; /* grpc-status, or one of the above */
    const char *outcome, *faults;
    const char *reason;
    size_t turns;
    bool by_us;
};

#define S "StreamScenario", put_scenario, 1
#define J "SubscribeScenarioJobEvents", put_job, 1
#define W "SubscribeWorkflowEvents", put_workflow, 1
#define E "ExportAuditEvents", put_export, 0
#define H "SubscribeRuntimeHealthEvents", put_health, 1
#define M "SubscribeMemoryEvents", put_memory, 70
#define K "SubscribeAccountSessionEvents", put_account, 9
#define R "ReadRealtimeEvents", put_realtime, 1
#define V "Converse", put_converse, 0

static const struct script scripts[] = {
    /* clang-format off */
    /* A */
    {S, "sdddC", 0,    "completed", "", "", 1, false},
    {S, "sdbdc", 0,    "completed", "", "", 1, false},
    {S, "sd?dC", 0,    "completed", "", "", 1, false},
    {S, "sdF",   0,    "failed", "", "394", 1, false},
    {S, "sdG",   0,    "failed", "", "207", 1, false},
    {S, "sdE",   0,    "completed", "disagrees ", "", 1, false},
    {S, "sdR",   0,    "failed", "disagrees ", "394", 1, false},
    {S, "sdL",   0,    "failed", "disagrees ", "394", 1, false},
    {S, "sdC",   14,   "completed", "error_after_end ", "", 1, false},
    {S, "sdC",   1,    "completed", "error_after_end ", "", 1, false},
    {S, "sdF",   8,    "failed", "error_after_end ", "394", 1, false},
    {S, "sdC",   LOST, "completed", "error_after_end ", "", 1, false},
    {S, "sdC",   OPEN, "completed", "not_closed ", "", 1, false},
    {S, "sdCdd", 0,    "completed", "after_end ", "", 1, false},
    {S, "sdFC",  0,    "failed", "after_end ", "394", 1, false},
    {S, "sdC!F", 13,   "completed", "after_end error_after_end ", "", 1, false},
    {S, "",      0,    "truncated", "no_end ", "", 1, false},
    {S, "sdd",   0,    "truncated", "no_end ", "", 1, false},
    {S, "sd!",   0,    "truncated", "malformed no_end ", "", 1, false},
    {S, "",      14,   "unknown", "", "", 1, false},
    {S, "",      LOST, "unknown", "", "", 1, false},
    {S, "s",     LOST, "broken", "", "", 1, false},
    {S, "sd",    13,   "broken", "", "", 1, false},
    {S, "sd",    14,   "broken", "", "", 1, false},
    {S, "sd",    1,    "preempted", "", "", 1, false},
    {S, "",      1,    "preempted", "", "", 1, false},
    {S, "sd",    8,    "slow_consumer", "", "", 1, false},
    {S, "",      4,    "timed_out", "", "", 1, false},
    {S, "sd",    4,    "timed_out", "", "", 1, false},
    {S, "s+dC",  0,    "completed", "gap ", "", 1, false},
    {S, "+sdC",  0,    "completed", "first_number ", "", 1, false},
    {S, "sd-dC", 0,    "completed", "number_order ", "", 1, false},
    {S, "sd",    OPEN, "cancelled", "", "", 1, true},
    {S, "sdC",   OPEN, "completed", "not_closed ", "", 1, true},
    /* B */
    {J, "rrC",   0,    "completed", "", "", 1, false},
    {J, "rrrF",  0,    "failed", "", "207", 1, false},
    {J, "rT",    0,    "failed", "", "", 1, false},
    {J, "rX",    0,    "work_cancelled", "", "", 1, false},
    {J, "rS",    0,    "completed", "disagrees ", "", 1, false},
    {J, "r?r+C", 0,    "completed", "", "", 1, false},
    {J, "rCr",   0,    "completed", "after_end ", "", 1, false},
    {J, "rC",    8,    "completed", "error_after_end ", "", 1, false},
    {J, "rr",    0,    "truncated", "no_end ", "", 1, false},
    {J, "rr",    1,    "preempted", "", "", 1, false},
    {J, "rr",    8,    "slow_consumer", "", "", 1, false},
    {J, "rr",    14,   "broken", "", "", 1, false},
    {J, "rr",    LOST, "broken", "", "", 1, false},
    {J, "rr",    2,    "broken", "", "", 1, false},
    {J, "",      5,    "refused", "", "", 1, false},
    {J, "",      7,    "refused", "", "", 1, false},
    {J, "r-r",   0,    "truncated", "number_order no_end ", "", 1, false},
    {W, "rreC",  0,    "completed", "", "", 1, false},
    {W, "r?F",   0,    "failed", "", "442", 1, false},
    {W, "rX",    0,    "work_cancelled", "", "", 1, false},
    {W, "rer",   0,    "truncated", "no_end ", "", 1, false},
    {W, "",      16,   "refused", "", "", 1, false},
    {W, "rr",    OPEN, "cancelled", "", "", 1, true},
    /* C */
    {E, "E",     0,    "completed", "", "", 1, false},
    {E, "dddE",  0,    "completed", "", "", 1, false},
    {E, "ddE",   OPEN, "completed", "not_closed ", "", 1, false},
    {E, "ddE",   14,   "completed", "error_after_end ", "", 1, false},
    {E, "ddEd",  0,    "completed", "after_end ", "", 1, false},
    {E, "dd+E",  0,    "incomplete", "gap ", "", 1, false},
    {E, "+ddE",  0,    "incomplete", "first_number ", "", 1, false},
    {E, "d-dE",  0,    "incomplete", "number_order ", "", 1, false},
    {E, "dd",    0,    "incomplete", "no_end ", "", 1, false},
    {E, "dd",    1,    "incomplete", "", "", 1, false},
    {E, "dd",    LOST, "incomplete", "", "", 1, false},
    {E, "",      16,   "refused", "", "", 1, false},
    {E, "",      3,    "refused", "", "", 1, false},
    {E, "dd",    OPEN, "cancelled", "", "", 1, true},
    /* D */
    {H, "hhz",   1,    "disconnected", "", "", 1, false},
    {H, "",      1,    "disconnected", "", "", 1, false},
    {H, "hh",    0,    "disconnected", "ok_on_subscription ", "", 1, false},
    {H, "h+h",   8,    "slow_consumer", "", "", 1, false},
    {H, "hh",    14,   "broken", "", "", 1, false},
    {H, "hh",    LOST, "broken", "", "", 1, false},
    {H, "",      LOST, "broken", "", "", 1, false},
    {H, "",      12,   "refused", "", "", 1, false},
    {H, "",      7,    "refused", "", "", 1, false},
    {H, "hh-h",  1,    "disconnected", "number_order ", "", 1, false},
    {H, "hh",    OPEN, "cancelled", "", "", 1, true},
    {M, "abC",   1,    "disconnected", "", "", 1, false},
    {M, "ab!",   1,    "disconnected", "malformed ", "", 1, false},
    {K, "a----bcd", 1, "disconnected", "", "", 1, false},
    {R, "ab+c",  1,    "disconnected", "gap ", "", 1, false},
    /* Converse */
    {V, "ttD",   0,    "completed", "", "", 1, false},
    {V, "ttF",   0,    "failed", "", "NOT_FOUND", 1, false},
    {V, "tDtD",  0,    "completed", "", "", 2, false},
    {V, "tFtD",  0,    "failed", "", "NOT_FOUND", 2, false},
    {V, "tD",    0,    "truncated", "no_end ", "", 2, false},
    {V, "tDt",   0,    "completed", "after_end ", "", 1, false},
    {V, "",      16,   "refused", "", "", 1, false},
    {V, "",      13,   "unknown", "", "", 1, false},
    {V, "t",     16,   "broken", "", "", 1, false},
    {V, "tt",    1,    "preempted", "", "", 1, false},
    {V, "tt",    LOST, "broken", "", "", 1, false},
    /* clang-format on */
};

static void write_frames(const struct script *script, struct buf *out) {
    uint64_t number = script->first;
    for (const char *at = script->frames; *at; at++) {
        struct buf message;
        buf_init(&message, ROOM);
        if (*at == '+') number++;
        if (*at == '-') number--;
        if (*at == '!') buf_append(&message, STR("\xff\xff"));
        if (*at != '+' && *at != '-') {
            if (*at != '!') script->put(*at, number, &message);
            grpc_append_message(out, buf_str(&message));
            number++;
        }
        buf_done(&message);
    }
}

/* --- reading ------------------------------------------------------------------------------ */

struct read {
    struct reader reader;
    struct grpc_reply reply;
    struct buf seen; /* what was reported of the frames, one after the other */
};

static void take_message(struct read *read, struct str message) {
    struct reader_frame frame;
    struct str own = exact_copy(message);
    struct arena *arena = arena_new(MIB);
    reader_message(&read->reader, own, arena, &frame);
    buf_printf(&read->seen, "%c%zu'" STR_FMT "'%llu-%llu/%x;",
               frame.dropped     ? 'x'
               : frame.last      ? 'L'
               : frame.turn_over ? 't'
                                 : '.',
               own.len, STR_ARG(frame.text), (unsigned long long)frame.number,
               (unsigned long long)frame.missing, frame.faults);
    arena_free(arena);
    free((void *)(uintptr_t)own.at);
}

static void feed(struct read *read, struct str bytes) {
    struct str message;
    struct err e;
    enum grpc_step step;
    while ((step = grpc_reply_next(&read->reply, &bytes, &message, &e)) == GRPC_MESSAGE)
        take_message(read, message);
    assert_int_equal(step, GRPC_MORE);
}

static struct reader_end end_of(struct read *read, const struct script *script) {
    struct grpc_call_end end;
    struct err why, lost;
    char digits[8];
    struct h2_end stream_end = {.why = NULL};
    if (script->status == OPEN)
        return (struct reader_end){.open = true,
                                   .by_us = script->by_us,
                                   .code = script->by_us ? ERR_CANCELLED : ERR_NONE};
    snprintf(digits, sizeof(digits), "%d", script->status);
    err_set(&lost, ERR_UNAVAILABLE, "the connection is gone");
    if (script->status == LOST)
        stream_end.why = &lost;
    else
        grpc_reply_field(&read->reply, STR("grpc-status"), str_from(digits));
    grpc_reply_end(&read->reply, &stream_end, &end, &why);
    return (struct reader_end){.code = end.code, .from_server = end.from_server};
}

static void write_faults(const struct reader *reader, struct buf *out) {
    for (unsigned i = 0; i < FAULT_COUNT; i++) {
        if (reader->faults & 1u << i)
            buf_printf(out, STR_FMT " ",
                       STR_ARG(reader_fault_name((enum reader_fault)(1u << i))));
    }
}

/* Read the stream in pieces: `first` bytes, then `piece` bytes each. */
static void read_stream(const struct script *script, struct str bytes, size_t first,
                        size_t piece, struct buf *ret) {
    struct read read;
    struct err e;
    const struct reader_method *method = reader_method_find(str_from(script->method));
    assert_non_null(method);
    reader_init(&read.reader, method, script->turns);
    grpc_reply_init(&read.reply, 0);
    buf_init(&read.seen, SEEN_MAX_BYTES);
    grpc_reply_field(&read.reply, STR("content-type"), STR("application/grpc"));
    assert_true(grpc_reply_head(&read.reply, 200, &e));
    feed(&read, str_head(bytes, first));
    for (bytes = str_skip(bytes, first); bytes.len; bytes = str_skip(bytes, piece))
        feed(&read, str_head(bytes, piece));
    struct reader_end end = end_of(&read, script);
    struct stream_outcome_advice advice = reader_close(&read.reader, &end);
    buf_printf(ret, STR_FMT "|", STR_ARG(stream_outcome_name(advice.outcome)));
    write_faults(&read.reader, ret);
    buf_append_byte(ret, '|');
    if (read.reader.reason_code) buf_append_i64(ret, read.reader.reason_code);
    buf_append(ret, buf_str(&read.reader.reason));
    buf_append_byte(ret, '|');
    buf_append(ret, buf_str(&read.seen));
    buf_done(&read.seen);
    grpc_reply_done(&read.reply);
    reader_done(&read.reader);
}

static void check_script(const struct script *script) {
    struct buf bytes, whole, cut, expected;
    buf_init(&bytes, ROOM);
    buf_init(&whole, SEEN_MAX_BYTES);
    buf_init(&cut, SEEN_MAX_BYTES);
    buf_init(&expected, SEEN_MAX_BYTES);
    write_frames(script, &bytes);
    read_stream(script, buf_str(&bytes), bytes.len, 1, &whole);
    buf_printf(&expected, "%s|%s|%s|", script->outcome, script->faults, script->reason);
    struct str got = str_head(buf_str(&whole), expected.len);
    if (!str_equal(got, buf_str(&expected)))
        fail_msg("%s \"%s\" %d: " STR_FMT ", not " STR_FMT, script->method, script->frames,
                 script->status, STR_ARG(buf_str(&whole)), STR_ARG(buf_str(&expected)));
    for (size_t first = 0; first <= bytes.len; first++) {
        buf_clear(&cut);
        read_stream(script, buf_str(&bytes), first, bytes.len + 1, &cut);
        assert_true(str_equal(buf_str(&cut), buf_str(&whole)));
    }
    buf_clear(&cut);
    read_stream(script, buf_str(&bytes), 0, 1, &cut);
    assert_true(str_equal(buf_str(&cut), buf_str(&whole)));
    buf_done(&expected);
    buf_done(&cut);
    buf_done(&whole);
    buf_done(&bytes);
}

static void each_stream_has_one_outcome_however_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) check_script(&scripts[i]);
}

/* A stream that ends inside a frame has no trailers that count. */
static void a_stream_that_ends_inside_a_frame_is_broken(void **state) {
    (void)state;
    const struct script script = {S, "sdC", 0, "", "", "", 1, false};
    struct buf bytes;
    buf_init(&bytes, ROOM);
    write_frames(&script, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        struct buf seen;
        buf_init(&seen, SEEN_MAX_BYTES);
        read_stream(&script, str_head(buf_str(&bytes), len), len, 1, &seen);
        assert_false(str_starts(buf_str(&seen), STR("completed")));
        buf_done(&seen);
    }
    buf_done(&bytes);
}

/* --- the text of frames ------------------------------------------------------------------- */

static void a_delta_is_read_from_either_place(void **state) {
    (void)state;
    const struct script script = {S, "sdbC", 0, "", "", "", 1, false};
    struct buf bytes, seen;
    buf_init(&bytes, ROOM);
    buf_init(&seen, SEEN_MAX_BYTES);
    write_frames(&script, &bytes);
    read_stream(&script, buf_str(&bytes), bytes.len, 1, &seen);
    assert_true(str_find(buf_str(&seen), STR("'hi'2")) < seen.len);
    assert_true(str_find(buf_str(&seen), STR("'ho'3")) < seen.len);
    buf_done(&seen);
    buf_done(&bytes);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void check_message(const char *message, const char *reason, const char *text) {
    struct reader reader;
    reader_init(&reader, reader_method_find(STR("StreamScenario")), 1);
    reader_status_message(&reader, str_from(message));
    assert_str(buf_str(&reader.reason), reason);
    assert_str(buf_str(&reader.message), text);
    reader_done(&reader);
}

static void a_reason_is_found_in_each_form_of_a_status_message(void **state) {
    (void)state;
    check_message("{\"reasonCode\":\"AI_APP_ID_REQUIRED\",\"message\":\"name it\"}",
                  "AI_APP_ID_REQUIRED", "name it");
    check_message("rpc failed: {\"reason_code\":\"WF_TIMEOUT\",\"action_hint\":\"h\"} (1)",
                  "WF_TIMEOUT",
                  "rpc failed: {\"reason_code\":\"WF_TIMEOUT\",\"action_hint\":\"h\"} (1)");
    check_message("AI_APP_ID_REQUIRED", "AI_APP_ID_REQUIRED", "AI_APP_ID_REQUIRED");
    check_message("AI_X: say which", "AI_X", "AI_X: say which");
    check_message("runtime is shutting down", "", "runtime is shutting down");
    check_message("{\"reasonCode\":7}", "", "{\"reasonCode\":7}");
    check_message("{broken", "", "{broken");
    check_message("", "", "");
}

static struct stream_outcome_advice refuse(const char *message, enum err_code code) {
    struct reader reader;
    reader_init(&reader, reader_method_find(STR("StreamScenario")), 1);
    reader_status_message(&reader, str_from(message));
    const struct reader_end end = {.code = code, .from_server = true};
    struct stream_outcome_advice advice = reader_close(&reader, &end);
    reader_done(&reader);
    return advice;
}

static void what_the_server_says_about_retries_counts_more_than_the_status(void **state) {
    (void)state;
    struct stream_outcome_advice advice =
        refuse("{\"reasonCode\":\"AI_X\",\"retryable\":true}", ERR_FAILED_PRECONDITION);
    assert_int_equal(advice.outcome, STREAM_REFUSED);
    assert_int_equal(advice.repeat, REPEAT_YES);
    advice = refuse("{\"reasonCode\":\"AI_X\",\"retryable\":false}", ERR_UNAVAILABLE);
    assert_int_equal(advice.repeat, REPEAT_NO);
    advice = refuse("AI_PROVIDER_RATE_LIMITED", ERR_FAILED_PRECONDITION);
    assert_int_equal(advice.repeat, REPEAT_YES);
    advice = refuse("AI_OUTPUT_INVALID", ERR_INTERNAL);
    assert_int_equal(advice.repeat, REPEAT_NO);
}

static void the_details_of_a_status_count_more_than_its_message(void **state) {
    (void)state;
    struct reader reader;
    reader_init(&reader, reader_method_find(STR("StreamScenario")), 1);
    static const char info[] = "\x0a\x04WF_X\x12\x0fnimi.runtime.v1"
                               "\x1a\x11\x0a\x09retryable\x12\x04true";
    struct buf any, status;
    buf_init(&any, KIB);
    buf_init(&status, KIB);
    static const char type[] = "type.googleapis.com/google.rpc.ErrorInfo";
    buf_printf(&any, "\x0a%c%s\x12%c", (int)sizeof(type) - 1, type, (int)sizeof(info) - 1);
    buf_append(&any, str_of(info, sizeof(info) - 1));
    buf_printf(&status, "\x08\x09\x12\x04said\x1a%c", (int)any.len);
    buf_append(&status, buf_str(&any));
    reader_status_details(&reader, buf_str(&status));
    reader_status_message(&reader, STR("AI_OTHER"));
    assert_str(buf_str(&reader.reason), "WF_X");
    assert_str(buf_str(&reader.message), "said");
    assert_true(reader.stated && reader.retryable);
    for (size_t len = 0; len < status.len; len++) /* any truncation is harmless */
        reader_status_details(&reader, str_head(buf_str(&status), len));
    buf_done(&status);
    buf_done(&any);
    reader_done(&reader);
}

static void the_reasons_that_can_help_are_those_of_the_contract(void **state) {
    (void)state;
    static const char *const names[] = {"AI_PROVIDER_UNAVAILABLE", "AI_PROVIDER_TIMEOUT",
                                        "AI_PROVIDER_RATE_LIMITED", "AI_STREAM_BROKEN",
                                        "SESSION_EXPIRED"};
    const struct reason *reason;
    size_t found = 0;
    for (size_t cursor = 0; reason_next(&cursor, &reason);) {
        bool helps = reader_reason_can_help(str_from(reason->name), 0);
        assert_int_equal(helps, reader_reason_can_help(STR_EMPTY, reason->number));
        bool listed = false;
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            listed = listed || strcmp(names[i], reason->name) == 0;
        assert_int_equal(helps, listed);
        found += helps;
    }
    assert_int_equal(found, ARRAY_LEN(names));
}

/* --- server-sent events ------------------------------------------------------------------- */

struct events {
    const char *method, *text;
    unsigned status; /* of HTTP; 0: the connection broke before the body was complete */
    const char *outcome, *faults, *reason, *seen;
};

static const struct events events[] = {
    /* clang-format off */
    {"/stream", "data: {\"delta\":\"a\"}\n\ndata: {\"text\":\"b\"}\n\nevent: result\ndata: {\"output\":\"ab\"}\n\ndata: [DONE]\n\n",
     200, "completed", "", "", "a,b,,L"},
    {"/stream", ": hello\r\n\r\ndata: {\"type\":\"x\",\"delta\":\"a\"}\r\n\r\ndata:[DONE]\r\n\r\n", 200, "completed", "", "", "a,L"},
    {"/stream", "event: step\ndata: {\"description\":\"d\"}\n\nevent: error\ndata: {\"error\":\"it broke\"}\n\ndata: [DONE]\n\n",
     200, "failed", "", "", ",,L"},
    {"/stream", "data: {\"error\":{\"code\":\"INTERNAL_ERROR\",\"message\":\"m\"}}\n\ndata: [DONE]\n\n",
     200, "failed", "", "INTERNAL_ERROR", ",L"},
    {"/stream", "data: {\"error\":\"gone\"}\n\n", 200, "failed", "no_end ", "", ","},
    {"/stream", "data: {\"delta\":\"a\"}\n\n", 200, "truncated", "no_end ", "", "a,"},
    {"/stream", "", 200, "truncated", "no_end ", "", ""},
    {"/stream", "data: {\"delta\":\"a\"}\n\n", 0, "broken", "", "", "a,"},
    {"/stream", "data: {\"delta\":\"a\"}\n\ndata: [DO", 200, "truncated", "no_end ", "", "a,"},
    {"/stream", "data: hi\n\ndata: [DONE]\n\n", 200, "completed", "malformed ", "", ",L"},
    {"/stream", "data: [DONE]\n\ndata: {\"delta\":\"z\"}\n\n", 200, "completed", "after_end ", "", "Lx"},
    {"/stream", "event: token\ndata: [DONE]\n\n", 200, "truncated", "no_end ", "", ","},
    {"runs/7/events", "id: 1-1\nevent: started\ndata: {}\n\nid: 1-2\nevent: text\ndata: {\"text\":\"a\"}\n\nid: 1-3\nevent: done\ndata: {}\n\n",
     200, "completed", "", "", ",a,L"},
    {"runs/7/events", "id: 1-1\nevent: started\ndata: {}\n\nid: 1-2\nevent: failed\ndata: {\"reason\":\"PROVIDER_TIMEOUT\",\"message\":\"m\"}\n\n",
     200, "failed", "", "PROVIDER_TIMEOUT", ",L"},
    {"/weir/v1/runs/7/events", "id: 1-4\nevent: cancelled\ndata: {}\n\n", 200, "work_cancelled", "", "", "L"},
    {"runs/7/events", "id: 1-1\nevent: started\ndata: {}\n\n", 200, "truncated", "no_end ", "", ","},
    {"runs/7/events", "id: 1-2\nevent: text\ndata: {}\n\nid: 1-2\nevent: text\ndata: {}\n\n", 0, "broken", "number_order ", "", ",,"},
    /* clang-format on */
};

struct heard {
    struct reader reader;
    struct buf seen;
};

static void on_event(const struct sse_event *event, void *ctx) {
    struct heard *heard = ctx;
    struct reader_frame frame;
    struct arena *arena = arena_new(MIB);
    reader_event(&heard->reader, event, arena, &frame);
    buf_append(&heard->seen, frame.text);
    buf_append(&heard->seen, frame.dropped ? STR("x") : frame.last ? STR("L") : STR(","));
    arena_free(arena);
}

static void check_events(const struct events *from, size_t cut) {
    struct heard heard;
    struct err e;
    struct buf faults;
    buf_init(&faults, KIB);
    buf_init(&heard.seen, SEEN_MAX_BYTES);
    reader_init(&heard.reader, reader_method_find(str_from(from->method)), 1);
    struct sse *sse = sse_new(KIB, on_event, &heard);
    struct str text = str_from(from->text);
    assert_true(sse_feed(sse, str_head(text, cut), &e));
    assert_true(sse_feed(sse, str_skip(text, cut), &e));
    const struct reader_end end = {.code = from->status ? ERR_NONE : ERR_UNAVAILABLE,
                                   .from_server = from->status != 0};
    struct stream_outcome_advice advice = reader_close(&heard.reader, &end);
    assert_str(stream_outcome_name(advice.outcome), from->outcome);
    write_faults(&heard.reader, &faults);
    assert_str(buf_str(&faults), from->faults);
    assert_str(buf_str(&heard.reader.reason), from->reason);
    assert_str(buf_str(&heard.seen), from->seen);
    sse_free(sse);
    reader_done(&heard.reader);
    buf_done(&heard.seen);
    buf_done(&faults);
}

static void each_event_stream_has_one_outcome_however_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        for (size_t cut = 0; cut <= strlen(events[i].text); cut++)
            check_events(&events[i], cut);
    }
}

static void an_http_refusal_is_read_in_each_form(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body, *reason, *message;
        enum stream_outcome outcome;
        enum stream_outcome_repeat repeat;
    } answers[] = {
        /* clang-format off */
        {401, "{\"detail\":\"Missing bearer token\",\"error\":{\"code\":\"UNAUTHORIZED\",\"message\":\"m\"}}", "UNAUTHORIZED", "m", STREAM_REFUSED, REPEAT_NO},
        {403, "{\"error\":\"unauthorized\"}", "UNSPECIFIED", "unauthorized", STREAM_REFUSED, REPEAT_NO},
        {422, "{\"detail\":[{}]}", "UNSPECIFIED", "{\"detail\":[{}]}", STREAM_REFUSED, REPEAT_NO},
        {503, "{\"error\":{\"code\":\"AGENT_NOT_LOADED\",\"message\":\"m\"}}", "AGENT_NOT_LOADED", "m", STREAM_REFUSED, REPEAT_YES},
        {500, "{\"error\":{\"code\":\"INTERNAL_ERROR\",\"message\":\"m\"}}", "", "m", STREAM_UNKNOWN, REPEAT_UNKNOWN},
        {502, "<html>", "", "<html>", STREAM_UNKNOWN, REPEAT_UNKNOWN},
        {405, "", "UNSPECIFIED", "", STREAM_REFUSED, REPEAT_NO},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct reader reader;
        reader_init(&reader, reader_method_find(STR("/stream")), 1);
        enum err_code code =
            reader_http_refusal(&reader, answers[i].status, str_from(answers[i].body));
        assert_str(buf_str(&reader.reason), answers[i].reason);
        assert_str(buf_str(&reader.message), answers[i].message);
        const struct reader_end end = {.code = code, .from_server = true};
        struct stream_outcome_advice advice = reader_close(&reader, &end);
        assert_int_equal(advice.outcome, answers[i].outcome);
        assert_int_equal(advice.repeat, answers[i].repeat);
        reader_done(&reader);
    }
}

/* --- methods ------------------------------------------------------------------------------ */

static void each_stream_that_is_served_is_known_with_its_mode(void **state) {
    (void)state;
    const struct nimi_row *row;
    size_t streams = 0;
    for (size_t i = 0; (row = nimi_row_at(i)); i++) {
        if (row->kind != RPC_SERVER_STREAM) continue;
        const struct reader_method *method = reader_method_find(row->path);
        if (!method) fail_msg("unknown: " STR_FMT, STR_ARG(row->path));
        assert_int_equal(method->mode, row->ends);
        if (method->request) assert_ptr_equal(method->request, row->type);
        streams++;
    }
    assert_true(streams >= 7);
}

static void a_method_is_found_by_its_path_and_by_its_last_part(void **state) {
    (void)state;
    const struct reader_method *method;
    for (size_t i = 0; (method = reader_method_at(i)); i++) {
        assert_true((method->frame != NULL) || method->kind == READER_PLAIN ||
                    reader_kind_is_http(method->kind));
        if (method->kind == READER_RUN) continue;
        assert_ptr_equal(reader_method_find(method->path), method);
    }
    assert_non_null(reader_method_find(STR("StreamScenario")));
    assert_non_null(reader_method_find(STR("Watch")));
    assert_non_null(reader_method_find(STR("runs/9/events")));
    static const char *const unknown[] = {"",
                                          "/",
                                          "scenario",
                                          "runs//events",
                                          "runs/events",
                                          "runs/a/b/events",
                                          "runs/a b/events",
                                          "runs/a\r\nx/events",
                                          "/x/StreamScenario"};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        assert_null(reader_method_find(str_from(unknown[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_moves_as_drawn),
        cmocka_unit_test(each_stream_has_one_outcome_however_it_is_cut),
        cmocka_unit_test(a_stream_that_ends_inside_a_frame_is_broken),
        cmocka_unit_test(a_delta_is_read_from_either_place),
        cmocka_unit_test(a_reason_is_found_in_each_form_of_a_status_message),
        cmocka_unit_test(what_the_server_says_about_retries_counts_more_than_the_status),
        cmocka_unit_test(the_details_of_a_status_count_more_than_its_message),
        cmocka_unit_test(the_reasons_that_can_help_are_those_of_the_contract),
        cmocka_unit_test(each_event_stream_has_one_outcome_however_it_is_cut),
        cmocka_unit_test(an_http_refusal_is_read_in_each_form),
        cmocka_unit_test(each_stream_that_is_served_is_known_with_its_mode),
        cmocka_unit_test(a_method_is_found_by_its_path_and_by_its_last_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
