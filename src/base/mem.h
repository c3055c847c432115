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

#include <stdbool.h>
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

/* --- the ceiling ----------------------------------------------------------------------------
 *
 * What others can make grow (bodies, replies, journals, histories, what a waiting turn holds)
 * is counted by those who hold it: buffers, arenas, chunks, records. A door asks before it
 * takes more, and refuses when no more may be taken:
 *
 *     doors     mem_allows(4 MiB) ──▶ is there room? else shed(): what the store has goes
 *     holders   mem_count(), mem_uncount(): never refused, for who was let in must end
 *
 * The count of a thread is up to 16 KiB late. */

/* `bytes` more, or less, are held. */
void mem_count(size_t bytes);
void mem_uncount(size_t bytes);

/* What is held now. */
size_t mem_counted(void);

/* Give up what can be had again, the longest unused first, until `bytes` less are counted or
 * there is no more. On the thread that asked, which holds no lock. */
typedef void mem_shed_fn(size_t bytes, void *ctx);

/* No more than `bytes` are to be held; 0: as many as there are. Before other threads begin. */
void mem_limit(size_t bytes);
void mem_shed_with(mem_shed_fn *shed, void *ctx);

/* Whether so much more may be held. Of the ceiling, large wishes leave an eighth to small ones
 * (64 KiB and less), so that short work goes on beside long. */
MUST_CHECK bool mem_allows(size_t bytes);

/* The same as an error.
 * errors  ERR_OUT_OF_MEMORY, which is worth another try */
struct err;
MUST_CHECK bool mem_check(size_t bytes, struct err *e);

/* One zeroed object of a type. */
#define MEM_NEW(type) ((type *)mem_zero(1, sizeof(type)))

#endif
