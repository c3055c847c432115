/* methods: the table of the methods that are served.
 *
 * Private to contract/nimi.
 *
 * Memory   an instance owns its copy of the table in the form of rpc/.
 * Threads  the instance's loop.
 * Source   contracts/nimi.md 1.1.
 */
#ifndef WEIR_CONTRACT_NIMI_METHODS_H
#define WEIR_CONTRACT_NIMI_METHODS_H

#include "contract/nimi/call.h"

struct nimi_methods *nimi_methods_new(void);
void nimi_methods_free(struct nimi_methods *methods); /* NULL is fine */

/* The row at `index` among all rows of all services; NULL after the last. */
const struct nimi_row *nimi_row_at(size_t index);

#endif
