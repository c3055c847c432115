/* Folding a job's journal: the result does not depend on how it is cut, and other journals give
 * nothing. */
#include "contract/nimi/job/job_fold.h"

#include "contract/nimi/ulid.h"
#include "helper/assert_str.h"

#include <stdio.h>

/* --- a journal ---------------------------------------------------------------------------- */

#define EVENTS_MAX 32

struct tale {
    struct buf bytes;
    size_t ends[EVENTS_MAX]; /* where each event ends */
    size_t count;
};

static void add(struct tale *tale, struct event event) {
    event.at_ms = (int64_t)tale->count * 10;
    event.agent = STR_EMPTY;
    assert_true(event_encode(&event, &tale->bytes));
    tale->ends[tale->count++] = tale->bytes.len;
}

static void add_item(struct tale *tale, const char *type, struct str bytes) {
    add(tale, (struct event){.kind = EVENT_ITEM, .item = {str_from(type), bytes}});
}

static void add_message(struct tale *tale, const char *type, const struct pb_message *table,
                        const void *message) {
    struct buf bytes;
    buf_init(&bytes, 64 * KIB);
    assert_true(pb_encode(table, message, &bytes));
    add_item(tale, type, buf_str(&bytes));
    buf_done(&bytes);
}

static void add_state(struct tale *tale, const char *state) {
    add_item(tale, RUN_JOB_STATE, str_from(state));
}

static void add_artifact(struct tale *tale, const char *artifact_id) {
    const struct nimi_scenario_artifact artifact = {.artifact_id = str_from(artifact_id)};
    add_message(tale, JOB_ARTIFACT, &nimi_scenario_artifact_table, &artifact);
}

static void begin(struct tale *tale, const char *contract) {
    const struct nimi_scenario_request_head head = {.app_id = STR("app"),
                                                    .subject_user_id = STR("anna"),
                                                    .model_id = STR("m"),
                                                    .timeout_ms = 7};
    const struct nimi_scenario_extension extension = {.namespace_ =
                                                          STR("nimi.scenario.image.request")};
    const struct nimi_submit_scenario_job_request request = {
        .head = &head,
        .scenario_type = NIMI_SCENARIO_TYPE_IMAGE_GENERATE,
        .extensions = &extension,
        .extensions_count = 1};
    const struct nimi_scenario_job known = {.job_id = STR("J"),
                                            .trace_id = STR("T"),
                                            .route_decision = NIMI_ROUTE_POLICY_LOCAL,
                                            .model_resolved = STR("m-1")};
    *tale = (struct tale){.count = 0};
    buf_init(&tale->bytes, MIB);
    add(tale, (struct event){.kind = EVENT_STARTED,
                             .started = {.workspace = STR("app"),
                                         .user = STR("anna"),
                                         .contract = str_from(contract),
                                         .unix_ms = 1700000000123}});
    add_message(tale, RUN_JOB_REQUEST, &nimi_submit_scenario_job_request_table, &request);
    add_message(tale, JOB_PATCH, &nimi_scenario_job_table, &known);
    add_state(tale, "{\"state\":\"submitted\"}");
    add_state(tale, "{\"state\":\"queued\"}");
}

/* Two attempts; what the first one made does not count. */
static void tell_whole(struct tale *tale) {
    const struct nimi_usage_stats used = {3, 4, -1};
    const struct nimi_scenario_job known = {.model_resolved = STR("m-2"), .usage = &used};
    const struct nimi_scenario_output output = {.which_output = 0};
    begin(tale, JOB_CONTRACT);
    add_state(tale, "{\"state\":\"running\",\"attempt\":1}");
    add_artifact(tale, "lost");
    add_state(tale, "{\"state\":\"queued\",\"attempt\":1}");
    add_state(tale, "{\"state\":\"running\",\"attempt\":2}");
    add_artifact(tale, "one");
    add_state(tale,
              "{\"state\":\"running\",\"attempt\":2,\"percent\":50,\"step\":1,\"steps\":2}");
    add_artifact(tale, "two");
    add_item(tale, "somebody/else", STR("\xff\xff"));
    add_message(tale, JOB_OUTPUT, &nimi_scenario_output_table, &output);
    add_message(tale, JOB_PATCH, &nimi_scenario_job_table, &known);
    add(tale, (struct event){.kind = EVENT_DONE, .done = {STR("m-2"), STR_EMPTY}});
}

/* --- what a fold shows -------------------------------------------------------------------- */

