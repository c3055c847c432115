/* mem: the heap, without NULL.
 *
 * An exhausted machine is not an error that each caller could mend: these print one last
 * line and abort, and the store's recovery takes over at the next start. Limits that a peer
 * could reach live above, in buffers and arenas, and are errors.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_MEM_H
#define WEIR_BASE_MEM_H

#include "base/attr.h"

#include <stddef.h>

/* Uninitialised bytes; free() them. A size of 0 gives a pointer that may only be freed. */
void *mem_alloc(size_t size);

/* `count` items of `size` zero bytes each; free() them. */
void *mem_zero(size_t count, size_t size);

/* As realloc(). */
void *mem_resize(void *at, size_t size);

/* Return to the system what was freed and is only kept for later. Takes a millisecond or some:
 * for times when there is nothing to do. */
void mem_give_back(void);

/* One zeroed object of a type. */
#define MEM_NEW(type) ((type *)mem_zero(1, sizeof(type)))

#endif
