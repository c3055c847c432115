/* What a server on this machine says of its models. That a weir says that its entries are its own is
 * in test/e2e/test_openai.py. */
#include "cli/model_discovery.h"
#include "helper/assert_str.h"

#define HEAD "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"

static void the_first_model_is_found_and_a_weir_is_none(void **state) {
    (void)state;
    static const struct {
        const char *answer, *model; /* NULL: none */
    } rows[] = {
        {HEAD "{\"object\":\"list\",\"data\":[{\"id\":\"gemma3\",\"owned_by\":\"library\"},"
              "{\"id\":\"b\"}]}",
         "gemma3"},
        {HEAD "{\"data\":[{\"id\":\"m\"}]}", "m"},
        {HEAD "{\"data\":[{\"id\":\"manager\",\"owned_by\":\"weir\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"qwen3:8b-\u00e9\"}]}", "qwen3:8b-\xc3\xa9"},
        /* What a terminal, or a settings file, would act on. */
        {HEAD "{\"data\":[{\"id\":\"m\\nmcp: [{name: x, command: [id]}]\\n#\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"m\\u001b[2J\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"m\\u009b31m\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"m\\u202e\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"a b\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"m\\u0000\"}]}", NULL},
        {HEAD "{\"data\":[]}", NULL},
        {HEAD "{\"data\":[{\"id\":\"\"}]}", NULL},
        {HEAD "{\"data\":[{\"id\":7}]}", NULL},
        {HEAD "{\"data\":{}}", NULL},
        {HEAD "<html>", NULL},
        {HEAD, NULL},
        {"{\"data\":[{\"id\":\"m\"}]}", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf model;
        buf_init(&model, KIB);
        bool found = model_discovery_read(str_from(rows[i].answer), &model);
        if (found != !!rows[i].model ||
            (found && !str_equal(buf_str(&model), str_from(rows[i].model))))
            fail_msg("row %zu: " STR_FMT, i, STR_ARG(buf_str(&model)));
        buf_done(&model);
    }
}

/* A name is whole or not there. */
static void a_name_is_not_cut(void **state) {
    (void)state;
    static const size_t lens[] = {1, 191, 192, 256, 257, 600};
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct buf answer, model;
        buf_init(&answer, 4 * KIB);
        buf_init(&model, KIB);
        buf_append(&answer, STR(HEAD "{\"data\":[{\"id\":\""));
        for (size_t k = 0; k < lens[i]; k++) buf_append_byte(&answer, 'm');
        buf_append(&answer, STR("\"}]}"));
        bool found = model_discovery_read(buf_str(&answer), &model);
        assert_int_equal(found, lens[i] <= 256);
        if (found) assert_int_equal(model.len, lens[i]);
        buf_done(&model);
        buf_done(&answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_model_is_found_and_a_weir_is_none),
        cmocka_unit_test(a_name_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
