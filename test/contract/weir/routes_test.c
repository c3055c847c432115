/* The routes of /weir/v1 in the real daemon, after a turn of the demo. */
#include "cli/contracts.h"

#include "helper/assert_str.h"
#include "helper/daemon_scene.h"

#include "wire/json.h"

#include <stdio.h>

static struct scene *scene;
static struct reply it; /* the last one */

static int start(void **state) {
    (void)state;
    scene = scene_start(&contracts, "listen: {http: 127.0.0.1:0, grpc: off}\n");
    return 0;
}

static int stop(void **state) {
    (void)state;
    scene_stop(scene);
    return 0;
}

/* The answer's status. body  NULL: none */
static int ask(const char *method, const char *path, const char *body) {
    const struct question question = {"http", method, path, .body = body};
    scene_ask(scene, &question, &it);
    return it.status;
}

static bool says(const char *words) {
    return strstr(it.body, words) != NULL;
}

static void assert_says(const char *words) {
    if (!says(words)) fail_msg("no '%s' in %s", words, it.body);
}

/* The member at this path of the last answer, as text. */
static void take(struct str pointer, char *ret, size_t room) {
    struct json found;
    struct err e;
    assert_true(json_read(str_from(it.body), &found, &e));
    while (pointer.len) {
        struct str name = str_split(pointer, '/', &pointer);
        uint64_t index;
        found =
            str_to_u64(name, &index) ? json_at(found, (size_t)index) : json_find(found, name);
    }
    struct buf text;
    buf_init(&text, room - 1);
    assert_true(json_text(found, &text));
    snprintf(ret, room, STR_FMT, STR_ARG(buf_str(&text)));
    buf_done(&text);
}

/* --- one after the other: each goes on with what the one before left ---------------------- */

static char run[32], approval[48];

static void a_turn_that_asks_a_human_is_listed(void **state) {
    (void)state;
    assert_int_equal(ask("GET", "/weir/v1/approvals", NULL), 200);
    assert_string_equal(it.body, "{\"approvals\":[],\"more\":false}");
    assert_int_equal(ask("POST", "/invoke",
                         "{\"input\":\"book the trip to Kyoto\",\"session_id\":\"trip\"}"),
                     200);
    assert_int_equal(ask("GET", "/weir/v1/approvals?session_id=trip", NULL), 200);
    assert_says("\"state\":\"waiting\"");
    assert_says("\"kind\":\"question\"");
    take(STR("approvals/0/id"), approval, sizeof(approval));
    take(STR("approvals/0/run_id"), run, sizeof(run));
    assert_int_equal(ask("GET", "/weir/v1/approvals?session_id=other", NULL), 200);
    assert_string_equal(it.body, "{\"approvals\":[],\"more\":false}");
}

static const char *at(const char *format, const char *id) {
    static char path[128];
    struct buf text = {.at = path, .room = sizeof(path), .max_bytes = sizeof(path)};
    buf_printf(&text, format, id);
    path[text.len] = '\0';
    return path;
}

#define APPROVAL "/weir/v1/approvals/%s"
#define RUN "/weir/v1/runs/%s"
#define TRIP "/weir/v1/sessions/trip"

static void waiting_turns_cannot_be_edited_or_erased(void **state) {
    (void)state;
    assert_int_equal(ask("GET", at(APPROVAL, approval), NULL), 200);
    assert_says("\"state\":\"waiting\"");
    assert_int_equal(
        ask("POST", at(APPROVAL, approval), "{\"decision\":\"edit\",\"args\":{\"a\":1}}"), 422);
    assert_says("this is a question, not a call that could be edited");
    assert_int_equal(ask("DELETE", TRIP, NULL), 409);
    assert_says("waits for a human; answer it first");
}

static void an_answer_counts_once(void **state) {
    (void)state;
    assert_int_equal(ask("POST", at(APPROVAL, approval), "{\"decision\":\"approve\"}"), 200);
    assert_says(approval);
    assert_int_equal(ask("POST", at(APPROVAL, approval), "{\"decision\":\"approve\"}"), 200);
    assert_int_equal(ask("POST", at(APPROVAL, approval), "{\"decision\":\"refuse\"}"), 409);
    assert_says("\"ALREADY_ANSWERED\"");
    assert_int_equal(ask("GET", at(APPROVAL, approval), NULL), 200);
    assert_says("\"answer\":");
}

