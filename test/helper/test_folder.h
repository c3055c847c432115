/* test_folder: a temporary folder of a test, and the settings files in it. */
#ifndef TEST_HELPER_TEST_FOLDER_H
#define TEST_HELPER_TEST_FOLDER_H

/* Make a folder below /tmp; its path goes to `path`. */
#define TEST_FOLDER_BYTES 64
void test_folder_make(char path[TEST_FOLDER_BYTES]);

/* Remove it with everything in it. */
void test_folder_remove(const char *path);

/* Write a file, in place of an earlier one. */
void write_file(const char *path, const char *text);

/* What a test of settings needs: *state in its cases. */
struct folder {
    char path[TEST_FOLDER_BYTES];
    char file[96];  /* weir.yaml */
    char other[96]; /* a file that the settings name: "other" */
    char agent[96]; /* agent.yaml */
};

int test_folder_setup(void **state);
int test_folder_teardown(void **state);

#endif
