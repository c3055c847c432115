/* fault: errors of requests: libcurl's results for the caller, and what came too late.
 *
 * Private to client/.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_CLIENT_FAULT_H
#define WEIR_CLIENT_FAULT_H

#include "client/curl.h"

/* `detail` is libcurl's own message, or empty. */
void fault_of(CURLcode result, struct str detail, struct err *ret);

/* "no answer within 30s": `what` did not happen in time. */
void fault_late(uint64_t limit_ms, const char *what, struct err *ret);

#endif