/* They are a stream that ends with the run. */
static void the_events_of_a_run_can_be_read_from_any_place(void **state) {
    (void)state;
    assert_int_equal(ask("GET", at(RUN "/events", run), NULL), 200);
    assert_says("event: started");
    assert_says("event: done");
    char first[32] = "";
    assert_int_equal(sscanf(it.body, "id: %31s", first), 1);
    char path[128];
    snprintf(path, sizeof(path), RUN "/events?after=%s", run, first);
    assert_int_equal(ask("GET", path, NULL), 200);
    assert_false(says("event: started"));
    assert_says("event: done");
    assert_int_equal(ask("GET", at(RUN "/events?after=here", run), NULL), 400);
    assert_says("after must be the id of an event");
}

static void a_run_that_is_over_is_shown_and_not_cancelled(void **state) {
    (void)state;
    assert_int_equal(ask("GET", at(RUN, run), NULL), 200);
    assert_says("\"state\":\"done\"");
    assert_int_equal(ask("GET", "/weir/v1/runs?session_id=trip", NULL), 200);
    assert_says(run);
    assert_int_equal(ask("POST", at(RUN "/cancel", run), NULL), 409);
    assert_says("\"RUN_ENDED\"");
    assert_int_equal(ask("GET", at(RUN, "424242424242"), NULL), 404);
    assert_says("\"RUN_NOT_FOUND\"");
}

static void sessions_are_listed_in_pages(void **state) {
    (void)state;
    char next[128], path[192];
    assert_int_equal(ask("POST", "/invoke", "{\"input\":\"hi\",\"session_id\":\"two\"}"), 200);
    assert_int_equal(ask("GET", "/weir/v1/sessions?limit=1", NULL), 200);
    assert_says("\"more\":true");
    take(STR("next"), next, sizeof(next));
    snprintf(path, sizeof(path), "/weir/v1/sessions?limit=1&after=%s", next);
    assert_int_equal(ask("GET", path, NULL), 200);
    assert_says("\"more\":false");
    snprintf(path, sizeof(path), "/weir/v1/sessions?user=eve&after=%s", next);
    assert_int_equal(ask("GET", path, NULL), 400);
    assert_says("the same filters");
}

static void a_session_can_be_taken_along(void **state) {
    (void)state;
    assert_int_equal(ask("GET", TRIP "/export", NULL), 200);
    assert_true(it.body[0] == '{');
    assert_says("book the trip to Kyoto");
    assert_true(it.body[strlen(it.body) - 1] == '\n');
    assert_int_equal(ask("GET", "/weir/v1/sessions/nobodys/export", NULL), 404);
    assert_says("\"SESSION_NOT_FOUND\"");
}

static void usage_is_summed_by_what_is_asked_for(void **state) {
    (void)state;
    static const char *const by[] = {"day", "agent", "model", "workspace"};
    char path[64];
    for (size_t i = 0; i < ARRAY_LEN(by); i++) {
        snprintf(path, sizeof(path), "/weir/v1/usage?by=%s", by[i]);
        assert_int_equal(ask("GET", path, NULL), 200);
        assert_says("\"calls\":");
    }
    assert_int_equal(ask("GET", "/weir/v1/usage?from=2020-01-01&to=2020-01-31", NULL), 200);
}

#define MEMORIES "/weir/v1/memories"

