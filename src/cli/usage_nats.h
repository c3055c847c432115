/* usage_nats: `weir usage --from nats`: what orchestrators have published, summed.
 *
 * Threads  the main thread. */
#ifndef WEIR_CLI_USAGE_NATS_H
#define WEIR_CLI_USAGE_NATS_H

#include <stdbool.h>

bool usage_is_from_nats(int arg_count, const char *const *args);
/* Returns the exit code. */
int usage_from_nats(int arg_count, const char *const *args);

#endif
