/* The commands that ask the running daemon: weir approvals, sessions and usage, against the
 * real daemon after a turn of the demo. The daemon has its own process, so that each command
 * starts from a process with a single thread, as it does in production. */
#include "cli/ask_daemon.h"

#include "cli/command.h"
#include "cli/contracts.h"
#include "helper/daemon_scene.h"

#define TOKEN "a-token-of-the-tests"

static struct said said;
static pid_t daemon_process;
static int daemon_input; /* closed: it ends */
static int daemon_output;
static char address[32];  /* of its HTTP listener */
static char approval[64]; /* that waits; written by the first test */

static const char *const right[] = {"AGENT_AUTH_TOKEN", TOKEN, NULL};
static const char *const wrong[] = {"AGENT_AUTH_TOKEN", "a-guess-of-the-tests", NULL};

/* --- the daemon --------------------------------------------------------------------------- */

static const char *settings_with_token(void) {
    static char settings[256];
    char path[96];
    snprintf(path, sizeof(path), "%s/token", home);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(TOKEN, file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    snprintf(settings, sizeof(settings),
             "listen: {http: 127.0.0.1:0, grpc: off}\ntokens: {auth_token_file: %s}\n", path);
    return settings;
}

/* Its run waits for a human. `ret` is where its events are read. */
static void ask_about_the_trip(const struct scene *scene, char ret[static 96]) {
    const struct question question = {
        "http", "POST", "/invoke", "Bearer " TOKEN,
        "{\"input\":\"book the trip to Kyoto\",\"session_id\":\"trip\"}"};
    struct reply it;
    scene_ask(scene, &question, &it);
    assert_int_equal(it.status, 200);
    const char *id = strstr(it.fields, "x-weir-run-id: ");
    assert_non_null(id);
    id += strlen("x-weir-run-id: ");
    snprintf(ret, 96, "/weir/v1/runs/%.*s/events", (int)strcspn(id, "\n"), id);
}

/* The events are a stream that ends with the run. */
static void await_the_end(const struct scene *scene, const char *events) {
    const struct question question = {"http", "GET", events, "Bearer " TOKEN, NULL};
    struct reply it;
    scene_ask(scene, &question, &it);
    assert_non_null(strstr(it.body, "event: done"));
}

/* Says its address; then for each byte of input one, once the run is over. */
_Noreturn static void be_daemon(int input, int output) {
    char byte, events[96];
    struct scene *scene = scene_start(&contracts, settings_with_token());
    ask_about_the_trip(scene, events);
    dprintf(output, "127.0.0.1:%d", scene_port(scene, "http"));
    while (read(input, &byte, 1) > 0) {
        await_the_end(scene, events);
        assert_int_equal(write(output, &byte, 1), 1);
    }
    scene_stop(scene);
    _exit(0);
}

static void await_run(void) {
    char byte = 'x';
    assert_int_equal(write(daemon_input, &byte, 1), 1);
    assert_int_equal(read(daemon_output, &byte, 1), 1);
}

static int start(void **state) {
    int in[2], out[2];
    if (home_setup(state) || pipe(in) || pipe(out)) return -1;
    fflush(NULL);
    daemon_process = fork();
    if (daemon_process == 0) {
        close(in[1]);
        close(out[0]);
        be_daemon(in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    daemon_input = in[1];
    daemon_output = out[0];
    ssize_t len = read(out[0], address, sizeof(address) - 1);
    return len > 0 ? 0 : -1;
}

static int stop(void **state) {
    int status;
    close(daemon_input);
    close(daemon_output);
    bool ended = waitpid(daemon_process, &status, 0) == daemon_process;
    home_teardown(state);
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* A command that is put to the daemon. */
#define ask(variables, ...) weir(&said, variables, __VA_ARGS__, "--http", address)

/* --- one after the other: each goes on with what the one before left ---------------------- */

static void what_waits_is_listed_for_a_person_and_as_json(void **state) {
    (void)state;
    ask(right, "approvals");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.err, "");
    assert_has(said.out, "  session trip\n    ");
    assert_null(strstr(said.out, "... and more"));
    snprintf(approval, sizeof(approval), "%.*s", (int)strcspn(said.out, " "), said.out);
    ask(right, "approvals", "list", "--json");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "{\"approvals\":[{\"id\":\"");
    assert_has(said.out, approval);
    assert_true(said.out[strlen(said.out) - 1] == '\n');
}

/* With the fix, on every command; and nothing of the token that was sent. */
static void a_token_that_is_none_is_refused_with_where_the_right_one_is_said(void **state) {
    (void)state;
    static const char *const commands[] = {"approvals", "sessions", "usage"};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        ask(wrong, commands[i]);
        assert_int_equal(said.code, EXIT_FAILED);
        assert_string_equal(said.out, "");
        assert_has(said.err, "weir: error: the daemon answered 403: ");
        assert_has(said.err, "the token is AGENT_AUTH_TOKEN, or tokens.auth_token_file");
        assert_null(strstr(said.err, "a-guess"));
        ask(NULL, commands[i]);
        assert_int_equal(said.code, EXIT_FAILED);
        assert_has(said.err, "weir: error: the daemon answered 401: ");
    }
}

static void a_decision_that_does_not_fit_is_refused_in_the_daemons_words(void **state) {
    (void)state;
    ask(right, "approvals", "approve", approval, "--args", "{\"a\":1}");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_string_equal(said.out, "");
    assert_has(said.err, "the daemon answered 422: ");
    ask(right, "approvals", "approve", "1/../2 ?#");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_has(said.err, "the daemon answered 404: ");
}

static void a_session_that_waits_is_not_deleted(void **state) {
    (void)state;
    ask(right, "sessions", "delete", "trip");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_string_equal(said.out, "");
    assert_has(said.err, "the daemon answered 409: ");
}

static void a_decision_is_taken_once(void **state) {
    (void)state;
    ask(right, "approvals", "approve", approval);
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "approved\n");
    await_run();
    ask(right, "approvals", "refuse", approval, "--reason", "too late");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_has(said.err, "the daemon answered 409: ");
    ask(right, "approvals");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "nothing waits for a human\n");
}

