/* Facts: every replica reads all of them, in one order, for as long as they count. */
#include "store/fact.h"

#include "helper/assert_str.h"
#include "two_replicas.h"

#include <stdio.h>
#include <string.h>

#define NOW INT64_C(1700000000000)

static void on_told(struct fact_put *put, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)put;
    fixture_opened(failed, scene->f);
}

static void on_read(struct fact_list *list, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)list;
    fixture_opened(failed, scene->f);
}

/* False: it was refused, and f->failed says why. */
static bool tries(struct scene *scene, const struct fact_put *of) {
    struct fact_put put = *of;
    put.kind = FACT_NIMI;
    put.unix_ms = put.unix_ms ? put.unix_ms : NOW;
    put.until_ms = put.until_ms ? put.until_ms : NOW + 1000;
    put.on_done = on_told;
    put.ctx = scene;
    fact_tell(scene->a.store, scene->f->loop, &put);
    loop_run(scene->f->loop);
    return scene->f->failed.code == ERR_NONE;
}

static void tell(struct scene *scene, struct replica *replica, const char *text,
                 int64_t until_ms, int64_t now_ms) {
    struct fact_put put = {.kind = FACT_NIMI,
                           .bytes = str_from(text),
                           .until_ms = until_ms,
                           .unix_ms = now_ms,
                           .on_done = on_told,
                           .ctx = scene};
    fact_tell(replica->store, scene->f->loop, &put);
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
}

/* Read on from *after; what came is joined. */
static bool reads(struct scene *scene, struct replica *replica, int64_t *after,
                  struct buf *out) {
    struct fact_list list = {
        .kind = FACT_NIMI, .after = *after, .on_done = on_read, .ctx = scene};
    fact_read(replica->store, scene->f->loop, &list);
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
    for (size_t i = 0; i < list.count; i++) {
        assert_true(list.all[i].number > *after);
        *after = list.all[i].number;
        buf_append(out, list.all[i].bytes);
    }
    bool more = list.more;
    fact_list_done(&list);
    return more;
}

static void what_one_tells_the_others_read_in_its_order(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct buf seen;
    int64_t after = 0;
    open_scene(&scene, *state);
    buf_init(&seen, KIB);
    tell(&scene, &scene.a, "one ", NOW + 1000, NOW);
    tell(&scene, &scene.b, "two ", NOW + 1000, NOW);
    assert_false(reads(&scene, &scene.b, &after, &seen));
    assert_str(buf_str(&seen), "one two ");
    tell(&scene, &scene.a, "three ", NOW + 1000, NOW);
    buf_clear(&seen);
    assert_false(reads(&scene, &scene.b, &after, &seen));
    assert_str(buf_str(&seen), "three ");
    buf_done(&seen);
    close_scene(&scene);
}

static void one_whose_time_is_over_goes_with_the_next(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct buf seen;
    int64_t after = 0;
    open_scene(&scene, *state);
    buf_init(&seen, KIB);
    tell(&scene, &scene.a, "short ", NOW + 1, NOW);
    tell(&scene, &scene.a, "long ", NOW + 1000, NOW + 1);
    reads(&scene, &scene.b, &after, &seen);
    assert_str(buf_str(&seen), "long ");
    buf_done(&seen);
    close_scene(&scene);
}

static void many_are_read_page_by_page(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct buf seen;
    char sql[160];
    int64_t after = 0;
    open_scene(&scene, *state);
    buf_init(&seen, KIB);
    snprintf(sql, sizeof(sql),
             "INSERT INTO fact(kind, until_ms, bytes) SELECT 1, 9000000000000, 'x'"
             " FROM generate_series(1, %d)",
             FACT_READ_MAX + 3);
    server_run(scene.f, sql);
    assert_true(reads(&scene, &scene.a, &after, &seen));
    assert_int_equal(seen.len, FACT_READ_MAX);
    assert_false(reads(&scene, &scene.a, &after, &seen));
    assert_int_equal(seen.len, FACT_READ_MAX + 3);
    buf_done(&seen);
    close_scene(&scene);
}

static struct share_owner owner(const char *caller, const char *app) {
    return (struct share_owner){str_from(caller), str_from(app)};
}

