/* The idempotency key of a request, in its headers. */
#include "contract/http_key.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"
#include "session/idempotency_claims.h"

#include <stdio.h>

static struct buf taken;

static void take(struct route_call *call, void *ctx) {
    (void)ctx;
    struct str key;
    struct err e;
    struct arena *arena = arena_new(KIB);
    buf_clear(&taken);
    if (http_key_take(call, arena, &key, &e)) {
        buf_printf(&taken, "<" STR_FMT ">", STR_ARG(key));
    } else {
        assert_int_equal(e.code, ERR_MALFORMED);
        buf_append(&taken, err_text(&e));
    }
    arena_free(arena);
    route_reply(call, 200, STR("text/plain"), STR("ok"));
}

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

/* Headers may be NULL. */
static void assert_taken(struct loop *loop, struct route_site *site, const char *ours,
                         const char *plain, const char *expected) {
    struct exchange *x = fake_new(loop, "GET", "/");
    if (ours) fake_field(x, "x-idempotency-key", ours);
    if (plain) fake_field(x, "idempotency-key", plain);
    fake_start(x, serve, site);
    fake_body_end(x);
    fake_settle(loop);
    fake_free(x);
    if (!str_starts(buf_str(&taken), str_from(expected)))
        fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(buf_str(&taken)), expected);
}

static void a_key_is_taken_from_either_header(void **state) {
    (void)state;
    static const struct route rows[] = {
        {STR_INIT("GET"), STR_INIT("/"), take, ROUTE_OPEN, ROUTE_PLAIN}};
    static const struct route_table table = {.rows = rows, .row_count = ARRAY_LEN(rows)};
    static const struct route_table *const tables[] = {&table};
    struct loop *loop = loop_new_fake();
    struct route_site *site = route_site_new(loop, tables, 1);
    char longest[CLAIM_KEY_MAX_BYTES + 2], shown[CLAIM_KEY_MAX_BYTES + 8];
    memset(longest, 'k', sizeof(longest));
    longest[CLAIM_KEY_MAX_BYTES] = '\0';
    snprintf(shown, sizeof(shown), "<%s>", longest);
    buf_init(&taken, 4 * KIB);

    assert_taken(loop, site, NULL, NULL, "<>");
    assert_taken(loop, site, "a b", NULL, "<a b>");
    assert_taken(loop, site, NULL, "~!", "<~!>");
    assert_taken(loop, site, "k", "k", "<k>");
    assert_taken(loop, site, longest, NULL, shown);
    assert_taken(loop, site, "k", "K", "X-Idempotency-Key and Idempotency-Key differ");
    assert_taken(loop, site, "k", "", "X-Idempotency-Key and Idempotency-Key differ");
    longest[CLAIM_KEY_MAX_BYTES] = 'k';
    longest[CLAIM_KEY_MAX_BYTES + 1] = '\0';
    assert_taken(loop, site, longest, NULL, "an idempotency key is 1 to 255 printable ASCII");
    assert_taken(loop, site, "", NULL, "an idempotency key is 1 to 255");
    assert_taken(loop, site, NULL, "k\xC3\xA9", "an idempotency key is 1 to 255");
    assert_taken(loop, site, NULL, "a\tb", "an idempotency key is 1 to 255");

    buf_done(&taken);
    route_site_free(site);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_taken_from_either_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
