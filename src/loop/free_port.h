/* free_port: a TCP port of 127.0.0.1 that was free a moment ago, for a child that must be told
 * where to listen.
 *
 * The kernel gives a program that asks for any port one of a range of its own. A port of that
 * range could be another program's before the child listens, so one below it is drawn at random.
 * Where there is none below, it is one of the kernel's after all. A program that names its port may
 * still take it: the child then cannot listen, and should end.
 *
 * Threads  any.
 * Source   ip(7), ip_local_port_range.
 */
#ifndef WEIR_LOOP_FREE_PORT_H
#define WEIR_LOOP_FREE_PORT_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define FREE_PORT_LOWEST 10000

/* errors  ERR_RESOURCE_EXHAUSTED there is none */
MUST_CHECK bool free_port(uint16_t *ret, struct err *e);

/* How many ports there are from FREE_PORT_LOWEST to the kernel's range, which is written as in
 * /proc/sys/net/ipv4/ip_local_port_range. 0 if it cannot be read. */
uint16_t free_port_count(struct str range);

#endif
