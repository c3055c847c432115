/* machine: how much memory there is for this process.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_MACHINE_H
#define WEIR_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of memory that it may have: the machine's, less where its control group or its limit of
 * address space (ulimit -v) allows less. 0: not known. */
uint64_t machine_memory_bytes(void);

/* Bytes that can be had now, of the machine's or of the control group's. False: not known. */
bool machine_memory_available(uint64_t *ret);

#endif
