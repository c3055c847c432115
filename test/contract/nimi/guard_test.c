/* Who may call which method: every row of the table, and what a guard demands. */
#include "contract/nimi/guard.h"

#include "contract/nimi/methods.h"
#include "helper/assert_str.h"

/* Methods that an app may call before it has a token, and no others. */
static bool is_open(struct str path) {
    static const struct str open[] = {
        /* The proof of a login is in its request. */
        STR_INIT("RuntimeAccountService/BeginLogin"),
        STR_INIT("RuntimeAccountService/CompleteLogin"),
        STR_INIT("RuntimeAiService/ListScenarioProfiles"),
        STR_INIT("RuntimeAiService/PeekScheduling"),
        STR_INIT("RuntimeAuditService/GetRuntimeHealth"),
        STR_INIT("RuntimeAuditService/ListAIProviderHealth"),
        STR_INIT("RuntimeAuthService/RegisterApp"),
        STR_INIT("RuntimeLocalService/ListLocalAssets"),
        STR_INIT("RuntimeModelService/CheckModelHealth"),
        STR_INIT("RuntimeModelService/ListModels"),
    };
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        if (str_ends(path, open[i])) return true;
    }
    return false;
}

static void every_row_has_a_guard_and_a_subject(void **state) {
    (void)state;
    size_t count = 0;
    for (const struct nimi_row *row; (row = nimi_row_at(count)); count++) {
        assert_true(row->guard > 0 && row->guard < GUARD_COUNT);
        assert_int_not_equal(row->subject.where, 0);
        if (row->guard == GUARD_OPEN && !is_open(row->path))
            fail_msg(STR_FMT " is open to everyone", STR_ARG(row->path));
    }
    assert_true(count >= 20);
}

static void what_a_guard_demands(void **state) {
    (void)state;
    assert_false(guard_needs_token(GUARD_OPEN, false));
    assert_false(guard_needs_token(GUARD_OPEN, true));
    assert_false(guard_needs_token(GUARD_CALLER, false));
    assert_true(guard_needs_token(GUARD_CALLER, true));
    for (int guard = GUARD_SUBJECT; guard < GUARD_COUNT; guard++)
        assert_true(guard_needs_token((enum nimi_guard)guard, false));
    for (int guard = GUARD_OPEN; guard < GUARD_COUNT; guard++)
        assert_int_equal(guard_capability((enum nimi_guard)guard).len > 0,
                         guard > GUARD_SUBJECT);
}

static void a_scope_names_whole_words(void **state) {
    (void)state;
    struct str wanted = STR("runtime.audit.export");
    assert_true(guard_scope_has(STR("runtime.audit.export"), wanted));
    assert_true(guard_scope_has(STR("openid runtime.audit.export email"), wanted));
    assert_false(guard_scope_has(STR("runtime.audit.exports"), wanted));
    assert_false(guard_scope_has(STR("runtime.audit"), wanted));
    assert_false(guard_scope_has(STR_EMPTY, wanted));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_a_guard_and_a_subject),
        cmocka_unit_test(what_a_guard_demands),
        cmocka_unit_test(a_scope_names_whole_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
