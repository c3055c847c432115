#include "sidecar/path.h"

#include "helper/assert_str.h"

static void spellings_of_one_path_have_one_plain_form(void **state) {
    (void)state;
    static const char *const spellings[] = {
        "/invoke",          "/%69nvoke",    "/%69%6E%76%6f%6b%65", "/invoke/",    "//invoke",
        "/./invoke",        "/x/../invoke", "/../invoke",          "/Invoke",     "/INVOKE//",
        "/invoke;v=1",      "/invoke/.",    "/x/y/../../invoke",   "\\invoke",    "/%2e/invoke",
        "/a/%2e%2e/invoke", "/%2Finvoke",   "/;a/invoke",          "invoke/x/..", "/invoke%3bv",
    };
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        struct buf out;
        buf_init(&out, 256);
        path_plain(str_from(spellings[i]), &out);
        bool relative = spellings[i][0] == 'i';
        if (!str_equal(buf_str(&out), relative ? STR("invoke") : STR("/invoke")))
            fail_msg("%s became " STR_FMT, spellings[i], STR_ARG(buf_str(&out)));
        buf_done(&out);
    }
}

static void other_paths_stay_others(void **state) {
    (void)state;
    static const char *const paths[][2] = {
        {"/", "/"},
        {"", "/"},
        {"/..", "/"},
        {"/%2569nvoke", "/%69nvoke"},
        {"/invoke/x", "/invoke/x"},
        {"/invoke%", "/invoke%"},
        {"/invoke%6", "/invoke%6"},
        {"/invok%g5", "/invok%g5"},
        {"/invoke.", "/invoke."},
        {"/invoke%20", "/invoke "},
        {"/...", "/..."},
        {"/a/b/..", "/a"},
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct buf out;
        buf_init(&out, 256);
        path_plain(str_from(paths[i][0]), &out);
        assert_str(buf_str(&out), paths[i][1]);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_one_path_have_one_plain_form),
        cmocka_unit_test(other_paths_stay_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
