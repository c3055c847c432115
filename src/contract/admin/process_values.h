/* process_values: what this process uses, as Prometheus names it: processor time, memory, open
 * files, start.
 *
 * Threads  any; reads /proc.
 * Source   prometheus.io/docs/instrumenting/writing_clientlibs, "Process metrics".
 */
#ifndef WEIR_CONTRACT_ADMIN_PROCESS_VALUES_H
#define WEIR_CONTRACT_ADMIN_PROCESS_VALUES_H

#include "base/buf.h"

/* `started_s`: seconds since 1970. What the system does not tell is left out. */
void process_values_append(struct buf *out, double started_s);

#endif
