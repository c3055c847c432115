/* machine: how much memory this process may use, what it has used, and whether a debugger is attached.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_MACHINE_H
#define WEIR_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of memory the process may use: the machine's memory, or less if its control group or
 * its address space limit (ulimit -v) allows less. 0: not known. */
uint64_t machine_memory_bytes(void);

/* Bytes of this process that are in memory now. False: not known. */
bool machine_resident_bytes(uint64_t *ret);

/* The part of them that is in no file: heap, stacks, changed data. False: as above. */
bool machine_private_bytes(uint64_t *ret);

/* Bytes the machine has available now, at most the limit of the control group. False: not
 * known. */
bool machine_memory_available(uint64_t *ret);

/* Microseconds of processor time that this process has used, all its threads together. */
uint64_t machine_used_us(void);

/* Whether a debugger is attached, or that is not known. */
bool machine_is_traced(void);

#endif
