/* Settings of any bytes: a first byte says where they stand (the command line, the environment,
 * the file), and they are taken or refused with a sentence. */
#include "base/attr.h"
#include "config/config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cut a text that ends in NUL at its line ends. */
static size_t cut_words(char *text, const char **words) {
    size_t count = 0;
    for (char *word = strtok(text, "\n"); word && count < WORDS_MAX; word = strtok(NULL, "\n"))
        words[count++] = word;
    words[count] = NULL;
    return count;
}

/* Files that settings name are read: none of the machine's own may be. */
static bool names_a_file(char where, const char *text) {
    if (where == 'f')
        return strstr(text, "_file") || strstr(text, "agent_yaml") ||
               strstr(text, "subagents") || strstr(text, "prompts/");
    return strstr(text, "_FILE") || strstr(text, "WEIR_CONFIG") || strstr(text, "-c") ||
           strstr(text, "--config") || strstr(text, "CREDENTIALS_DIRECTORY");
}

static void load(const struct config_input *input) {
    struct err e;
    struct config *config;
    struct buf out;
    if (!config_load(input, &config, &e)) {
        assert(e.code != ERR_NONE && e.text[0] != '\0');
        return;
    }
    buf_init(&out, 16 * MIB);
    config_print(config, &out);
    buf_done(&out);
    config_free(config);
}

static void load_file(const char *text, size_t size) {
    char path[64];
    int fd = memfd_create("weir.yaml", 0);
    if (fd < 0) abort();
    if (write(fd, text, size) != (ssize_t)size) abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const char *args[] = {"-c", path};
    load(&(struct config_input){.args = args, .arg_count = 2, .cpus = 1});
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > 64 * KIB) return 0;
    char *text = str_dup(str_of(data + 1, size - 1));
    const char *words[WORDS_MAX + 1];
    if (names_a_file((char)data[0], text)) {
        free(text);
        return 0;
    }
    if (data[0] == 'f') {
        load_file(text, size - 1);
    } else {
        size_t count = cut_words(text, words);
        struct config_input input = {.cpus = 1, .demo = data[0] == 'd'};
        if (data[0] == 'e') {
            input.environment = words;
        } else {
            input.args = words, input.arg_count = count;
        }
        load(&input);
    }
    free(text);
    return 0;
}
