#include "mcp/pins.h"

#include "helper/assert_str.h"

#include "base/file.h"
#include "wire/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static int make_place(void **state) {
    (void)state;
    snprintf(path, sizeof(path), "/tmp/pins-test-XXXXXX");
    if (!mkdtemp(path)) return -1;
    snprintf(path + 21, sizeof(path) - 21, "/pins");
    return 0;
}

static int remove_place(void **state) {
    (void)state;
    unlink(path);
    path[21] = '\0';
    return rmdir(path);
}

static bool changed(const char *server, const char *description, const char *schema) {
    struct mcp_tool_info tool = {
        .name = STR("say"), .description = str_from(description), .schema = str_from(schema)};
    pins_check(str_from(path), str_from(server), &tool, 1);
    return tool.changed;
}

static void a_tool_is_known_until_it_changes_and_then_until_it_is_accepted(void **state) {
    struct err e;
    (void)state;
    assert_false(changed("a", "Says.", "{}"));
    assert_false(changed("a", "Says.", "{}"));
    assert_true(changed("a", "Says!", "{}"));
    assert_true(changed("a", "Says!", "{}"));
    assert_true(changed("a", "Says.", "{}")); /* back again is a change too */
    assert_false(changed("b", "Other.", "{}"));
    assert_true(pins_accept(str_from(path), STR_EMPTY, STR("say"), &e));
    assert_false(changed("a", "Says.", "{}"));
    assert_false(pins_accept(str_from(path), STR_EMPTY, STR("say"), &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void a_part_cannot_pose_as_another(void **state) {
    (void)state;
    assert_false(changed("a", "ab", "c"));
    assert_true(changed("a", "a", "bc"));
}

static void a_tool_that_comes_back_is_still_known(void **state) {
    (void)state;
    assert_false(changed("a", "Says.", "{}"));
    pins_check(str_from(path), STR("a"), NULL, 0);
    assert_true(changed("a", "Says!", "{}"));
}

static bool changed_in_repeats(bool idempotent) {
    struct mcp_tool_info tool = {.name = STR("say"),
                                 .description = STR("Says."),
                                 .schema = STR("{}"),
                                 .idempotent = idempotent};
    pins_check(str_from(path), STR("a"), &tool, 1);
    return tool.changed;
}

/* It would be called again after a lost answer. */
static void a_tool_that_calls_itself_repeatable_has_changed(void **state) {
    (void)state;
    assert_false(changed_in_repeats(false));
    assert_true(changed_in_repeats(true));
}

/* Once: the file has the new form afterwards. */
static void a_pin_without_what_the_tool_says_of_repeats_is_still_known(void **state) {
    const struct str parts[] = {STR_INIT("say"), STR_INIT("Says."), STR_INIT("{}")};
    uint8_t digest[DIGEST_BYTES];
    char hex[DIGEST_DIGITS + 1] = "";
    (void)state;
    digest_parts(parts, ARRAY_LEN(parts), digest);
    digest_digits(digest, DIGEST_DIGITS, hex);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s known a say\n", hex);
    fclose(file);
    assert_false(changed_in_repeats(true));
    assert_false(changed_in_repeats(true));
    assert_true(changed_in_repeats(false));
}

static void lines_that_are_none_are_passed_over(void **state) {
    (void)state;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("nonsense\n\n12 known a say\n", file);
    fclose(file);
    assert_false(changed("a", "Says.", "{}"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_tool_is_known_until_it_changes_and_then_until_it_is_accepted),
        TEST(a_part_cannot_pose_as_another),
        TEST(a_tool_that_comes_back_is_still_known),
        TEST(a_tool_that_calls_itself_repeatable_has_changed),
        TEST(a_pin_without_what_the_tool_says_of_repeats_is_still_known),
        TEST(lines_that_are_none_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
