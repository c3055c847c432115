/* look: a row that is being written is read once for all who keep something of it.
 *
 * The projection, the filter of sessions and the audit log each want its events other than texts;
 * and its last event says whether it can be shortened. Later, from the log, each reads for itself.
 *
 * Memory   events are borrowed from the row.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_LOOK_H
#define WEIR_STORE_LOOK_H

#include "store/audit.h"
#include "store/project.h"
#include "store/shorten.h"

struct look {
    struct project *project;
    struct audit *audit; /* not used for a shared row */
    struct session_filter *known;
};

/* *ret_end: as shorten_find() finds it.
 * errors  those of the audit log; a projection that fails forgets what it has gathered */
MUST_CHECK bool look_at(const struct look *look, const struct row *row,
                        struct shorten_end *ret_end, struct err *e);

#endif
