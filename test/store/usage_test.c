#include "store/fixture.h"

#include "helper/assert_str.h"

#include <inttypes.h>
#include <sys/wait.h>

#define DAY_MS INT64_C(86400000)
#define DAY INT64_C(20000)

/* One call, of so many tokens in and out, at so many nano-dollars. */
struct call {
    const char *workspace, *agent, *model;
    int64_t day, prompt, completion, cost;
};

static struct event event_of(const struct call *call) {
    struct event event = {
        .kind = EVENT_USAGE, .agent = str_from(call->agent), .usage = USAGE_UNKNOWN};
    event.usage.model = str_from(call->model);
    event.usage.prompt = call->prompt;
    event.usage.completion = call->completion;
    bool counted = call->prompt >= 0 && call->completion >= 0;
    if (counted) event.usage.total = call->prompt + call->completion;
    event.usage.cached = event.usage.thoughts = event.usage.tool_use = counted ? 1 : -1;
    event.usage.cost_nano = call->cost;
    return event;
}

/* A run of its own, begun on the call's day. */
static void make_call(struct fixture *f, uint64_t run, struct call call) {
    struct row_text row;
    struct event begins = started("s");
    begins.started.workspace = str_from(call.workspace);
    begins.started.unix_ms = call.day * DAY_MS + 7;
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, begins);
    row_event(&row, event_of(&call));
    fixture_write(f, row_end(&row, run));
}

static struct store_load usage_load(const char *workspace, int64_t from, int64_t to) {
    return (struct store_load){.question = STORE_USAGE,
                               .workspace = str_from(workspace),
                               .all_workspaces = !*workspace,
                               .from_day = from,
                               .to_day = to,
                               .max_bytes = 1 * MIB};
}

/* "workspace/agent/model day: calls(tokens unknown, cost unknown) prompt+completion=total cost"
 */
static void assert_usage(struct fixture *f, struct store_load load, const char *expected) {
    load = fixture_load(f, load);
    struct buf seen;
    buf_init(&seen, 1 * MIB);
    for (size_t i = 0; i < load.usage_count; i++) {
        const struct store_usage *usage = &load.usages[i];
        buf_printf(&seen,
                   "%s" STR_FMT "/" STR_FMT "/" STR_FMT " %" PRId64 ": %" PRId64 "(%" PRId64
                   ",%" PRId64 ") %" PRId64 "+%" PRId64 "=%" PRId64 " $%" PRId64,
                   i ? "; " : "", STR_ARG(usage->workspace), STR_ARG(usage->agent),
                   STR_ARG(usage->sums.model), usage->day - DAY, usage->calls,
                   usage->tokens_unknown, usage->cost_unknown, usage->sums.prompt,
                   usage->sums.completion, usage->sums.total, usage->sums.cost_nano);
        assert_int_equal(usage->sums.cached, usage->calls - usage->tokens_unknown);
        assert_int_equal(usage->sums.thoughts, usage->sums.cached);
        assert_int_equal(usage->sums.tool_use, usage->sums.cached);
    }
    assert_int_equal(load.section_count, 0);
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
    arena_free(load.arena);
}

static void make_some_calls(struct fixture *f) {
    make_call(f, 1, (struct call){"w", "manager", "m", DAY, 10, 1, 100});
    make_call(f, 2, (struct call){"w", "manager", "m", DAY, 20, 2, 200});
    make_call(f, 3, (struct call){"w", "manager", "m", DAY, -1, -1, -1});
    make_call(f, 4, (struct call){"w", "manager", "n", DAY, 5, 5, -1});
    make_call(f, 5, (struct call){"w", "wally", "m", DAY, 1, 1, 1});
    make_call(f, 6, (struct call){"w", "wally", "m", DAY + 1, 7, 7, 0});
    make_call(f, 7, (struct call){"x", "manager", "m", DAY + 1, 9, 9, 9});
}

#define ON_DAY_0                                                                               \
    "w/manager/m 0: 3(1,1) 30+3=33 $300; w/manager/n 0: 1(0,1) 5+5=10 $0; "                    \
    "w/wally/m 0: 1(0,0) 1+1=2 $1"

/* --- tests -------------------------------------------------------------------------------- */

/* Sums wait while the other tables are filled. If the process dies then, the rows are read again
 * for the sums alone, and each call counts once. */
enum { CALLS = 700 }; /* more than fill the tables */

static void make_many_calls(struct fixture *f) {
    for (uint64_t run = 1; run <= CALLS; run++)
        make_call(f, run,
                  (struct call){run % 2 ? "w" : "x", "manager", "m", DAY, 2, 1, (int64_t)run});
}

