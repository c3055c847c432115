/* The daemon knows contracts only from their table: a row that is added is served. */
#include "cli/contracts.h"

#include "contract/dummy.h"
#include "helper/assert_str.h"
#include "helper/daemon_scene.h"

static const struct contract *const dummies[] = {&dummy_contract};
static const struct contract_table with_dummy = {dummies, ARRAY_LEN(dummies)};

static struct scene *scene;

static int start(void **state) {
    (void)state;
    scene = scene_start(&with_dummy, "");
    return 0;
}

static int stop(void **state) {
    (void)state;
    scene_stop(scene);
    return 0;
}

static void the_daemon_serves_a_contract_that_it_never_heard_of(void **state) {
    (void)state;
    struct reply it;
    const struct question route = {"dummy_http", "GET", "/greet", .token = DUMMY_TOKEN};
    scene_ask(scene, &route, &it);
    assert_int_equal(it.status, 200);
    assert_string_equal(it.body, "hello");
    const struct question method = {"dummy_grpc", .path = "/dummy.v1.Dummy/Greet",
                                    .token = DUMMY_TOKEN};
    scene_call(scene, &method, &it);
    assert_int_equal(it.grpc_status, 0);
    assert_string_equal(it.body, "hello");
}

static void its_guards_are_asked(void **state) {
    (void)state;
    struct reply it;
    const struct question route = {"dummy_http", "GET", "/greet", .token = "Bearer guess"};
    scene_ask(scene, &route, &it);
    assert_int_equal(it.status, 401);
    const struct question method = {"dummy_grpc", .path = "/dummy.v1.Dummy/Greet"};
    scene_call(scene, &method, &it);
    assert_int_equal(it.grpc_status, 16);
    assert_string_equal(it.body, "");
}

/* HealthCheckRequest and -Response: the service's name is field 1, SERVING is 1 in field 1. */
static void its_listener_answers_for_its_health(void **state) {
    (void)state;
    struct reply it;
    const struct question probe = {"dummy_grpc", .path = "/grpc.health.v1.Health/Check",
                                   .body = "\n\x0e"
                                           "dummy.v1.Dummy"};
    scene_call(scene, &probe, &it);
    assert_int_equal(it.grpc_status, 0);
    assert_string_equal(it.body, "\x08\x01");
}

#define ASKS_MAX 100000 /* until other settings must be in use */

static void it_hears_of_other_settings(void **state) {
    (void)state;
    struct reply it = {.status = 0};
    const struct question route = {"dummy_http", "GET", "/greet", .token = DUMMY_TOKEN};
    scene_reload(scene, "dummy: {greeting: goodbye}\n");
    for (int i = 0; i < ASKS_MAX && strcmp(it.body, "goodbye") != 0; i++)
        scene_ask(scene, &route, &it);
    assert_string_equal(it.body, "goodbye");
}

/* --- its settings ------------------------------------------------------------------------- */

static struct config *load(const char *const *args, size_t count, struct err *e) {
    static const char *const environment[] = {"HOME=/nowhere", "DUMMY_GREETING=hail", NULL};
    const struct config_input input = {.args = args,
                                       .arg_count = count,
                                       .environment = environment,
                                       .cpus = 1,
                                       .more = contract_rows,
                                       .more_ctx = &with_dummy};
    struct config *config;
    return config_load(&input, &config, e) ? config : NULL;
}

static void its_settings_are_read_and_shown_as_all_are(void **state) {
    (void)state;
    static const char *const flags[] = {"--dummy-greeting", "hi"};
    struct err e;
    struct config *plain = load(NULL, 0, &e), *flagged = load(flags, 2, &e);
    const struct dummy_values *values = config_values(plain, &dummy_rows);
    assert_str(values->greeting, "hail"); /* of the environment */
    values = config_values(flagged, &dummy_rows);
    assert_str(values->greeting, "hi");
    assert_str(values->http, "127.0.0.1:0");
    struct buf out;
    buf_init(&out, 256 * KIB);
    config_print(flagged, &out);
    assert_true(str_find(buf_str(&out), STR("dummy.greeting = hi (--dummy-greeting)")) <
                out.len);
    buf_clear(&out);
    config_help(flagged, &out);
    assert_true(str_find(buf_str(&out), STR("--dummy-greeting")) < out.len);
    buf_done(&out);
    config_free(plain);
    config_free(flagged);
}

static void a_slip_in_its_settings_is_answered_with_the_name_that_was_meant(void **state) {
    (void)state;
    static const char *const flags[] = {"--dummy-greting", "hi"};
    struct err e;
    assert_null(load(flags, 2, &e));
    assert_true(str_find(err_text(&e), STR("dummy-greeting")) < err_text(&e).len);
}

/* --- what a table must be ----------------------------------------------------------------- */

static void the_table_of_this_daemon_is_whole(void **state) {
    (void)state;
    assert_true(contract_table_ok(&contracts));
    assert_true(contract_table_ok(&with_dummy));
}

static bool is_ok(const struct contract *row) {
    const struct contract *const rows[] = {&dummy_contract, row};
    return contract_table_ok(&(struct contract_table){rows, ARRAY_LEN(rows)});
}

static void a_row_that_is_not_whole_makes_no_table(void **state) {
    (void)state;
    const struct contract_listener twice[] = {dummy_contract.listeners[0]};
    const struct contract_listener nowhere[] = {{.name = "other", .wire = CONTRACT_HTTP}};
    const struct contract_routes on_grpc[] = {{"dummy_grpc", dummy_routes}};
    const struct contract_service on_nothing[] = {{"nothing", NULL, dummy_service}};
    struct contract guest = {.name = STR("guest"),
                             .routes = dummy_contract.routes,
                             .routes_count = 1,
                             .instance = {.init = dummy_init}};
    struct contract row = guest;
    assert_true(is_ok(&row));
    row.name = STR("dummy");
    assert_false(is_ok(&row));
    row = guest, row.instance.init = NULL;
    assert_false(is_ok(&row));
    row = guest, row.listeners = twice, row.listener_count = 1;
    assert_false(is_ok(&row));
    row = guest, row.listeners = nowhere, row.listener_count = 1;
    assert_false(is_ok(&row));
    row = guest, row.routes = on_grpc;
    assert_false(is_ok(&row));
    row = guest, row.services = on_nothing, row.service_count = 1;
    assert_false(is_ok(&row));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_daemon_serves_a_contract_that_it_never_heard_of),
        cmocka_unit_test(its_guards_are_asked),
        cmocka_unit_test(its_listener_answers_for_its_health),
        cmocka_unit_test(it_hears_of_other_settings),
        cmocka_unit_test(its_settings_are_read_and_shown_as_all_are),
        cmocka_unit_test(a_slip_in_its_settings_is_answered_with_the_name_that_was_meant),
        cmocka_unit_test(the_table_of_this_daemon_is_whole),
        cmocka_unit_test(a_row_that_is_not_whole_makes_no_table),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
