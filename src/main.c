#include "cli/cli.h"

int main(int arg_count, char **args) {
    return cli_main(arg_count, (const char *const *)args);
}
