/* as_guard: a test whose own program is the guard of the processes that it starts. */
#ifndef WEIR_TEST_HELPER_AS_GUARD_H
#define WEIR_TEST_HELPER_AS_GUARD_H

#include "loop/guard.h"

#include <signal.h>
#include <stdlib.h>

/* First of all in main(). Exits where this process was started as the guard. */
static inline void as_guard(int arg_count, char **args) {
    const char *const *words = (const char *const *)args;
    if (guard_asked(arg_count, words)) exit(guard_main(words));
    signal(SIGPIPE, SIG_IGN);
}

#endif
