#include "contract/nimi/transfer/carry.h"

#include "helper/assert_str.h"

static void pulls_go_to_the_servers_root(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/api/pull"},
        {"http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/api/pull"},
        {"http://127.0.0.1:11434", "http://127.0.0.1:11434/api/pull"},
        {"http://127.0.0.1:11434/", "http://127.0.0.1:11434/api/pull"},
        {"https://box.example/models/v1", "https://box.example/models/api/pull"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf url;
        buf_init(&url, 200);
        download_url(str_from(cases[i][0]), &url);
        assert_str(buf_str(&url), cases[i][1]);
        buf_done(&url);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pulls_go_to_the_servers_root)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
