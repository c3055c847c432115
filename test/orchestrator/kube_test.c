/* What of runtimes in a cluster needs no server: states, refusals, manifests. */
#include "orchestrator/kube.h"
#include "orchestrator/kube_manifest.h"
#include "orchestrator/runtimes_kubernetes.h"

#include "helper/assert_str.h"
#include "helper/moves.h"
#include "wire/json.h"

static void a_runtime_in_a_cluster_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "creating starting", "creating ending", "creating gone",   "starting serving",
        "starting ending",   "starting gone",   "serving ending",  "serving starting",
        "serving gone",      "ending gone",     "ending starting", "gone creating",
    };
    assert_moves(kube_runtime_states, KUBE_RUNTIME_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_refusal_has_a_code_and_a_fix(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body;
        enum err_code code;
        bool again;
        const char *word;
    } rows[] = {
        {401, "{}", ERR_UNAUTHENTICATED, true, "token"},
        {403, "{\"message\":\"no\"}", ERR_PERMISSION_DENIED, false, "no; grant"},
        {403, "{\"message\":\"x exceeded quota: y\"}", ERR_RESOURCE_EXHAUSTED, false, "raise"},
        {404, "", ERR_NOT_FOUND, false, "namespace"},
        {409, "{\"reason\":\"AlreadyExists\"}", ERR_ALREADY_EXISTS, true, "409"},
        {409, "{\"reason\":\"Conflict\"}", ERR_ABORTED, true, "409"},
        {410, "not JSON", ERR_OUT_OF_RANGE, false, "410"},
        {422, "[]", ERR_FAILED_PRECONDITION, false, "correct"},
        {429, "{}", ERR_RESOURCE_EXHAUSTED, true, "busy"},
        {503, "{\"message\":5}", ERR_UNAVAILABLE, true, "later"},
        {418, "{}", ERR_UNAVAILABLE, false, "418"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        bool again = kube_fault(rows[i].status, str_from(rows[i].body), STR("POST /api"), &e);
        assert_int_equal(e.code, rows[i].code);
        assert_int_equal(again, rows[i].again);
        assert_non_null(strstr(e.text, rows[i].word));
        assert_non_null(strstr(e.text, "POST /api"));
    }
}

static void a_manifest_holds_any_text_as_json(void **state) {
    (void)state;
    const struct kube_runtime runtime = {
        STR("n"), STR("w\"\n"), STR("u v"), STR("image"), STR("--a {workspace}  --b={user}"),
        STR("")};
    struct buf out;
    struct json root;
    struct err e;
    buf_init(&out, 64 * KIB);
    assert_true(kube_deployment(&runtime, &out));
    assert_true(json_read(buf_str(&out), &root, &e));
    struct json pod =
        json_find(json_find(json_find(root, STR("spec")), STR("template")), STR("spec"));
    struct json args = json_find(json_at(json_find(pod, STR("containers")), 0), STR("args"));
    assert_int_equal(json_count(args), 3); /* a value never becomes two arguments */
    assert_true(json_is(json_at(args, 1), STR("w\"\n")));
    assert_true(json_is(json_at(args, 2), STR("--b=u v")));
    assert_int_equal(json_count(json_find(pod, STR("volumes"))), 2); /* no secret is set */
    buf_clear(&out);
    assert_true(kube_service(&runtime, &out));
    assert_true(json_read(buf_str(&out), &root, &e));
    buf_done(&out);
    buf_init(&out, 100);
    assert_false(kube_deployment(&runtime, &out));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_runtime_in_a_cluster_moves_as_drawn),
        cmocka_unit_test(a_refusal_has_a_code_and_a_fix),
        cmocka_unit_test(a_manifest_holds_any_text_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
