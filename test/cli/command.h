/* command: run a command line as main() does, in a child with its own home.
 *
 *     struct said said;
 *     weir(&said, NULL, "token", "check", "x");
 *     assert_int_equal(said.code, EXIT_FAILED);
 *
 * The child's environment has HOME and what is put into `variables`, nothing else.
 */
#ifndef WEIR_TEST_CLI_COMMAND_H
#define WEIR_TEST_CLI_COMMAND_H

#include "cli/cli.h"
#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRESH __attribute__((unused)) static
#define SAID_BYTES (256 * 1024)

/* As text; what is longer is cut. */
struct said {
    int code; /* -1: it did not end by itself */
    char out[SAID_BYTES], err[SAID_BYTES];
};

static char home[64];

FRESH int home_setup(void **state) {
    (void)state;
    test_folder_make(home);
    return 0;
}

FRESH int home_teardown(void **state) {
    (void)state;
    test_folder_remove(home);
    return 0;
}

static void read_back(int fd, char ret[static SAID_BYTES]) {
    ssize_t len = pread(fd, ret, SAID_BYTES - 1, 0);
    assert_true(len >= 0);
    ret[len] = '\0';
    close(fd);
}

_Noreturn static void be_weir(const char *const *variables, const char *const *args,
                              int arg_count, int out, int err) {
    clearenv(); /* NOLINT(concurrency-mt-unsafe): the child has one thread */
    setenv("HOME", home, 1);
    for (; variables && variables[0]; variables += 2) setenv(variables[0], variables[1], 1);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    int code = cli_main(arg_count, args);
    fflush(NULL);
    _exit(code);
}

/* variables: name, value, ... NULL; or NULL. args: the whole line, ends with NULL. */
FRESH void weir_runs(struct said *ret, const char *const *variables, const char *const *args) {
    int status = 0, arg_count = 0;
    int out = memfd_create("out", 0), err = memfd_create("err", 0);
    while (args[arg_count]) arg_count++;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) be_weir(variables, args, arg_count, out, err);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    ret->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_back(out, ret->out);
    read_back(err, ret->err);
}

#define weir(ret, variables, ...)                                                              \
    weir_runs(ret, variables, (const char *const[]){"weir", __VA_ARGS__, NULL})

FRESH void assert_has(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("no '%s' in: %s", words, text);
}

#endif