static void a_memory_is_put_found_and_removed(void **state) {
    (void)state;
    assert_int_equal(ask("POST", MEMORIES,
                         "{\"key\":\"tea\",\"content\":\"green, no sugar\","
                         "\"category\":\"taste\"}"),
                     200);
    assert_says("\"key\":\"tea\"");
    assert_int_equal(ask("GET", MEMORIES "?q=sugar", NULL), 200);
    assert_says("green, no sugar");
    assert_int_equal(ask("GET", MEMORIES "?q=coffee", NULL), 200);
    assert_string_equal(it.body, "{\"memories\":[],\"more\":false}");
    assert_int_equal(ask("GET", MEMORIES "?workspace=other", NULL), 200);
    assert_string_equal(it.body, "{\"memories\":[],\"more\":false}");
    assert_int_equal(ask("DELETE", MEMORIES "/tea", NULL), 200);
    assert_string_equal(it.body, "{\"deleted\":1}");
    assert_int_equal(ask("DELETE", MEMORIES "/tea", NULL), 404);
    assert_says("\"MEMORY_NOT_FOUND\"");
}

static void an_erased_session_is_gone_with_its_runs(void **state) {
    (void)state;
    assert_int_equal(ask("DELETE", TRIP, NULL), 200);
    assert_string_equal(it.body, "{\"deleted_runs\":1}");
    assert_int_equal(ask("DELETE", TRIP, NULL), 404);
    assert_int_equal(ask("GET", at(RUN, run), NULL), 404);
    assert_int_equal(ask("GET", at(APPROVAL, approval), NULL), 404);
    assert_int_equal(ask("GET", TRIP "/export", NULL), 404);
}

static void agents_are_listed_with_what_they_get(void **state) {
    (void)state;
    assert_int_equal(ask("GET", "/weir/v1/agents", NULL), 200);
    assert_says("{\"agents\":[{\"name\":\"manager\",\"description\":");
    assert_says("\"kind\":\"llm\",\"model\":\"scripted\"");
    assert_says("\"from\":\"script\"");
    assert_says("\"delegates\":[\"");
    assert_says("\"default\":true}");
    assert_says("\"default\":false}");
    assert_int_equal(ask("GET", "/weir/v1/agents?name=x", NULL), 400);
}

static void runs_of_all_sessions_are_listed_newest_first(void **state) {
    (void)state;
    char first[32], second[32], next[32];
    assert_int_equal(ask("POST", "/weir/v1/runs",
                         "{\"input\":\"plan a day in Nara\",\"session_id\":\"one\"}"),
                     202);
    take(STR("id"), first, sizeof(first));
    assert_int_equal(ask("GET", at(RUN "/events", first), NULL), 200); /* to its end */
    assert_says("event: done");
    assert_int_equal(ask("POST", "/weir/v1/runs",
                         "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},"
                         "{\"role\":\"assistant\",\"content\":\"hello\"},"
                         "{\"role\":\"user\",\"content\":\"and Nara?\"}],"
                         "\"session_id\":\"two\",\"user\":\"ann\",\"agent\":\"manager\"}"),
                     202);
    take(STR("id"), second, sizeof(second));
    assert_int_equal(ask("GET", at(RUN "/events", second), NULL), 200);
    assert_int_equal(ask("GET", "/weir/v1/runs?limit=1", NULL), 200);
    assert_says(second);
    assert_says("\"session_id\":\"two\"");
    assert_says("\"text\":\"and Nara?\",\"text_cut\":false");
    assert_says("\"contract\":\"weir\"");
    assert_says("\"more\":true");
    take(STR("next"), next, sizeof(next));
    assert_int_equal(ask("GET", at("/weir/v1/runs?limit=1&before=%s", next), NULL), 200);
    assert_says(first);
    assert_int_equal(ask("GET", "/weir/v1/runs?user=ann&state=done&agent=manager", NULL), 200);
    assert_says(second);
    assert_false(says(first));
    assert_int_equal(ask("GET", "/weir/v1/runs?state=waiting", NULL), 200);
    assert_string_equal(it.body, "{\"runs\":[],\"more\":false}");
}

