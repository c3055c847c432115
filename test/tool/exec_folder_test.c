/* Whose commands work in which folder, and how long the folders of sessions stay. */
#include "tool/exec_folder.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[64];

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof(root), "/tmp/weir-folder-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command); /* NOLINT: a path of our own */
}

/* The path below the root; free() it. */
static char *folder_of(enum exec_scope scope, const char *workspace, const char *user,
                       const char *session) {
    const struct exec_whose whose = {str_from(workspace), str_from(user), str_from(session)};
    char *folder, *whole;
    struct err e;
    struct stat about;
    assert_true(exec_folder_make(root, scope, 60000, &whose, &folder, &whole, &e));
    assert_true(str_starts(str_from(folder), str_from(whole)));
    assert_int_equal(stat(folder, &about), 0);
    char *below = str_dup(str_from(folder + strlen(root)));
    free(folder);
    free(whole);
    return below;
}

static void each_scope_has_its_folders(void **state) {
    (void)state;
    static const struct {
        enum exec_scope scope;
        const char *workspace, *user, *session, *folder;
    } cases[] = {
        {EXEC_SESSION, "w", "ann", "s-1", "/workspaces/w/users/ann/sessions/s-1/files"},
        {EXEC_SESSION, "w", "bob", "s-1", "/workspaces/w/users/bob/sessions/s-1/files"},
        {EXEC_SESSION, "w", "", "", "/workspaces/w/users/%/sessions/%/files"},
        {EXEC_SESSION, "w", "%", "..", "/workspaces/w/users/%25/sessions/%2E%2E/files"},
        {EXEC_SESSION, "..", "a/b", "../../x",
         "/workspaces/%2E%2E/users/a%2Fb/sessions/..%2F..%2Fx/files"},
        {EXEC_USER, "w", "ann", "s-1", "/workspaces/w/users/ann/files"},
        {EXEC_USER, "w", "ann", "s-2", "/workspaces/w/users/ann/files"},
        {EXEC_WORKSPACE, "w", "ann", "s-1", "/workspaces/w/files"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *folder =
            folder_of(cases[i].scope, cases[i].workspace, cases[i].user, cases[i].session);
        assert_str(str_from(folder), cases[i].folder);
        free(folder);
    }
}

static void a_malformed_name_is_refused(void **state) {
    (void)state;
    char name[300];
    memset(name, 'n', sizeof(name));
    const struct {
        struct exec_whose whose;
        const char *why;
    } cases[] = {
        {{STR(""), STR("u"), STR("s")}, "the call belongs to no workspace"},
        {{str_of(name, 256), STR("u"), STR("s")}, "its folder among the workspaces"},
        {{STR("w"), str_of(name, 256), STR("s")}, "its folder among the users"},
        {{STR("w"), STR("u"), str_of(name, 256)}, "its folder among the sessions"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *folder, *whole;
        struct err e;
        assert_false(
            exec_folder_make(root, EXEC_SESSION, 0, &cases[i].whose, &folder, &whole, &e));
        assert_true(str_starts(err_text(&e), str_from(cases[i].why)));
    }
}

/* Make a file below the root, and its folder as old as that. */
static void put(const char *folder, const char *name, time_t age_s) {
    char path[256];
    const struct timespec then[2] = {{.tv_sec = time(NULL) - age_s},
                                     {.tv_sec = time(NULL) - age_s}};
    snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    snprintf(path, sizeof(path), "%s%s", root, folder);
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

static bool is_there(const char *folder) {
    char path[256];
    struct stat about;
    snprintf(path, sizeof(path), "%s%s", root, folder);
    return lstat(path, &about) == 0;
}

static void folders_of_sessions_that_are_idle_go_when_another_begins(void **state) {
    (void)state;
    char path[256];
    free(folder_of(EXEC_SESSION, "w", "ann", "old"));
    free(folder_of(EXEC_SESSION, "w", "bob", "old"));
    free(folder_of(EXEC_SESSION, "w", "ann", "young"));
    free(folder_of(EXEC_SESSION, "other", "ann", "old"));
    free(folder_of(EXEC_USER, "w", "ann", ""));
    snprintf(path, sizeof(path), "%s/workspaces/w/users/bob/sessions/old/files/shut", root);
    assert_int_equal(mkdir(path, 0000), 0);
    snprintf(path, sizeof(path), "%s/workspaces/w/users/ann/sessions/old/files/link", root);
    assert_int_equal(symlink(root, path), 0);
    put("/workspaces/w/users/ann/sessions/old", "f", 3600);
    put("/workspaces/w/users/bob/sessions/old", "f", 3600);
    put("/workspaces/w/users/ann/sessions/young", "f", 30);
    put("/workspaces/other/users/ann/sessions/old", "f", 3600);
    put("/workspaces/w/users/ann/files", "f", 3600);

    free(folder_of(EXEC_SESSION, "w", "ann", "young")); /* it was there: nothing is swept */
    assert_true(is_there("/workspaces/w/users/ann/sessions/old/f"));
    free(folder_of(EXEC_SESSION, "w", "cleo", "new"));
    assert_false(is_there("/workspaces/w/users/ann/sessions/old"));
    assert_false(is_there("/workspaces/w/users/bob/sessions/old"));
    assert_true(is_there("/workspaces/w/users/ann/sessions/young/f"));
    assert_true(is_there("/workspaces/other/users/ann/sessions/old/f"));
    assert_true(is_there("/workspaces/w/users/ann/files/f"));
}

/* One that is used again is not idle, however old its files are. */
static void a_call_keeps_its_folder(void **state) {
    (void)state;
    free(folder_of(EXEC_SESSION, "w", "ann", "s"));
    put("/workspaces/w/users/ann/sessions/s", "f", 3600);
    free(folder_of(EXEC_SESSION, "w", "ann", "s"));
    free(folder_of(EXEC_SESSION, "w", "ann", "t"));
    assert_true(is_there("/workspaces/w/users/ann/sessions/s/f"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_scope_has_its_folders),
        TEST(a_malformed_name_is_refused),
        TEST(folders_of_sessions_that_are_idle_go_when_another_begins),
        TEST(a_call_keeps_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
