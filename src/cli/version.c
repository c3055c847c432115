#include "cli/cli.h"
#include "daemon/daemon.h"

#include <stdio.h>
#include <string.h>

static const char usage[] = "weir version [--json]\n\n"
                            "Which weir this is; --json adds the compiler that built it.\n";

int command_version(int arg_count, const char *const *args) {
    if (arg_count == 1 && (!strcmp(args[0], "--help") || !strcmp(args[0], "-h"))) {
        printf("%s", usage);
        return EXIT_DONE;
    }
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
