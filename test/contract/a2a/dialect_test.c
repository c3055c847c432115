/* The tables of methods, versions, states and errors. */
#include "contract/a2a/dialect.h"

#include "helper/assert_str.h"

static void a_method_tells_the_dialect_and_the_operation(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum a2a_dialect dialect;
        enum a2a_operation operation;
    } rows[] = {{"message/send", A2A_0_3, A2A_SEND},
                {"tasks/resubscribe", A2A_0_3, A2A_SUBSCRIBE},
                {"tasks/pushNotificationConfig/set", A2A_0_3, A2A_WEBHOOK_PUT},
                {"SendStreamingMessage", A2A_1_0, A2A_STREAM},
                {"ListTasks", A2A_1_0, A2A_LIST},
                {"GetExtendedAgentCard", A2A_1_0, A2A_CARD},
                {"tasks/send", A2A_BREEDER, A2A_SEND}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct a2a_method *method = a2a_method_find(str_from(rows[i].name));
        assert_non_null(method);
        assert_int_equal(method->dialect, rows[i].dialect);
        assert_int_equal(method->operation, rows[i].operation);
    }
    assert_null(a2a_method_find(STR("message/Send")));
    assert_null(a2a_method_find(STR_EMPTY));
}

static void a_version_is_read_without_its_patch_level(void **state) {
    (void)state;
    assert_int_equal(a2a_version_read(STR_EMPTY), A2A_VERSION_NONE);
    assert_int_equal(a2a_version_read(STR("1.0")), A2A_VERSION_1_0);
    assert_int_equal(a2a_version_read(STR("1.0.1")), A2A_VERSION_1_0);
    assert_int_equal(a2a_version_read(STR("0.3")), A2A_VERSION_0_3);
    static const char *const others[] = {"1.00", "1", "0.2", "2.0", "v1.0", " 1.0"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(a2a_version_read(str_from(others[i])), A2A_VERSION_OTHER);
}

/* The header is for what is not clear from the method. */
static void a_version_speaks_its_own_methods_alone(void **state) {
    (void)state;
    assert_true(a2a_version_speaks(A2A_VERSION_NONE, A2A_0_3));
    assert_true(a2a_version_speaks(A2A_VERSION_NONE, A2A_1_0));
    assert_true(a2a_version_speaks(A2A_VERSION_1_0, A2A_1_0));
    assert_false(a2a_version_speaks(A2A_VERSION_1_0, A2A_0_3));
    assert_true(a2a_version_speaks(A2A_VERSION_0_3, A2A_0_3));
    assert_false(a2a_version_speaks(A2A_VERSION_0_3, A2A_1_0));
    assert_true(a2a_version_speaks(A2A_VERSION_1_0, A2A_BREEDER));
}

static void every_state_has_a_name_in_every_dialect(void **state) {
    (void)state;
    for (enum a2a_state each = A2A_SUBMITTED; each < A2A_STATE_COUNT; each++) {
        enum a2a_state found = A2A_STATE_COUNT;
        for (enum a2a_dialect dialect = A2A_0_3; dialect < A2A_DIALECT_COUNT; dialect++)
            assert_true(a2a_state_name(each, dialect).len > 0);
        assert_true(a2a_state_find(a2a_state_name(each, A2A_1_0), &found));
        assert_int_equal(found, each);
        assert_int_equal(a2a_state_is_terminal(each), each >= A2A_COMPLETED);
    }
    enum a2a_state none;
    assert_false(a2a_state_find(STR("completed"), &none));
}

static void every_error_of_ours_is_one_of_theirs(void **state) {
    (void)state;
    for (enum err_code code = ERR_NONE; code < ERR_CODE_COUNT; code++) {
        const struct a2a_error_row *row = a2a_error_row(a2a_error_of(code));
        assert_true(row->code <= -32001 && row->status >= 400 && row->reason.len > 0);
    }
    static const struct {
        enum err_code code;
        int64_t rpc;
        int status;
    } rows[] = {{ERR_INVALID_ARGUMENT, -32602, 400}, {ERR_NOT_FOUND, -32001, 404},
                {ERR_ABORTED, -32004, 400},          {ERR_UNIMPLEMENTED, -32005, 400},
                {ERR_UNAVAILABLE, -32603, 503},      {ERR_INTERNAL, -32603, 500}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct a2a_error_row *row = a2a_error_row(a2a_error_of(rows[i].code));
        assert_int_equal(row->code, rows[i].rpc);
        assert_int_equal(row->status, rows[i].status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_method_tells_the_dialect_and_the_operation),
        cmocka_unit_test(a_version_is_read_without_its_patch_level),
        cmocka_unit_test(a_version_speaks_its_own_methods_alone),
        cmocka_unit_test(every_state_has_a_name_in_every_dialect),
        cmocka_unit_test(every_error_of_ours_is_one_of_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
