/* Grants: what covers what, what a revocation takes along, and the limits. The clock is a
 * number. */
#include "contract/nimi/grant/grants.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#define NOW INT64_C(1700000000000)

static struct grants *grants;
static const struct str scopes[] = {STR_INIT("read:*"), STR_INIT("runtime.memory.read")};

static int setup(void **state) {
    (void)state;
    grants = grants_new(4, 64 * KIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    grants_free(grants);
    return 0;
}

static struct grant wish(const char *principal, int64_t lasts_ms) {
    return (struct grant){.app = STR("demo.app"),
                          .subject = STR("anna"),
                          .principal = str_from(principal),
                          .policy = STR("v1"),
                          .scopes = scopes,
                          .scope_count = ARRAY_LEN(scopes),
                          .issued_ms = NOW,
                          .expires_ms = NOW + lasts_ms};
}

static struct grant *add(const struct grant *from) {
    char secret[RANDOM_TOKEN_BYTES + 1];
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES];
    struct grant fresh = *from, *made = NULL;
    grants_lock(grants);
    if (grants_make(grants, &fresh, NOW, secret))
        made = grants_put(grants, &fresh, from->parent ? str_from(from->parent->id) : STR_EMPTY,
                          NOW);
    grants_unlock(grants);
    if (!made) return NULL;
    random_token_digest(str_of(secret, RANDOM_TOKEN_BYTES), digest);
    assert_memory_equal(digest, made->digest, sizeof(digest));
    assert_ptr_not_equal(made->scopes, from->scopes); /* a copy */
    return made;
}

static struct grant *child_of(const struct grant *parent) {
    struct grant child = *parent;
    child.parent = parent;
    return add(&child);
}

static bool finds(const struct grant *grant, const char *app, int64_t at_ms) {
    char id[ULID_LEN + 1];
    memcpy(id, grant->id, sizeof(id));
    return grants_find(grants, str_from(id), str_from(app), at_ms) != NULL;
}

static void a_star_covers_what_begins_so(void **state) {
    (void)state;
    assert_true(grant_covers(scopes, 2, STR("read:")));
    assert_true(grant_covers(scopes, 2, STR("read:files")));
    assert_true(grant_covers(scopes, 2, STR("read:*")));
    assert_true(grant_covers(scopes, 2, STR("runtime.memory.read")));
    assert_false(grant_covers(scopes, 2, STR("runtime.memory.read.all")));
    assert_false(grant_covers(scopes, 2, STR("write:files")));
    assert_false(grant_covers(scopes, 2, STR("*")));
    assert_false(grant_covers(scopes, 0, STR("read:files")));
    assert_true(grant_scope_ok(STR("ai.text")) && grant_scope_ok(STR("grant:delegate")));
    assert_false(grant_scope_ok(STR("realm.x")) || grant_scope_ok(STR("")) ||
                 grant_scope_ok(STR("*")));
}

static void resources_lie_within_those_of_the_parent(void **state) {
    (void)state;
    const struct str two[] = {STR("c1"), STR("c2")}, other[] = {STR("c3")};
    const struct nimi_resource_selectors parent = {.conversation_ids = two,
                                                   .conversation_ids_count = 2};
    const struct nimi_resource_selectors one = {.conversation_ids = two,
                                                .conversation_ids_count = 1};
    const struct nimi_resource_selectors foreign = {.conversation_ids = other,
                                                    .conversation_ids_count = 1};
    const struct nimi_resource_selectors messages = {.message_ids = two,
                                                     .message_ids_count = 1};
    const struct nimi_resource_selectors none = {.conversation_ids = NULL};
    assert_true(grant_selects(&parent, NULL) && grant_selects(NULL, NULL));
    assert_true(grant_selects(&parent, &one) && grant_selects(&parent, &none));
    assert_false(grant_selects(&parent, &foreign) || grant_selects(&parent, &messages));
    assert_false(grant_selects(NULL, &none));
}

