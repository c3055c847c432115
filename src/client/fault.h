/* fault: translate libcurl's results into errors for the caller.
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

#endif
