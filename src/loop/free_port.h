/* free_port: a TCP port of 127.0.0.1 that was free a moment ago, for a child that must be told
 * where to listen. Somebody else may take it before the child does.
 *
 * Threads  any.
 */
#ifndef WEIR_LOOP_FREE_PORT_H
#define WEIR_LOOP_FREE_PORT_H

#include "base/err.h"

#include <stdint.h>

/* errors  ERR_RESOURCE_EXHAUSTED there is none */
MUST_CHECK bool free_port(uint16_t *ret, struct err *e);

#endif
