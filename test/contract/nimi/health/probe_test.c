/* Probing providers, and the state that the runtime derives from it. */
#include "contract/nimi/health/probe.h"

#include "fake/http_fake.h"
#include "helper/assert_str.h"

/* --- what an answer means ----------------------------------------------------------------- */

static void a_provider_that_answers_is_reached_unless_it_has_failed(void **state) {
    static const struct {
        unsigned status;
        enum probe_verdict verdict;
    } rows[] = {{200, PROBE_REACHED}, {204, PROBE_REACHED}, {302, PROBE_REACHED},
                {401, PROBE_REACHED}, {403, PROBE_REACHED}, {429, PROBE_REACHED},
                {404, PROBE_NEXT},    {400, PROBE_MISSED},  {405, PROBE_MISSED},
                {500, PROBE_MISSED},  {503, PROBE_MISSED}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(probe_judge(rows[i].status), rows[i].verdict);
}

static void paths_stand_where_the_version_stood(void **state) {
    static const struct {
        const char *base_url;
        const char *urls[2];
    } rows[] = {
        {"https://a.example/v1", {"https://a.example/healthz", "https://a.example/v1/models"}},
        {"http://h:1/v1beta/", {"http://h:1/healthz", "http://h:1/v1/models"}},
        {"https://a.example", {"https://a.example/healthz", "https://a.example/v1/models"}},
        {"http://h/x/vendor", {"http://h/x/vendor/healthz", "http://h/x/vendor/v1/models"}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf url;
        buf_init(&url, KIB);
        for (size_t path = 0; path < 2; path++) {
            assert_true(probe_url(str_from(rows[i].base_url), path, &url));
            assert_str(buf_str(&url), rows[i].urls[path]);
            buf_clear(&url);
        }
        assert_false(probe_url(str_from(rows[i].base_url), 2, &url));
        buf_done(&url);
    }
}

/* All pairs of what is known and what is found. */
static void a_change_is_dated_and_failures_in_a_row_are_counted(void **state) {
    (void)state;
    for (int from = NIMI_PROBE_UNKNOWN; from <= NIMI_PROBE_UNHEALTHY; from++) {
        for (int healthy = 0; healthy < 2; healthy++) {
            struct nimi_probed probed = {.state = (enum nimi_probe_state)from,
                                         .failures = from == NIMI_PROBE_UNHEALTHY ? 3 : 0,
                                         .changed_ms = 10,
                                         .checked_ms = 20};
            enum nimi_probe_state to = healthy ? NIMI_PROBE_HEALTHY : NIMI_PROBE_UNHEALTHY;
            int failures = healthy ? 0 : probed.failures + 1;
            bool changed = probed_note(&probed, healthy, healthy ? "" : "gone", 30);
            assert_int_equal(changed, from != (int)to);
            assert_int_equal(probed.state, to);
            assert_int_equal(probed.changed_ms, changed ? 30 : 10);
            assert_int_equal(probed.checked_ms, 30);
            assert_int_equal(probed.failures, failures);
            assert_string_equal(probed.reason, healthy ? "" : "gone");
        }
    }
}

/* --- asking again and again --------------------------------------------------------------- */

#define EVERY_MS 8000

struct fixture {
    struct loop *loop;
    struct http_pool *pool;
    struct nimi_runtime *runtime;
    struct provider providers[2];
    struct nimi_connector connectors[3];
    struct nimi_settings settings;
    struct prober *prober;
    int changes;
};

static void note_change(void *ctx) {
    ((struct fixture *)ctx)->changes++;
}

static void fixture_open(struct fixture *f) {
    static const struct scheduler_limits slots = {
        .global = 1, .per_app = 1, .queue_max = 1, .queue_per_app = 1};
    *f = (struct fixture){.loop = loop_new_fake(),
                          .pool = http_pool_new(),
                          .runtime = nimi_runtime_new(&slots),
                          .providers = {{.name = STR_INIT("one")}, {.name = STR_INIT("two")}}};
    for (size_t i = 0; i < 3; i++)
        f->connectors[i] = (struct nimi_connector){.provider = &f->providers[i / 2],
                                                   .probe_url = STR("http://one.example/v1"),
                                                   .enabled = true};
    f->connectors[2].probe_url = STR("http://two.example/v1");
    f->settings = (struct nimi_settings){
        .connectors = f->connectors, .connector_count = 3, .probe_ms = EVERY_MS};
    nimi_runtime_move(f->runtime, LIFE_STARTING, "starting");
    nimi_runtime_move(f->runtime, LIFE_READY, "ready");
    f->prober = prober_start(&(struct prober_options){.loop = f->loop,
                                                      .pool = f->pool,
                                                      .runtime = f->runtime,
                                                      .settings = &f->settings,
                                                      .changed = note_change,
                                                      .ctx = f});
}

static void fixture_close(struct fixture *f) {
    prober_free(f->prober);
    assert_int_equal(fake_http_calls(f->pool), 0);
    nimi_runtime_free(f->runtime);
    http_pool_free(f->pool);
    loop_free(f->loop);
}

static void answer(struct fixture *f, unsigned status) {
    struct http_call *call = fake_http_call(f->pool, 0);
    assert_true(fake_http_head(call, status, "text/plain"));
    fake_http_end(call);
    loop_turn(f->loop);
}

static void assert_runtime(struct fixture *f, enum lifecycle state, const char *why) {
    char found[NIMI_WHY_BYTES];
    assert_int_equal(nimi_runtime_why(f->runtime, found), state);
    assert_string_equal(found, why);
}

static void each_provider_is_asked_once_at_once_and_then_every_eight_seconds(void **state) {
    struct fixture f;
    (void)state;
    fixture_open(&f);
    assert_int_equal(fake_http_calls(f.pool), 2); /* two connectors share the first */
    assert_str(fake_http_request(fake_http_call(f.pool, 0))->url, "http://one.example/healthz");
    assert_int_equal(fake_http_request(fake_http_call(f.pool, 0))->total_ms, PROBE_TOTAL_MS);
    answer(&f, 200);
    answer(&f, 404);
    assert_str(fake_http_request(fake_http_call(f.pool, 0))->url,
               "http://two.example/v1/models");
    answer(&f, 401);
    struct nimi_probed probed[NIMI_PROBED_MAX];
    assert_int_equal(nimi_runtime_providers(f.runtime, probed), 2);
    assert_string_equal(probed[1].name, "two");
    assert_int_equal(probed[0].state, NIMI_PROBE_HEALTHY);
    assert_int_equal(probed[1].state, NIMI_PROBE_HEALTHY);
    loop_advance(f.loop, EVERY_MS - 1);
    assert_int_equal(fake_http_calls(f.pool), 0);
    loop_advance(f.loop, 1);
    assert_int_equal(fake_http_calls(f.pool), 2);
    loop_advance(f.loop, EVERY_MS); /* they are still out: not twice */
    assert_int_equal(fake_http_calls(f.pool), 2);
    assert_int_equal(f.changes, 0);
    fixture_close(&f);
}

static void without_any_provider_the_runtime_is_degraded_until_one_is_back(void **state) {
    struct fixture f;
    (void)state;
    fixture_open(&f);
    answer(&f, 500);
    assert_runtime(&f, LIFE_READY, "ready"); /* of the other nothing is known */
    fake_http_fail(fake_http_call(f.pool, 0), ERR_UNAVAILABLE, HTTP_CONNECTING);
    loop_turn(f.loop);
    assert_runtime(&f, LIFE_DEGRADED, "ai-provider:one unavailable");
    assert_int_equal(f.changes, 1);
    loop_advance(f.loop, EVERY_MS);
    answer(&f, 503);
    assert_runtime(&f, LIFE_DEGRADED, "ai-provider:one unavailable");
    answer(&f, 200);
    assert_runtime(&f, LIFE_READY, "ready");
    assert_int_equal(f.changes, 2);
    struct nimi_probed probed[NIMI_PROBED_MAX];
    nimi_runtime_providers(f.runtime, probed);
    assert_int_equal(probed[0].failures, 2);
    assert_string_equal(probed[0].reason, "it answers 503");
    fixture_close(&f);
}

static void what_is_not_known_anywhere_counts_as_missing(void **state) {
    struct fixture f;
    (void)state;
    fixture_open(&f);
    for (int i = 0; i < 4; i++) answer(&f, 404);
    assert_runtime(&f, LIFE_DEGRADED, "ai-provider:one unavailable");
    fixture_close(&f);
}

static void other_settings_keep_what_is_known(void **state) {
    struct fixture f;
    (void)state;
    fixture_open(&f);
    answer(&f, 500);
    answer(&f, 500);
    assert_runtime(&f, LIFE_DEGRADED, "ai-provider:one unavailable");
    struct nimi_settings fewer = f.settings;
    fewer.connector_count = 1;
    loop_advance(f.loop, EVERY_MS); /* two are out, and one of them is not wanted any more */
    prober_use(f.prober, &fewer);
    assert_int_equal(fake_http_calls(f.pool), 1);
    struct nimi_probed probed[NIMI_PROBED_MAX];
    assert_int_equal(nimi_runtime_providers(f.runtime, probed), 1);
    assert_int_equal(probed[0].failures, 1);
    fewer.connector_count = 0;
    prober_use(f.prober, &fewer);
    assert_runtime(&f, LIFE_READY, "ready"); /* no provider is missing */
    struct nimi_settings off = f.settings;
    off.probe_ms = 0;
    prober_use(f.prober, &off);
    assert_int_equal(fake_http_calls(f.pool), 0);
    fixture_close(&f);
}

static void a_runtime_that_stops_is_left_alone(void **state) {
    struct fixture f;
    (void)state;
    fixture_open(&f);
    nimi_runtime_move(f.runtime, LIFE_STOPPING, "stopping");
    answer(&f, 500);
    answer(&f, 500);
    assert_runtime(&f, LIFE_STOPPING, "stopping");
    assert_int_equal(f.changes, 0);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_provider_that_answers_is_reached_unless_it_has_failed),
        cmocka_unit_test(paths_stand_where_the_version_stood),
        cmocka_unit_test(a_change_is_dated_and_failures_in_a_row_are_counted),
        cmocka_unit_test(each_provider_is_asked_once_at_once_and_then_every_eight_seconds),
        cmocka_unit_test(without_any_provider_the_runtime_is_degraded_until_one_is_back),
        cmocka_unit_test(what_is_not_known_anywhere_counts_as_missing),
        cmocka_unit_test(other_settings_keep_what_is_known),
        cmocka_unit_test(a_runtime_that_stops_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
