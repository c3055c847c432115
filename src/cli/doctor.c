#include "cli/cli.h"
int command_doctor(int arg_count, const char *const *args) {
    (void)arg_count;
    (void)args;
    return 0;
}
