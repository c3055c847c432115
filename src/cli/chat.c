#include "cli/cli.h"
int command_chat(int arg_count, const char *const *args) {
    (void)arg_count;
    (void)args;
    return 0;
}