static void a_turn_that_cannot_begin_says_why(void **state) {
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *says;
    } rows[] = {
        {"[]", 422, "send {"},
        {"{", 400, "INVALID_INPUT"},
        {"{\"session_id\":\"s\"}", 400, "either input or messages"},
        {"{\"input\":\"a\"}", 400, "session_id is missing"},
        {"{\"input\":1,\"session_id\":\"s\"}", 422, "input must be a string"},
        {"{\"messages\":1,\"session_id\":\"s\"}", 422, "messages"},
        {"{\"input\":\"a\",\"session_id\":\"s\",\"agent\":\"nobody\"}", 404, "nobody"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(ask("POST", "/weir/v1/runs", rows[i].body), rows[i].status);
        assert_says(rows[i].says);
    }
    assert_int_equal(ask("POST", "/weir/v1/runs",
                         "{\"input\":\"book the trip to Kyoto\",\"session_id\":\"waits\"}"),
                     202);
    take(STR("id"), run, sizeof(run));
    do { /* each answer takes the daemon a turn of its loop */
        assert_int_equal(ask("GET", "/weir/v1/approvals?session_id=waits", NULL), 200);
    } while (!says("\"state\":\"waiting\""));
    assert_int_equal(
        ask("POST", "/weir/v1/runs", "{\"input\":\"hello\",\"session_id\":\"waits\"}"), 409);
    assert_says("SESSION_WAITING");
    assert_int_equal(ask("GET", "/weir/v1/runs?state=waiting", NULL), 200);
    assert_says(run);
    assert_int_equal(ask("POST", at(RUN "/cancel", run), NULL), 202);
}

static void the_daemon_shows_itself(void **state) {
    (void)state;
    assert_int_equal(ask("GET", "/weir/v1/health", NULL), 200);
    assert_says("\"status\":\"ok\"");
    assert_says("\"listeners\":[{\"name\":\"http\",\"address\":\"127.0.0.1:0\",\"port\":");
    assert_says("\"store\":{\"kind\":\"sqlite\"");
    assert_int_equal(ask("GET", "/weir/v1/settings", NULL), 200);
    assert_says("{\"settings\":[{\"key\":");
    assert_int_equal(ask("GET", "/weir/v1/audit/chain", NULL), 200);
    assert_says("{\"verified\":true,\"first\":1,");
    assert_says("\"faults\":[]}");
    assert_int_equal(ask("GET", "/weir/v1/budgets", NULL), 200);
    assert_string_equal(it.body, "{\"budgets\":[]}");
}

static void the_status_says_which_weir_and_what_it_does(void **state) {
    (void)state;
    assert_int_equal(ask("GET", "/weir/v1/status", NULL), 200);
    assert_says("{\"name\":\"weir\",\"version\":\"");
    assert_says(
        "\"state\":\"serving\",\"runs\":{\"queued\":0,\"asking\":0,\"working\":0,\"waiting\":");
    assert_int_equal(ask("GET", "/weir/v1/status?all=1", NULL), 400);
}

/* As all that the listener carries. */
static void answers_say_which_contract_the_listener_speaks(void **state) {
    (void)state;
    assert_int_equal(ask("GET", "/weir/v1/sessions", NULL), 200);
    assert_non_null(strstr(it.fields, "x-runtime-contract-version: 1\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_that_asks_a_human_is_listed),
        cmocka_unit_test(waiting_turns_cannot_be_edited_or_erased),
        cmocka_unit_test(an_answer_counts_once),
        cmocka_unit_test(the_events_of_a_run_can_be_read_from_any_place),
        cmocka_unit_test(a_run_that_is_over_is_shown_and_not_cancelled),
        cmocka_unit_test(sessions_are_listed_in_pages),
        cmocka_unit_test(a_session_can_be_taken_along),
        cmocka_unit_test(usage_is_summed_by_what_is_asked_for),
        cmocka_unit_test(a_memory_is_put_found_and_removed),
        cmocka_unit_test(an_erased_session_is_gone_with_its_runs),
        cmocka_unit_test(agents_are_listed_with_what_they_get),
        cmocka_unit_test(runs_of_all_sessions_are_listed_newest_first),
        cmocka_unit_test(a_turn_that_cannot_begin_says_why),
        cmocka_unit_test(the_daemon_shows_itself),
        cmocka_unit_test(the_status_says_which_weir_and_what_it_does),
        cmocka_unit_test(answers_say_which_contract_the_listener_speaks),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