static void a_revocation_takes_along_what_was_delegated(void **state) {
    (void)state;
    struct grant root = wish("agent", 60000), other = wish("other", 60000);
    struct grant *first = add(&root), *child = child_of(first), *grandchild = child_of(child);
    struct grant *beside = add(&other);
    grants_revoke(grants, child);
    assert_true(child->revoked && grandchild->revoked);
    assert_false(first->revoked || beside->revoked);
    assert_true(grant_descends(grandchild, first) && !grant_descends(first, child));
    struct grant newer = wish("agent", 60000);
    newer.policy = STR("v2");
    assert_non_null(add(&newer)); /* in the place of those that were revoked */
    assert_true(first->revoked);
    assert_false(beside->revoked);
}

static void a_token_is_its_apps_until_it_expires(void **state) {
    (void)state;
    struct grant root = wish("agent", 60000);
    const struct grant *made = add(&root);
    assert_true(finds(made, "demo.app", NOW + 59999));
    assert_false(finds(made, "other.app", NOW + 59999));
    assert_false(finds(made, "demo.app", NOW + 60000));
    assert_non_null(grants_newest(grants)); /* its callers still hear that it has expired */
    assert_false(finds(made, "demo.app", NOW + 60000 + GRANTS_EXPIRED_KEPT_MS));
    assert_null(grants_newest(grants));
}

static enum grant_state checked(const struct grant *grant, const char *app, int64_t at_ms) {
    const struct grant *found = NULL;
    enum grant_state state = grants_check(grants, str_of(grant->id, ULID_LEN), grant->digest,
                                          str_from(app), at_ms, &found);
    assert_ptr_equal(found, state == GRANT_UNKNOWN ? NULL : grant);
    return state;
}

static void a_call_learns_what_became_of_its_token(void **state) {
    (void)state;
    struct grant root = wish("agent", 60000);
    struct grant *made = add(&root), *child = child_of(made);
    const struct grant *none = NULL;
    uint8_t wrong[RANDOM_TOKEN_DIGEST_BYTES] = {0};
    assert_int_equal(checked(made, "demo.app", NOW + 59999), GRANT_GOOD);
    assert_int_equal(checked(made, "demo.app", NOW + 60000), GRANT_EXPIRED);
    assert_int_equal(checked(made, "other.app", NOW), GRANT_UNKNOWN);
    struct str id = str_of(made->id, ULID_LEN), app = STR("demo.app");
    assert_int_equal(grants_check(grants, id, wrong, app, NOW, &none), GRANT_UNKNOWN);
    /* Not even the digest of an id that never was. */
    assert_int_equal(grants_check(grants, STR("never"), wrong, app, NOW, &none), GRANT_UNKNOWN);
    grants_revoke(grants, made);
    assert_int_equal(checked(made, "demo.app", NOW), GRANT_REVOKED);
    assert_int_equal(checked(child, "demo.app", NOW), GRANT_REVOKED);
    assert_null(none);
}

static void there_is_a_limit_in_number_and_bytes(void **state) {
    (void)state;
    struct grant root = wish("agent", 60000), short_one = wish("short", 0);
    for (int i = 0; i < 4; i++) assert_non_null(add(i ? &root : &short_one));
    assert_non_null(add(&root)); /* the one that has expired makes room */
    assert_null(add(&root));
    grants_revoke(grants, (struct grant *)(uintptr_t)grants_newest(grants));
    assert_non_null(add(&root)); /* and so does one that was revoked */
    assert_null(add(&root));
    grants_free(grants);
    grants = grants_new(1000, 8 * KIB);
    size_t count = 0;
    while (add(&root)) count++;
    assert_true(count > 2 && count < 40);
    char *long_text = mem_zero(1, 200 * KIB);
    memset(long_text, 'x', 200 * KIB);
    root.consent_id = str_of(long_text, 200 * KIB);
    assert_null(add(&root));
    free(long_text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_star_covers_what_begins_so),
        TEST(resources_lie_within_those_of_the_parent),
        TEST(a_revocation_takes_along_what_was_delegated),
        TEST(a_token_is_its_apps_until_it_expires),
        TEST(a_call_learns_what_became_of_its_token),
        TEST(there_is_a_limit_in_number_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
