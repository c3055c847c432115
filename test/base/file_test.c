#include "base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct folder {
    char path[64], file[96];
};

static int make_folder(void **state) {
    struct folder *folder = calloc(1, sizeof(*folder));
    strcpy(folder->path, "/tmp/weir-file-test-XXXXXX");
    if (!mkdtemp(folder->path)) return -1;
    snprintf(folder->file, sizeof(folder->file), "%s/some", folder->path);
    int fd = open(folder->file, O_WRONLY | O_CREAT, 0600);
    bool wrote = write(fd, "a\0b\n", 4) == 4;
    close(fd);
    *state = folder;
    return wrote ? 0 : -1;
}

static int drop_folder(void **state) {
    struct folder *folder = *state;
    unlink(folder->file);
    rmdir(folder->path);
    free(folder);
    return 0;
}

static void a_file_comes_whole_with_every_byte(void **state) {
    struct folder *folder = *state;
    struct err e;
    struct buf out;
    buf_init(&out, 100);
    assert_true(file_read(str_from(folder->file), &out, &e));
    assert_true(str_equal(buf_str(&out), str_of("a\0b\n", 4)));
    buf_done(&out);
}

static void a_file_of_exactly_the_limit_is_not_too_large(void **state) {
    struct folder *folder = *state;
    for (size_t limit = 0; limit <= 4; limit++) {
        struct err e;
        struct buf out;
        buf_init(&out, limit);
        bool fits = file_read(str_from(folder->file), &out, &e);
        assert_int_equal(fits, limit == 4);
        if (!fits) assert_int_equal(e.code, ERR_TOO_LARGE);
        buf_done(&out);
    }
}

static void what_cannot_be_read_is_named_with_the_fix(void **state) {
    struct folder *folder = *state;
    struct err e;
    struct buf out;
    buf_init(&out, 100);
    assert_false(file_read(STR("/nowhere/at/all"), &out, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.text,
                        "read '/nowhere/at/all': there is no such file; check the name");
    assert_false(file_read(str_from(folder->path), &out, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    buf_done(&out);
}

static void a_file_is_replaced_as_a_whole_and_with_its_mode(void **state) {
    struct folder *folder = *state;
    struct stat info;
    struct err e;
    struct buf out;
    struct str path = str_from(folder->file);
    char left[PATH_MAX];
    buf_init(&out, 64);
    snprintf(left, sizeof(left), "%s.new", folder->file);
    int fd = open(left, O_WRONLY | O_CREAT, 0644); /* as a killed process leaves it */
    assert_true(fd >= 0);
    close(fd);
    assert_true(file_replace(path, 0600, STR("a longer text"), &e));
    assert_true(file_replace(path, 0600, STR("short"), &e));
    assert_true(file_read(path, &out, &e));
    assert_true(str_equal(buf_str(&out), STR("short")));
    assert_int_equal(stat(folder->file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_false(file_replace(STR("/nowhere/at/all"), 0600, STR("x"), &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_whole_with_every_byte),
        cmocka_unit_test(a_file_of_exactly_the_limit_is_not_too_large),
        cmocka_unit_test(what_cannot_be_read_is_named_with_the_fix),
        cmocka_unit_test(a_file_is_replaced_as_a_whole_and_with_its_mode),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