/* So many rows of an app of a caller, of so many bytes each. */
static void fill(struct scene *scene, const char *caller, const char *app, int rows, int bytes,
                 int64_t until_ms) {
    char sql[256];
    snprintf(sql, sizeof(sql),
             "INSERT INTO fact(kind, until_ms, bytes, caller, app, size)"
             " SELECT 1, %lld, 'x', '%s', '%s', %d FROM generate_series(1, %d)",
             (long long)until_ms, caller, app, bytes, rows);
    server_run(scene->f, sql);
}

static void one_that_has_a_name_replaces_the_earlier_one(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct buf seen;
    int64_t after = 0, late = 0;
    open_scene(&scene, *state);
    buf_init(&seen, KIB);
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("one "), .name = STR("n")}));
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("other "), .name = STR("o")}));
    reads(&scene, &scene.b, &after, &seen);
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("two "), .name = STR("n")}));
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("none ")}));
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("none ")}));
    reads(&scene, &scene.b, &after, &seen);
    assert_str(buf_str(&seen), "one other two none none ");
    buf_clear(&seen);
    reads(&scene, &scene.b, &late, &seen); /* as one that starts now */
    assert_str(buf_str(&seen), "other two none none ");
    buf_done(&seen);
    close_scene(&scene);
}

/* Its own app, its other apps, and then it is the turn of all. What ends something, and what takes
 * the place of another one, has room all the same. */
static void who_fills_a_share_is_refused_and_no_other_one(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct fact_put put = {.bytes = STR("x"), .owner = owner("ann", "a"), .name = STR("mine")};
    open_scene(&scene, *state);
    fill(&scene, "ann", "a", FACT_APP_MAX - 1, 1, NOW + 1000);
    assert_true(tries(&scene, &put)); /* the last one */
    assert_true(tries(&scene, &put)); /* it replaces itself */
    put.name = STR_EMPTY;
    assert_false(tries(&scene, &put));
    assert_int_equal(scene.f->failed.code, ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(scene.f->failed.text, "this app of this caller may have 2500"));
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("the end of one")}));
    put.owner = owner("ann", "b");
    assert_true(tries(&scene, &put));
    put.owner = owner("ben", "a"); /* an app id is anyone's word */
    assert_true(tries(&scene, &put));
    fill(&scene, "ann", "c", FACT_CALLER_MAX - FACT_APP_MAX - 1, 1, NOW + 1000);
    put.owner = owner("ann", "b");
    assert_false(tries(&scene, &put));
    assert_non_null(strstr(scene.f->failed.text, "this caller may have"));
    put.owner = owner("ben", "a");
    assert_true(tries(&scene, &put));
    fill(&scene, "carl", "a", FACT_ALL_MAX, 1, NOW + 1000);
    assert_false(tries(&scene, &put));
    assert_non_null(strstr(scene.f->failed.text, "all callers together"));
    assert_true(tries(&scene, &(struct fact_put){.bytes = STR("the end of one")}));
    close_scene(&scene);
}

static void bytes_fill_a_share_too_and_what_is_over_does_not(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    struct fact_put put = {.bytes = STR("xyz"), .owner = owner("ann", "a")};
    open_scene(&scene, *state);
    fill(&scene, "ann", "a", 2, FACT_APP_MAX_BYTES / 2 - 1, NOW + 10);
    assert_false(tries(&scene, &put));
    put.bytes = STR("xy");
    assert_true(tries(&scene, &put));
    put.bytes = STR("xyz");
    fill(&scene, "ann", "a", 3 * FACT_SWEPT_MAX, 1, NOW + 10);
    put.unix_ms = NOW + 10; /* all that was put in before is over, and some of it goes */
    put.until_ms = NOW + 2000;
    assert_true(tries(&scene, &put));
    assert_int_equal(server_number(scene.f, "SELECT count(*) FROM fact WHERE until_ms <= "
                                            "1700000000010"),
                     2 * FACT_SWEPT_MAX + 2);
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_one_tells_the_others_read_in_its_order),
        TEST(one_whose_time_is_over_goes_with_the_next),
        TEST(many_are_read_page_by_page),
        TEST(one_that_has_a_name_replaces_the_earlier_one),
        TEST(who_fills_a_share_is_refused_and_no_other_one),
        TEST(bytes_fill_a_share_too_and_what_is_over_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