static void die_with_waiting_sums(struct fixture *f) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct fixture own = *f;
        own.loop = loop_new(); /* the parent's is not for a child */
        fixture_open(&own);
        make_many_calls(&own);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define ODD_CALLS "w/manager/m 0: 350(0,0) 700+350=1050 $122500"
#define EVEN_CALLS "x/manager/m 0: 350(0,0) 700+350=1050 $122850"

static void sums_that_waited_when_the_process_died_are_gathered_again(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    die_with_waiting_sums(f);
    assert_sql(f,
               "SELECT (SELECT value FROM meta WHERE name = 'usage') <"
               " (SELECT value FROM meta WHERE name = 'projected')",
               "1 ");
    for (int life = 0; life < 2; life++) {
        fixture_open(f);
        assert_usage(f, usage_load("", DAY, DAY), ODD_CALLS "; " EVEN_CALLS);
        fixture_close(f);
    }
}

/* The same if new calls come before the old rows are read, and without any question. */
static void new_sums_wait_for_those_that_are_read_again(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    die_with_waiting_sums(f);
    fixture_open(f);
    make_call(f, 1000, (struct call){"w", "manager", "m", DAY, 2, 1, 0});
    make_call(f, 1001, (struct call){"y", "manager", "m", DAY, 1, 1, 1});
    fixture_close(f);
    assert_sql(f, "SELECT CAST(workspace AS TEXT), calls, prompt, cost_nano FROM usage",
               "w 351 702 122500 x 350 700 122850 y 1 1 1 ");
    assert_sql(f,
               "SELECT (SELECT value FROM meta WHERE name = 'usage') ="
               " (SELECT value FROM meta WHERE name = 'projected')",
               "1 ");
}

/* Somebody set one mark back and died before the tables were full. */
static void a_mark_of_usage_beyond_the_tables_is_set_back(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    fixture_open(f);
    make_some_calls(f);
    fixture_close(f);
    fixture_sql(f, "DELETE FROM session; DELETE FROM run; DELETE FROM usage;"
                   "UPDATE meta SET value = 0 WHERE name = 'projected'");
    f->durability = STORE_NORMAL;
    die_with_waiting_sums(
        f); /* runs 1 to 7 begin twice; the first start counts for the tables */
    fixture_open(f);
    struct store_load load = fixture_load(f, usage_load("w", DAY, DAY + 1));
    int64_t calls = 0;
    for (size_t i = 0; i < load.usage_count; i++) calls += load.usages[i].calls;
    /* 6 from before, the second ones of runs 1 to 6, and those of runs 9, 11 ... 699. */
    assert_int_equal(calls, 6 + 6 + 346);
    arena_free(load.arena);
}

static void estimated_usage_is_summed_apart(void **state) {
    struct fixture *f = *state;
    struct call cut = {"w", "manager", "m", DAY, -1, -1, -1};
    fixture_open(f);
    make_call(f, 1, (struct call){"w", "manager", "m", DAY, 10, 1, 100});
    for (uint64_t run = 2; run <= 3; run++) {
        struct row_text row;
        struct event begins = started("s"), usage = event_of(&cut);
        begins.started.unix_ms = DAY * DAY_MS;
        usage.usage.estimated = true;
        usage.usage.estimate_prompt = 40;
        usage.usage.estimate_completion = run == 2 ? 2 : INT64_MAX;
        usage.usage.estimate_cost_nano = run == 2 ? 7 : TOKENS_UNKNOWN;
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, begins);
        row_event(&row, usage);
        fixture_write(f, row_end(&row, run));
        assert_usage(f, usage_load("w", DAY, DAY),
                     run == 2 ? "w/manager/m 0: 2(1,1) 10+1=11 $100"
                              : "w/manager/m 0: 3(2,2) 10+1=11 $100");
        struct store_load load = fixture_load(f, usage_load("w", DAY, DAY));
        assert_int_equal(load.usages[0].estimated, run - 1);
        assert_int_equal(load.usages[0].estimate_tokens, run == 2 ? 42 : INT64_MAX);
        assert_int_equal(load.usages[0].estimate_cost_nano, 7);
        arena_free(load.arena);
    }
}

