#include "cli/cli.h"

int main(int arg_count, char **args) {
    sigset_t held;
    cli_held_signals(&held);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
    return cli_main(arg_count, (const char *const *)args);
}