static void write_job(const struct job_fold *fold, struct buf *out) {
    const struct nimi_scenario_job *job = &fold->job;
    buf_printf(out, "%d/%llu retry%d %d%% %d/%d " STR_FMT " ", job->status,
               (unsigned long long)fold->run.sequence, job->retry_count, job->progress_percent,
               job->progress_current_step, job->progress_total_steps,
               STR_ARG(job->model_resolved));
    for (size_t i = 0; i < job->artifacts_count; i++)
        buf_printf(out, STR_FMT " ", STR_ARG(job->artifacts[i].artifact_id));
    if (job->usage)
        buf_printf(out, "used%lld/%lld ", (long long)job->usage->input_tokens,
                   (long long)job->usage->output_tokens);
    buf_printf(out, "at%lld.%d", (long long)fold->updated.seconds,
               fold->updated.nanos / 1000000);
}

static void assert_shown(const struct job_fold *fold, const char *expected) {
    struct buf shown;
    buf_init(&shown, 4 * KIB);
    write_job(fold, &shown);
    assert_str(buf_str(&shown), expected);
    buf_done(&shown);
}

static struct store_section section(const struct tale *tale, size_t from, size_t to) {
    size_t start = from ? tale->ends[from - 1] : 0;
    return (struct store_section){
        .run = 1,
        .first_seq = from + 1,
        .events = str_of(tale->bytes.at + start, tale->ends[to - 1] - start)};
}

/* --- tests -------------------------------------------------------------------------------- */

static void a_whole_journal_is_the_job(void **state) {
    (void)state;
    struct tale tale;
    struct job_fold fold;
    tell_whole(&tale);
    const struct store_section all = section(&tale, 0, tale.count);
    job_fold_init(&fold, RUN_FOLD_WHOLE);
    assert_true(run_fold_sections(&fold.run, &all, 1));
    assert_true(run_fold_is_shown(&fold.run) && run_fold_is_over(&fold.run));
    assert_shown(&fold, "4/7 retry1 100% 1/2 m-2 one two used3/4 at1700000000.273");
    assert_str(fold.job.head->app_id, "app");
    assert_int_equal(fold.job.head->timeout_ms, 7);
    assert_str(fold.job.job_id, "J");
    assert_str(fold.job.trace_id, "T");
    assert_int_equal(fold.job.ignored_extensions_count, 1);
    assert_str(fold.job.ignored_extensions[0].namespace_, "nimi.scenario.image.request");
    assert_true(fold.job.ignored_extensions[0].reason.len > 0);
    assert_int_equal(fold.job.reason_code, NIMI_ACTION_EXECUTED);
    assert_true(fold.run.request.len > 0);
    run_fold_done(&fold.run);
    buf_done(&tale.bytes);
}

/* Whatever a reader saw before, event by event, piece by piece or twice. */
static void it_is_the_same_however_it_is_cut(void **state) {
    (void)state;
    struct tale tale;
    tell_whole(&tale);
    for (size_t cut = 1; cut < tale.count; cut++) {
        struct job_fold fold;
        const struct store_section parts[] = {section(&tale, 0, cut),
                                              section(&tale, cut - 1, tale.count)};
        job_fold_init(&fold, RUN_FOLD_SHOWN);
        assert_true(run_fold_sections(&fold.run, parts, 2));
        assert_int_equal(fold.run.seq, tale.count);
        assert_shown(&fold, "4/7 retry1 100% 1/2 m-2 one two used3/4 at1700000000.273");
        run_fold_done(&fold.run);
    }
    buf_done(&tale.bytes);
}

static void only_states_are_events_and_they_are_counted(void **state) {
    (void)state;
    static const int expected[] = {1, 2, 3, 2, 3, 3, 4};
    struct tale tale;
    struct job_fold fold;
    struct event event = {0};
    struct err e;
    size_t sent = 0;
    tell_whole(&tale);
    struct str rest = buf_str(&tale.bytes);
    job_fold_init(&fold, RUN_FOLD_SHOWN);
    while (rest.len) {
        assert_true(event_decode(&rest, &event, &e));
        event.seq++;
        if (!job_fold_take(&fold, &event)) continue;
        struct nimi_scenario_job_event shown = job_fold_event(&fold);
        assert_true(sent < ARRAY_LEN(expected));
        assert_int_equal(shown.event_type, expected[sent++]);
        assert_int_equal(shown.sequence, sent);
        assert_ptr_equal(shown.job, &fold.job);
    }
    assert_int_equal(sent, ARRAY_LEN(expected));
    run_fold_done(&fold.run);
    buf_done(&tale.bytes);
}

