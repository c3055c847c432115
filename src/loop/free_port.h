/* free_port: a TCP port of 127.0.0.1 that was free a moment ago, for a child that must know
 * where to listen.
 *
 * The kernel gives a program that asks for any port one of a range of its own. A port of that
 * range could be another program's before the child listens, so one below it is drawn at random.
 * Where there is none below, it is one of the kernel's after all. It is none that the operator has
 * reserved, nor one that this process has drawn a short while ago, whose child may not listen yet.
 * Another program that names its port may still take it: the child then cannot listen, and should
 * end.
 *
 * Threads  any.
 * Source   ip(7), ip_local_port_range; the kernel's ip-sysctl, ip_local_reserved_ports.
 */
#ifndef WEIR_LOOP_FREE_PORT_H
#define WEIR_LOOP_FREE_PORT_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define FREE_PORT_LOWEST 10000

/* So many draws of one process in a row are of different ports, if there are twice as many. */
#define FREE_PORT_APART 1024

/* errors  ERR_RESOURCE_EXHAUSTED there is none */
MUST_CHECK bool free_port(uint16_t *ret, struct err *e);

/* How many ports there are from FREE_PORT_LOWEST to the kernel's range, which is written as in
 * /proc/sys/net/ipv4/ip_local_port_range. 0 if it cannot be read. */
uint16_t free_port_count(struct str range);

/* Whether a port is one of the ports that the operator keeps for programs which name theirs,
 * which are written as in /proc/sys/net/ipv4/ip_local_reserved_ports. */
bool free_port_is_reserved(struct str reserved, uint16_t port);

#endif
