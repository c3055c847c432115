#include "exporter/batch.h"

#include "base/version.h"
#include "helper/assert_str.h"

static char room[SPANS_HEAD_BYTES + 8];

static struct str body_of(struct str service, struct str version) {
    struct batch_resource resource;
    const struct spans_part part = {room + SPANS_HEAD_BYTES, 5, 1};
    memcpy(part.at, "\x12\x03xyz", 5);
    batch_resource_init(&resource, service, version);
    struct str body = batch_body(&part, &resource);
    assert_ptr_equal(body.at + body.len, part.at + part.len);
    assert_memory_equal(part.at, "\x12\x03xyz", 5);
    return body;
}

static void a_body_is_what_it_is_of_and_then_the_spans(void **state) {
    (void)state;
    struct str body = body_of(STR("svc"), STR_EMPTY);
    size_t scope = 2 + 4 + 2 + sizeof(WEIR_VERSION) - 1;
    const char resource[] = "\x0a\x17\x0a\x15\x0a\x0cservice.name\x12\x05\x0a\x03svc";
    assert_int_equal(body.at[0], 0x0a);
    assert_int_equal(body.at[1], (int)body.len - 2);
    assert_memory_equal(body.at + 2, resource, sizeof(resource) - 1);
    const char *at = body.at + 2 + sizeof(resource) - 1;
    assert_int_equal(at[0], 0x12);
    assert_int_equal(at[1], (int)(2 + scope + 5));
    assert_int_equal(at[2], 0x0a);
    assert_int_equal(at[3], (int)scope);
    assert_memory_equal(at + 4, "\x0a\x04weir\x12", 7);
    assert_memory_equal(at + 12, WEIR_VERSION, sizeof(WEIR_VERSION) - 1);
    assert_memory_equal(at + 4 + scope, "\x12\x03xyz", 5);
}

static void a_resource_may_have_a_version_or_nothing(void **state) {
    (void)state;
    struct str body = body_of(STR("svc"), STR("1.2"));
    assert_true(str_find(body, STR("service.version\x12\x05\x0a\x03"
                                   "1.2")) < body.len);
    body = body_of(STR_EMPTY, STR("\xff"));
    assert_true(str_find(body, STR("service")) == body.len);
}

static void long_texts_are_cut_to_fit(void **state) {
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof(text));
    struct str body = body_of(str_of(text, sizeof(text)), str_of(text, sizeof(text)));
    size_t found = 0;
    for (size_t i = 0; i < body.len; i++) found += body.at[i] == 'x';
    assert_int_equal(found, 2 * BATCH_TEXT_BYTES + 1); /* and that of the spans */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_what_it_is_of_and_then_the_spans),
        cmocka_unit_test(a_resource_may_have_a_version_or_nothing),
        cmocka_unit_test(long_texts_are_cut_to_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
