/* row: the members of each kind of event in a recording. Private to tape/.
 *
 * Threads  the tables are constant.
 */
#ifndef WEIR_TAPE_ROW_H
#define WEIR_TAPE_ROW_H

#include "tape/call.h"

enum tape_form {
    TAPE_AS_ID,     /* one of our names or a vendor's: unchanged */
    TAPE_AS_PROSE,  /* without secrets */
    TAPE_AS_VALUE,  /* likewise; JSON as JSON */
    TAPE_AS_OPTION, /* likewise; left out where it is empty */
};

struct tape_member {
    const char *name;
    size_t offset; /* of a struct str in struct reply_event */
    enum tape_form form;
};

struct tape_row {
    const char *name;              /* NULL: never recorded */
    struct tape_member members[4]; /* up to the first without a name */
    bool ends[2];                  /* by enum tape_kind: it ends such a call */
    bool tells[2];                 /* by enum tape_kind: it may occur in such a call */
};

extern const struct tape_row tape_rows[REPLY_KIND_COUNT];

static inline struct str *tape_field(struct reply_event *event,
                                     const struct tape_member *member) {
    return (struct str *)(void *)((char *)event + member->offset);
}

#endif
