/* remove: delete an object, and the parts of uploads of it that were never completed.
 *
 *     [list uploads ─▶ abort each] ─▶ delete ─▶ done
 *
 * An object that is not there counts as deleted.
 *
 * Memory   the key is copied.
 * Threads  the loop's.
 */
#ifndef WEIR_OBJECT_REMOVE_H
#define WEIR_OBJECT_REMOVE_H

#include "object/ask.h"

enum object_remains { REMAINS_OBJECT, REMAINS_OBJECT_AND_PARTS };

typedef void object_removed_fn(const struct err *failed, void *ctx);

struct object_remove;
struct object_remove *object_remove_start(struct bucket *bucket, struct loop *loop,
                                          struct str key, enum object_remains remains,
                                          object_removed_fn *done, void *ctx);
void object_remove_cancel(struct object_remove *remove);

#endif
