/* row: which members each kind of event has in a file. Private to tape/.
 *
 * Threads  the tables are constant.
 */
#ifndef WEIR_TAPE_ROW_H
#define WEIR_TAPE_ROW_H

#include "tape/call.h"

enum tape_form {
    TAPE_AS_ID,    /* a name of ours or a vendor's: as it is */
    TAPE_AS_PROSE, /* without secrets */
    TAPE_AS_VALUE, /* likewise; JSON as JSON */
};

struct tape_member {
    const char *name;
    size_t offset; /* of a struct str in struct reply_event */
    enum tape_form form;
};

struct tape_row {
    const char *name;              /* NULL: of no recording */
    struct tape_member members[4]; /* up to the first without a name */
    bool ends[2];                  /* a call of this enum tape_kind */
    bool tells[2];                 /* may be heard of it at all */
};

extern const struct tape_row tape_rows[REPLY_KIND_COUNT];

static inline struct str *tape_field(struct reply_event *event,
                                     const struct tape_member *member) {
    return (struct str *)(void *)((char *)event + member->offset);
}

#endif
