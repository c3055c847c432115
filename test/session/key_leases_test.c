#include "session/key_leases.h"

#include "base/mem.h"
#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"

#include <stdio.h>
#include <stdlib.h>

#define OURS "SELECT count(*) FROM lease WHERE holder = 1"
#define MOMENT_MS 20000 /* more than a lease is kept for nothing */

struct scene {
    struct sessions s;
    struct idempotency_claims *claims;
    struct key_leases *leases;
    struct lease_request request;
};

static int set_up(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    scene->s = sessions_open(WITH_SHARED_STORE);
    scene->claims = idempotency_claims_new();
    scene->leases = key_leases_new(scene->s.store, scene->claims);
    *state = scene;
    return 0;
}

static int tear_down(void **state) {
    struct scene *scene = *state;
    key_leases_leave(scene->leases, scene->s.loop);
    loop_turn(scene->s.loop);
    key_leases_free(scene->leases);
    idempotency_claims_free(scene->claims);
    sessions_shut(&scene->s);
    free(scene);
    return 0;
}

static struct claim_name named(const char *key) {
    return (struct claim_name){STR("w"), STR("u"), str_from(key)};
}

static void on_asked(struct lease_request *request, const struct err *failed, void *ctx) {
    (void)request, (void)ctx;
    assert_null(failed);
}

/* As a look-up does. The name's texts do not outlive it. */
static struct lease_key keep(struct scene *scene, const char *name) {
    char text[16];
    snprintf(text, sizeof(text), "%s", name);
    const struct claim_name of = named(text);
    struct lease_key key = key_leases_keep(scene->leases, &of, scene->s.loop);
    memset(text, '?', sizeof(text));
    scene->request = (struct lease_request){.key = key, .on_done = on_asked, .ctx = scene};
    lease_ask(scene->s.store, scene->s.loop, &scene->request);
    loop_turn(scene->s.loop);
    assert_true(scene->request.held);
    return key;
}

/* A long time, with a look every few seconds. */
static void let_time_pass(struct scene *scene) {
    for (int ms = 0; ms < MOMENT_MS; ms += 1000) loop_advance(scene->s.loop, 1000);
    loop_turn(scene->s.loop);
}

static int64_t ours(struct scene *scene) {
    return fake_store_number(scene->s.store, OURS);
}

static void it_is_given_back_a_moment_after_the_look_up(void **state) {
    struct scene *scene = *state;
    struct lease_key key = keep(scene, "k");
    key_leases_let(scene->leases, &key);
    loop_advance(scene->s.loop, 4000);
    assert_int_equal(ours(scene), 1); /* time to begin what was found free */
    let_time_pass(scene);
    assert_int_equal(ours(scene), 0);
}

static void it_is_kept_until_the_last_of_several_look_ups_ends(void **state) {
    struct scene *scene = *state;
    struct lease_key key = keep(scene, "k");
    keep(scene, "k");
    key_leases_let(scene->leases, &key);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 1);
    key_leases_let(scene->leases, &key);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 0);
}

static void it_is_kept_while_a_live_run_has_the_key(void **state) {
    struct scene *scene = *state;
    const struct claim_name name = named("k");
    struct claim_view view;
    struct lease_key key = keep(scene, "k");
    idempotency_claims_look(scene->claims, &name, &view);
    assert_true(idempotency_claims_begin(scene->claims, &name, view.mark));
    struct claim *claim = claim_new(&name, STR("print"));
    claim_mean(claim, 7, 1);
    idempotency_claims_end(scene->claims, &name, claim);
    key_leases_let(scene->leases, &key);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 1);
    idempotency_claims_remove(scene->claims, claim);
    claim_free(claim);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 0);
}

static void each_key_has_its_own(void **state) {
    struct scene *scene = *state;
    struct lease_key one = keep(scene, "one");
    keep(scene, "two");
    key_leases_let(scene->leases, &one);
    assert_int_equal(ours(scene), 2);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 1);
}

/* Its loop ends, and the replica's end gives all of it back. */
static void nothing_is_given_back_once_its_loop_has_left(void **state) {
    struct scene *scene = *state;
    struct lease_key key = keep(scene, "k");
    key_leases_leave(scene->leases, scene->s.loop);
    key_leases_let(scene->leases, &key);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 1);
}

/* A look-up of another loop goes on when the loop that asked first has left, and one that comes
 * later begins anew. */
static void a_look_up_of_another_loop_may_end_later(void **state) {
    struct scene *scene = *state;
    struct loop *other = loop_new_fake();
    const struct claim_name name = named("k");
    struct lease_key key = key_leases_keep(scene->leases, &name, other);
    keep(scene, "k");
    key_leases_leave(scene->leases, other);
    struct lease_key again = keep(scene, "k");
    key_leases_let(scene->leases, &key);
    key_leases_let(scene->leases, &key);
    key_leases_let(scene->leases, &again);
    let_time_pass(scene);
    assert_int_equal(ours(scene), 0);
    loop_free(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(it_is_given_back_a_moment_after_the_look_up),
        TEST(it_is_kept_until_the_last_of_several_look_ups_ends),
        TEST(it_is_kept_while_a_live_run_has_the_key),
        TEST(each_key_has_its_own),
        TEST(nothing_is_given_back_once_its_loop_has_left),
        TEST(a_look_up_of_another_loop_may_end_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