static const struct {
    enum err_code code;
    const char *reason;
    int status, number;
} failures[] = {
    {ERR_DEADLINE_EXCEEDED, "PROVIDER_TIMEOUT", 7, NIMI_AI_PROVIDER_TIMEOUT},
    {ERR_DEADLINE_EXCEEDED, "", 7, NIMI_AI_PROVIDER_TIMEOUT},
    {ERR_RESOURCE_EXHAUSTED, "", 5, NIMI_AI_PROVIDER_RATE_LIMITED},
    {ERR_NOT_FOUND, "", 5, NIMI_AI_MODEL_NOT_FOUND},
    {ERR_FAILED_PRECONDITION, "", 5, NIMI_AI_ROUTE_UNSUPPORTED},
    {ERR_INVALID_ARGUMENT, "", 5, NIMI_AI_INPUT_INVALID},
    {ERR_UNAVAILABLE, "", 5, NIMI_AI_PROVIDER_UNAVAILABLE},
    {ERR_INTERNAL, "", 5, NIMI_AI_PROVIDER_UNAVAILABLE},
    {ERR_INTERNAL, "AI_CONNECTOR_DISABLED", 5, NIMI_AI_CONNECTOR_DISABLED},
    {ERR_UNAUTHENTICATED, "PROVIDER_AUTH", 5, NIMI_AI_PROVIDER_AUTH_FAILED},
};

static void a_failure_says_why(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct tale tale;
        struct job_fold fold;
        begin(&tale, JOB_CONTRACT);
        add(&tale, (struct event){.kind = EVENT_FAILED,
                                  .failed = {.code = failures[i].code,
                                             .reason = str_from(failures[i].reason),
                                             .message = STR_INIT("because")}});
        const struct store_section all = section(&tale, 0, tale.count);
        job_fold_init(&fold, RUN_FOLD_SHOWN);
        assert_true(run_fold_sections(&fold.run, &all, 1));
        assert_int_equal(fold.job.status, failures[i].status);
        assert_int_equal(fold.job.reason_code, failures[i].number);
        assert_str(fold.job.reason_detail, "because");
        assert_str(fold.job.reason_metadata->fields[0].value->string_value, "because");
        run_fold_done(&fold.run);
        buf_done(&tale.bytes);
    }
}

static void a_run_of_another_contract_is_no_job(void **state) {
    (void)state;
    struct tale tale;
    struct job_fold fold;
    begin(&tale, "crawbl");
    const struct store_section all = section(&tale, 0, tale.count);
    job_fold_init(&fold, RUN_FOLD_WHOLE);
    assert_true(run_fold_sections(&fold.run, &all, 1));
    assert_true(fold.run.foreign);
    assert_false(run_fold_is_shown(&fold.run));
    run_fold_done(&fold.run);
    buf_done(&tale.bytes);
}

static void a_damaged_request_is_no_job(void **state) {
    (void)state;
    struct tale tale = {.count = 0};
    struct job_fold fold;
    buf_init(&tale.bytes, MIB);
    add(&tale, (struct event){.kind = EVENT_STARTED,
                              .started = {.workspace = STR("app"),
                                          .user = STR("anna"),
                                          .contract = STR(JOB_CONTRACT)}});
    add_item(&tale, RUN_JOB_REQUEST, STR("\x0a\xff"));
    add_state(&tale, "{\"state\":\"submitted\"}");
    const struct store_section all = section(&tale, 0, tale.count);
    job_fold_init(&fold, RUN_FOLD_SHOWN);
    assert_true(run_fold_sections(&fold.run, &all, 1));
    assert_false(run_fold_is_shown(&fold.run));
    run_fold_done(&fold.run);
    buf_done(&tale.bytes);
}

static void an_id_holds_its_number(void **state) {
    (void)state;
    static const uint64_t numbers[] = {1, 42, UINT64_C(1882545084913680384), UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char id[ULID_LEN + 1], artifact[64];
        uint64_t number = 0;
        ulid_new_numbered(id, 1700000000123, numbers[i]);
        assert_int_equal(strlen(id), ULID_LEN);
        assert_true(ulid_number(str_from(id), &number));
        assert_true(number == numbers[i]);
        snprintf(artifact, sizeof(artifact), "artifact_%s", id);
        assert_true(job_artifact_number(str_from(artifact), &number));
        assert_true(number == numbers[i]);
        assert_false(ulid_number(str_of(id, ULID_LEN - 1), &number));
        assert_false(job_artifact_number(str_from(id), &number));
        id[3] = 'U'; /* no digit of it */
        assert_false(ulid_number(str_from(id), &number));
        id[3] = '0';
        id[0] = '8'; /* more than 128 bits */
        assert_false(ulid_number(str_from(id), &number));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_journal_is_the_job),
        cmocka_unit_test(it_is_the_same_however_it_is_cut),
        cmocka_unit_test(only_states_are_events_and_they_are_counted),
        cmocka_unit_test(a_failure_says_why),
        cmocka_unit_test(a_run_of_another_contract_is_no_job),
        cmocka_unit_test(a_damaged_request_is_no_job),
        cmocka_unit_test(an_id_holds_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
