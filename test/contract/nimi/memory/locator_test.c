/* Where banks are: two locators are the same when their keys are, and filters go by keys. */
#include "contract/nimi/memory/locator.h"

#include "helper/assert_str.h"
#include "proto/nimi.pb.h"

#include <stdlib.h>

static const struct nimi_workspace_private_bank_owner of_w = {STR_INIT("acc"), STR_INIT("w")};
static const struct nimi_app_private_bank_owner of_app = {STR_INIT("acc"), STR_INIT("app.a")};

static struct nimi_memory_bank_locator at_w(int32_t scope) {
    return (struct nimi_memory_bank_locator){.scope = scope,
                                             .which_owner =
                                                 NIMI_MEMORY_BANK_LOCATOR_WORKSPACE_PRIVATE,
                                             .workspace_private = &of_w};
}

static void a_scope_that_is_not_said_follows_from_the_owner(void **state) {
    (void)state;
    struct nimi_memory_bank_locator silent = at_w(0), said = at_w(5), wrong = at_w(4);
    struct locator one, two;
    struct fault fault;
    assert_true(locator_read(&silent, &one, &fault));
    assert_true(locator_read(&said, &two, &fault));
    assert_true(str_equal(one.key, two.key));
    assert_int_equal(one.message.scope, NIMI_MEMORY_BANK_SCOPE_WORKSPACE_PRIVATE);
    assert_false(locator_read(&wrong, &two, &fault));
    assert_int_equal(fault.reason, NIMI_PROTOCOL_ENVELOPE_INVALID);
}

/* The three ways to name a place give one key. */
static void public_locators_and_filters_name_the_same_place(void **state) {
    (void)state;
    const struct nimi_public_memory_bank_locator open = {
        .which_locator = NIMI_PUBLIC_MEMORY_BANK_LOCATOR_WORKSPACE_PRIVATE,
        .workspace_private = &of_w};
    const struct nimi_memory_bank_owner_filter filter = {
        .which_owner = NIMI_MEMORY_BANK_OWNER_FILTER_WORKSPACE_PRIVATE,
        .workspace_private = &of_w};
    struct nimi_memory_bank_locator whole = at_w(5);
    struct locator one, two, three;
    struct fault fault;
    assert_true(locator_read(&whole, &one, &fault));
    assert_true(locator_read_public(&open, &two, &fault));
    assert_true(locator_read_filter(&filter, &three, &fault));
    assert_true(str_equal(one.key, two.key) && str_equal(one.key, three.key));
}

static void ids_that_are_none_are_refused(void **state) {
    (void)state;
    char long_id[300];
    memset(long_id, 'x', sizeof(long_id));
    const struct str ids[] = {STR_INIT(""), STR_INIT("a\nb"), {long_id, 257}};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct nimi_world_shared_bank_owner world = {ids[i]};
        const struct nimi_memory_bank_locator at = {
            .which_owner = NIMI_MEMORY_BANK_LOCATOR_WORLD_SHARED, .world_shared = &world};
        struct locator locator;
        struct fault fault;
        assert_false(locator_read(&at, &locator, &fault));
        assert_int_equal(fault.reason, NIMI_PROTOCOL_ENVELOPE_INVALID);
    }
    struct locator locator;
    struct fault fault;
    assert_false(locator_read(NULL, &locator, &fault));
    assert_false(locator_read_public(NULL, &locator, &fault));
}

/* The longest locator that there is still has a key. */
static void the_longest_ids_have_a_key(void **state) {
    (void)state;
    char id[256];
    memset(id, 'x', sizeof(id));
    const struct nimi_agent_dyadic_bank_owner both = {str_of(id, sizeof(id)),
                                                      str_of(id, sizeof(id))};
    const struct nimi_memory_bank_locator at = {
        .which_owner = NIMI_MEMORY_BANK_LOCATOR_AGENT_DYADIC, .agent_dyadic = &both};
    struct locator locator;
    struct fault fault;
    assert_true(locator_read(&at, &locator, &fault));
    assert_true(locator.key.len > 512 && locator.key.len <= BANK_LOCATOR_MAX_BYTES);
}

static void a_filter_lets_through_what_it_names(void **state) {
    (void)state;
    const struct nimi_memory_bank_locator in_app = {
        .which_owner = NIMI_MEMORY_BANK_LOCATOR_APP_PRIVATE, .app_private = &of_app};
    const struct nimi_memory_bank_owner_filter owner = {
        .which_owner = NIMI_MEMORY_BANK_OWNER_FILTER_APP_PRIVATE, .app_private = &of_app};
    const int32_t scopes[] = {NIMI_MEMORY_BANK_SCOPE_WORKSPACE_PRIVATE};
    struct nimi_memory_bank_locator in_w = at_w(5);
    struct locator app, w;
    struct fault fault;
    assert_true(locator_read(&in_app, &app, &fault) && locator_read(&in_w, &w, &fault));
    static const struct {
        size_t scopes, owners;
        bool app, w;
    } cases[] = {
        {0, 0, true, true}, {1, 0, false, true}, {0, 1, true, false}, {1, 1, false, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct locator_filter *filter =
            locator_filter_new(scopes, cases[i].scopes, &owner, cases[i].owners, &fault);
        assert_non_null(filter);
        assert_int_equal(locator_filter_wants(app.key, filter), cases[i].app);
        assert_int_equal(locator_filter_wants(w.key, filter), cases[i].w);
        free(filter);
    }
    const int32_t wrong[] = {0, 6, -1};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_null(locator_filter_new(&wrong[i], 1, NULL, 0, &fault));
    assert_null(locator_filter_new(NULL, 0, &owner, LOCATOR_FILTERS_MAX + 1, &fault));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_that_is_not_said_follows_from_the_owner),
        cmocka_unit_test(public_locators_and_filters_name_the_same_place),
        cmocka_unit_test(ids_that_are_none_are_refused),
        cmocka_unit_test(the_longest_ids_have_a_key),
        cmocka_unit_test(a_filter_lets_through_what_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