static void sessions_are_listed_and_exported(void **state) {
    (void)state;
    ask(right, "sessions");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "trip  workspace default  user anonymous  ");
    ask(right, "sessions", "list", "--user", "nobody");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "");
    ask(right, "sessions", "list", "--json");
    assert_has(said.out, "\"session_id\":\"trip\"");
    ask(right, "sessions", "export", "trip");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "book the trip to Kyoto");
    ask(right, "sessions", "export", "trip", "--user=nobody");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_string_equal(said.out, "");
    assert_has(said.err, "the daemon answered 404: ");
}

static void usage_is_a_table_or_json(void **state) {
    (void)state;
    ask(right, "usage", "--by", "agent");
    assert_int_equal(said.code, EXIT_DONE);
    assert_memory_equal(said.out, "agent ", 6);
    assert_has(said.out, "\nmanager                           2        160         90  ");
    assert_has(said.out, "\nall                               2        160         90  ");
    ask(right, "usage", "--by", "agent", "--json");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "\"by\":\"agent\",\"usage\":[{\"agent\":\"manager\",\"calls\":2,");
    ask(right, "usage", "--by", "hour");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_has(said.err, "by must be day, agent, model or workspace");
}

static void a_deleted_session_is_gone(void **state) {
    (void)state;
    ask(right, "sessions", "delete", "trip");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "deleted\n");
    ask(right, "sessions");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "");
    ask(right, "sessions", "delete", "trip");
    assert_int_equal(said.code, EXIT_FAILED);
}

/* The settings' proxy must not see the token. */
static void no_proxy_is_asked(void **state) {
    (void)state;
    static const char *const proxied[] = {
        "AGENT_AUTH_TOKEN",   TOKEN, "http_proxy", "http://127.0.0.1:1", "all_proxy",
        "http://127.0.0.1:1", NULL};
    ask(proxied, "approvals");
    assert_int_equal(said.code, EXIT_DONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_is_listed_for_a_person_and_as_json),
        cmocka_unit_test(a_token_that_is_none_is_refused_with_where_the_right_one_is_said),
        cmocka_unit_test(a_decision_that_does_not_fit_is_refused_in_the_daemons_words),
        cmocka_unit_test(a_session_that_waits_is_not_deleted),
        cmocka_unit_test(a_decision_is_taken_once),
        cmocka_unit_test(sessions_are_listed_and_exported),
        cmocka_unit_test(usage_is_a_table_or_json),
        cmocka_unit_test(a_deleted_session_is_gone),
        cmocka_unit_test(no_proxy_is_asked),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
