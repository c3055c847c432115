/* replay: run a fuzz target over its corpus, without a fuzzer.
 *
 * Linked with one <name>_fuzz.c it is the ctest fuzz-replay/<name>: every file of the corpus
 * folders is run as it is, and the small ones once more for each shorter length, since input
 * that stops early is what a network brings every day. Each run gets a copy that ends exactly
 * where the input ends, so that a sanitizer sees a read beyond it.
 *
 *     replay FOLDER|FILE ...        exit status 1 when there was nothing to run
 */
#include "base/mem.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

#define CUT_MAX_BYTES ((size_t)1024) /* of longer files only the whole is run */

static unsigned long inputs, files;

static void run(const uint8_t *data, size_t size) {
    uint8_t *copy = mem_alloc(size);
    if (size > 0) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    inputs++;
}

static void replay_file(const char *path, size_t size) {
    uint8_t *data = mem_alloc(size);
    FILE *file = fopen(path, "rb");
    if (!file || fread(data, 1, size, file) != size) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        exit(1);
    }
    fclose(file);

    run(data, size);
    for (size_t cut = 0; size <= CUT_MAX_BYTES && cut < size; cut++) run(data, cut);
    free(data);
    files++;
}

static void replay_path(const char *path);

static void replay_folder(const char *path) {
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char inner[4096];
        int len = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && len < (int)sizeof inner) replay_path(inner);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static void replay_path(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "replay: no such corpus: %s\n", path);
        exit(1);
    }
    if (S_ISDIR(info.st_mode)) {
        replay_folder(path);
    } else if (S_ISREG(info.st_mode)) {
        replay_file(path, (size_t)info.st_size);
    }
}

int main(int argc, char **argv) {
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) replay_path(argv[i]);
    printf("%lu files, %lu inputs\n", files, inputs);
    return files > 0 ? 0 : 1;
}
