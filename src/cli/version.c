#include "cli/cli.h"
#include "daemon/daemon.h"

#include <stdio.h>
#include <string.h>

int command_version(int arg_count, const char *const *args) {
    bool json = arg_count == 1 && strcmp(args[0], "--json") == 0;
    if (arg_count > (json ? 1 : 0)) {
        fprintf(stderr, "weir: error: weir version takes only --json\n");
        return EXIT_USAGE;
    }
    if (json) {
        printf("{\"name\":\"weir\",\"version\":\"%s\",\"compiler\":\"%s\"}\n", WEIR_VERSION,
               __VERSION__);
    } else {
        printf("weir %s\n", WEIR_VERSION);
    }
    return EXIT_DONE;
}
