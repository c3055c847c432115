/* Artifacts: kept whole, read in pieces, and only by callers of their workspace. */
#include "store/artifact.h"

#include "fake/store_fake.h"
#include "helper/assert_str.h"

static struct loop *loop;
static struct store *store;
static struct err failed;
static struct artifact seen;
static struct buf bytes, said; /* said: its type and its token */
static int answers;

static void on_done(const struct artifact *artifact, const struct err *why, void *ctx) {
    assert_ptr_equal(ctx, &seen);
    answers++;
    failed.code = ERR_NONE;
    if (why) failed = *why;
    seen = *artifact;
    buf_clear(&bytes);
    if (!why) buf_append(&bytes, artifact->bytes);
    buf_clear(&said);
    buf_printf(&said, STR_FMT " " STR_FMT, STR_ARG(artifact->content_type),
               STR_ARG(artifact->token));
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_always_commit(store);
    buf_init(&bytes, 32 * MIB);
    buf_init(&said, KIB);
    answers = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_done(&bytes);
    buf_done(&said);
    fake_store_free(store);
    loop_free(loop);
    return 0;
}

static int64_t put(struct str workspace, struct str content) {
    struct artifact artifact = {
        .run = 7, .name = STR("page"), .content_type = STR("text/html"), .bytes = content};
    struct artifact_ask *ask;
    struct err e;
    assert_true(
        artifact_put_start(store, loop, workspace, &artifact, on_done, &seen, &ask, &e));
    loop_turn(loop);
    assert_int_equal(failed.code, ERR_NONE);
    return seen.id;
}

static void get(struct str workspace, int64_t id, size_t offset, size_t limit) {
    artifact_get_start(store, loop, workspace, id, offset, limit, on_done, &seen);
    loop_turn(loop);
}

static void an_artifact_is_read_in_pieces(void **state) {
    (void)state;
    int64_t id = put(STR("w"), STR("0123\0"
                                   "56789"));
    assert_true(id >= 1);
    assert_int_not_equal(put(STR("w"), STR("other")), id);
    get(STR("w"), id, 0, 100);
    assert_int_equal(seen.size, 10);
    assert_int_equal(seen.run, 7);
    assert_true(str_equal(buf_str(&bytes), STR("0123\0"
                                               "56789")));
    get(STR("w"), id, 3, 4);
    assert_true(str_equal(buf_str(&bytes), STR("3\0"
                                               "56")));
    get(STR("w"), id, 8, 100);
    assert_str(buf_str(&bytes), "89");
    get(STR("w"), id, 10, 100);
    assert_int_equal(bytes.len, 0);
    get(STR("w"), id, SIZE_MAX, SIZE_MAX);
    assert_int_equal(failed.code, ERR_NONE);
    assert_int_equal(bytes.len, 0);
    assert_int_equal(seen.size, 10);
}

static void find(struct str token, size_t offset, size_t limit) {
    artifact_find_start(store, loop, token, offset, limit, on_done, &seen);
    loop_turn(loop);
}

static void a_token_finds_its_artifact_alone(void **state) {
    (void)state;
    const struct str one = STR("one-token-of-24-bytes..."),
                     other = STR("another---of-24-bytes...");
    struct artifact artifact = {.run = 7,
                                .name = STR("made"),
                                .content_type = STR("audio/wav"),
                                .bytes = STR("0123456789"),
                                .token = one};
    struct artifact_ask *ask;
    struct err e;
    put(STR("w"), STR("without one"));
    assert_true(artifact_put_start(store, loop, STR("w"), &artifact, on_done, &seen, &ask, &e));
    loop_turn(loop);
    int64_t id = seen.id;
    find(one, 2, 3);
    assert_int_equal(seen.id, id);
    assert_int_equal(seen.size, 10);
    assert_str(buf_str(&said), "audio/wav one-token-of-24-bytes...");
    assert_str(buf_str(&bytes), "234");
    find(other, 0, 10);
    assert_int_equal(failed.code, ERR_NOT_FOUND);
    get(STR("w"), id, 0, 0);
    assert_str(buf_str(&said), "audio/wav one-token-of-24-bytes...");
    assert_int_equal(bytes.len, 0);
    get(STR("w"), id - 1, 0, 0);
    assert_str(buf_str(&said), "text/html ");
}

static void another_workspace_has_no_such_artifact(void **state) {
    (void)state;
    int64_t id = put(STR("w"), STR("canary"));
    get(STR("v"), id, 0, 100);
    assert_int_equal(failed.code, ERR_NOT_FOUND);
    get(STR("w"), id + 1, 0, 100);
    assert_int_equal(failed.code, ERR_NOT_FOUND);
}

static void what_is_too_large_is_refused_and_nothing_is_kept(void **state) {
    (void)state;
    struct artifact_ask *ask;
    struct err e;
    char *much = calloc(1, ARTIFACT_MAX_BYTES + 1);
    struct artifact artifact = {.bytes = str_of(much, ARTIFACT_MAX_BYTES + 1)};
    assert_false(
        artifact_put_start(store, loop, STR("w"), &artifact, on_done, &seen, &ask, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    int64_t id = put(STR("w"), str_of(much, ARTIFACT_MAX_BYTES));
    get(STR("w"), id, ARTIFACT_MAX_BYTES - 5, SIZE_MAX);
    assert_int_equal(bytes.len, 5);
    get(STR("w"), id, 0, SIZE_MAX);
    assert_int_equal(bytes.len, ARTIFACT_PIECE_MAX_BYTES);
    free(much);
}

static void a_forgotten_question_is_never_answered(void **state) {
    (void)state;
    artifact_forget(artifact_get_start(store, loop, STR("w"), 1, 0, 1, on_done, &seen));
    artifact_forget(NULL);
    loop_turn(loop);
    assert_int_equal(answers, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_artifact_is_read_in_pieces),
        TEST(a_token_finds_its_artifact_alone),
        TEST(another_workspace_has_no_such_artifact),
        TEST(what_is_too_large_is_refused_and_nothing_is_kept),
        TEST(a_forgotten_question_is_never_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
