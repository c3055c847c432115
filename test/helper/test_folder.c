#include "helper/test_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ftw.h>

#include "base/mem.h"

void test_folder_make(char path[TEST_FOLDER_BYTES]) {
    snprintf(path, TEST_FOLDER_BYTES, "/tmp/weir-test-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *at) {
    (void)found, (void)kind, (void)at;
    return remove(path);
}

void test_folder_remove(const char *path) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread of a test calls it */
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

int test_folder_setup(void **state) {
    struct folder *folder = MEM_NEW(struct folder);
    test_folder_make(folder->path);
    snprintf(folder->file, sizeof(folder->file), "%s/weir.yaml", folder->path);
    snprintf(folder->other, sizeof(folder->other), "%s/other", folder->path);
    snprintf(folder->agent, sizeof(folder->agent), "%s/agent.yaml", folder->path);
    *state = folder;
    return 0;
}

int test_folder_teardown(void **state) {
    struct folder *folder = *state;
    test_folder_remove(folder->path);
    free(folder);
    return 0;
}