static void calls_are_summed_by_workspace_agent_model_and_day(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    assert_usage(f, usage_load("", INT64_MIN, INT64_MAX), "");
    make_some_calls(f);
    assert_usage(f, usage_load("w", DAY, DAY), ON_DAY_0);
    assert_usage(f, usage_load("w", DAY + 1, INT64_MAX), "w/wally/m 1: 1(0,0) 7+7=14 $0");
    assert_usage(f, usage_load("w", DAY + 2, INT64_MAX), "");
    assert_usage(f, usage_load("w", INT64_MIN, DAY - 1), "");
    assert_usage(f, usage_load("", DAY + 1, DAY + 1),
                 "w/wally/m 1: 1(0,0) 7+7=14 $0; x/manager/m 1: 1(0,0) 9+9=18 $9");
}

/* M3 */
static void a_workspace_sees_its_own_calls_alone(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    make_some_calls(f);
    assert_usage(f, usage_load("x", INT64_MIN, INT64_MAX), "x/manager/m 1: 1(0,0) 9+9=18 $9");
    assert_usage(f, usage_load("nobody", INT64_MIN, INT64_MAX), "");
    assert_usage(f, usage_load("W", INT64_MIN, INT64_MAX), "");
}

static void sums_outlive_a_restart_and_go_on(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    make_some_calls(f);
    fixture_close(f);
    fixture_open(f);
    assert_usage(f, usage_load("w", DAY, DAY), ON_DAY_0);
    make_call(f, 8, (struct call){"w", "wally", "m", DAY, 1, 1, 1});
    assert_usage(f, usage_load("x", DAY + 1, DAY + 1), "x/manager/m 1: 1(0,0) 9+9=18 $9");
    make_call(f, 9, (struct call){"x", "manager", "m", DAY + 1, -1, 2, -1});
    assert_usage(f, usage_load("x", DAY + 1, DAY + 1), "x/manager/m 1: 2(1,1) 9+11=18 $9");
}

static void sums_that_have_no_room_stay_at_the_largest(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    for (uint64_t run = 1; run <= 3; run++) {
        make_call(f, run, (struct call){"w", "a", "m", DAY, 1, 1, INT64_MAX});
        assert_usage(f, usage_load("", DAY, DAY),
                     run == 1   ? "w/a/m 0: 1(0,0) 1+1=2 $9223372036854775807"
                     : run == 2 ? "w/a/m 0: 2(0,0) 2+2=4 $9223372036854775807"
                                : "w/a/m 0: 3(0,0) 3+3=6 $9223372036854775807");
    }
}

/* A sum that lacks something would be wrong. */
static void an_answer_that_is_too_large_is_refused_whole(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    make_some_calls(f);
    struct store_load load = usage_load("", INT64_MIN, INT64_MAX);
    for (load.max_bytes = 0; !fixture_try_load(f, &load); load.max_bytes++) {
        assert_int_equal(f->failed.code, ERR_RESOURCE_EXHAUSTED);
        assert_int_equal(load.usage_count, 0);
        assert_null(load.usages);
        arena_free(load.arena);
    }
    assert_int_equal(load.usage_count, 5);
    assert_true(load.max_bytes > 5 * sizeof(struct store_usage));
    arena_free(load.arena);
}

/* What calls cost stood in the log before there was a column for it. */
static void a_store_of_an_earlier_version_is_summed_from_its_log(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    make_some_calls(f);
    fixture_close(f);
    fixture_sql(f, FIXTURE_BACK_TO_8
                "ALTER TABLE usage DROP COLUMN cost_nano;"
                "ALTER TABLE usage DROP COLUMN cost_unknown; DROP TABLE keyed;"
                "DROP TABLE upload; DROP TABLE upload_piece;"
                "UPDATE meta SET value = 5 WHERE name = 'schema'");
    fixture_open(f);
    assert_usage(f, usage_load("w", DAY, DAY), ON_DAY_0);
    assert_usage(f, usage_load("x", DAY, DAY + 1), "x/manager/m 1: 1(0,0) 9+9=18 $9");
    struct store_load unfinished = fixture_load(
        f, (struct store_load){.question = STORE_UNFINISHED, .max_bytes = 1 * MIB});
    assert_int_equal(unfinished.section_count, 7); /* the other tables are whole as well */
    arena_free(unfinished.arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(calls_are_summed_by_workspace_agent_model_and_day),
        TEST(estimated_usage_is_summed_apart),
        TEST(a_workspace_sees_its_own_calls_alone),
        TEST(sums_outlive_a_restart_and_go_on),
        TEST(sums_that_have_no_room_stay_at_the_largest),
        TEST(an_answer_that_is_too_large_is_refused_whole),
        TEST(a_store_of_an_earlier_version_is_summed_from_its_log),
        TEST(sums_that_waited_when_the_process_died_are_gathered_again),
        TEST(new_sums_wait_for_those_that_are_read_again),
        TEST(a_mark_of_usage_beyond_the_tables_is_set_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
