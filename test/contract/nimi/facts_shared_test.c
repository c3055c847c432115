/* Facts of several replicas: what cannot be told is not made, and takes nothing from others; what was
 * told while the store was away is read when it is back. */
#include "fixture.h"

#include "contract/nimi/auth/sessions.h"
#include "contract/nimi/facts.h"
#include "fake/exchange_fake.h" /* named here: the build links them */
#include "fake/http_fake.h"
#include "fake/media_fake.h"
#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "store/changes.h"
#include "wire/hex.h"

static struct store *store;

/* The store is asked several times for one call. */
static void settle_all(void) {
    for (int i = 0; i < 8; i++) fake_settle(loop);
}

static int begin(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_share(store);
    fake_store_always_commit(store);
    nimi_open(NULL, store, NULL);
    settings = (struct nimi_settings){
        .version = STR("0.1.0"), .message_max_bytes = 4 * MIB, .shutdown_ms = 10000};
    nimi_serve();
    nimi_site(&instance, site);
    nimi_runtime_share(runtime, store);
    facts_watch(&instance);
    settle_all();
    return 0;
}

static int end(void **state) {
    (void)state;
    facts_unwatch(&instance);
    settle_all();
    nimi_close();
    fake_store_free(store);
    loop_free(loop);
    return 0;
}

/* RegisterApp, answered with this gRPC status. */
static void registers(const char *app, const char *status) {
    struct exchange *x =
        fake_new(loop, "POST", "/nimi.runtime.v1.RuntimeAuthService/RegisterApp");
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "x-nimi-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-id", app);
    fake_field(x, "x-nimi-domain", "runtime.rpc");
    fake_field(x, "x-nimi-app-id", app);
    fake_start(x, serve, site);
    send_message(x, &nimi_register_app_request_table,
                 &(struct nimi_register_app_request){.app_id = str_from(app),
                                                     .app_instance_id = STR("i")});
    settle_all();
    assert_str(fake_value(fake_trailers(x), "grpc-status"), status);
    fake_free(x);
}

static bool knows(const char *app) {
    return nimi_runtime_knows_app(runtime, str_from(app));
}

/* As another replica does, which tells it. */
static void told(const char *app) {
    const struct fact_app_fact fact = {str_from(app), STR("i")};
    struct buf bytes, sql;
    buf_init(&bytes, KIB);
    buf_init(&sql, 4 * KIB);
    assert_true(pb_encode(&fact_fact_table, &(struct fact_fact){.app = &fact}, &bytes));
    buf_append(&sql,
               STR("INSERT INTO fact(kind, until_ms, bytes) VALUES(1, 9000000000000, x'"));
    hex_append(&sql, buf_str(&bytes));
    buf_append(&sql, STR("')"));
    buf_append_byte(&sql, '\0');
    fake_store_sql(store, sql.at);
    changes_tell(store_changes(store), CHANGE_FACTS);
    settle_all();
    buf_done(&bytes);
    buf_done(&sql);
}

static void what_is_told_is_read_here_and_there(void **state) {
    (void)state;
    registers("mine", "0");
    assert_true(knows("mine"));
    told("theirs");
    assert_true(knows("theirs") && knows("mine"));
    registers("mine", "0"); /* again: it has one row */
    assert_int_equal(fake_store_number(store, "SELECT count(*) FROM fact"), 2);
}

static void what_cannot_be_told_is_not_made_and_nothing_else_is_lost(void **state) {
    (void)state;
    registers("mine", "0");
    fake_store_sql(store, "CREATE TRIGGER refuse BEFORE INSERT ON fact BEGIN"
                          " SELECT RAISE(ABORT, 'not now'); END");
    registers("other", "14");
    assert_true(knows("mine"));
    assert_false(knows("other"));
    fake_store_sql(store, "DROP TRIGGER refuse");
    registers("other", "0");
    assert_true(knows("other"));
}

static void what_was_told_while_the_store_was_away_is_read_later(void **state) {
    (void)state;
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    told("theirs");
    assert_false(knows("theirs"));
    loop_advance(loop, 1000); /* it is still away */
    settle_all();
    assert_false(knows("theirs"));
    fake_store_always_commit(store);
    loop_advance(loop, 1000);
    settle_all();
    assert_true(knows("theirs"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_told_is_read_here_and_there, begin, end),
        cmocka_unit_test_setup_teardown(
            what_cannot_be_told_is_not_made_and_nothing_else_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(what_was_told_while_the_store_was_away_is_read_later,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
