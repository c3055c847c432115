/* mark: a note beside the database of how much of the log was acknowledged.
 *
 * SQLite takes a damaged frame of its write-ahead log for the torn end of a crash, and silently
 * drops everything after it. So after each commit, before it is acknowledged, the newest row's
 * id and the epoch are written to folder/weir.mark, 96 bytes of text, not synced. At the next
 * start the database must hold at least that much:
 *
 *     commit + fsync ──▶ note ──▶ acknowledge        database < note  =>  something was lost
 *
 * After a kill the note is exact. After a power cut it may be old or missing, but it never
 * claims more than was synced. Where commits are not synced (STORE_NORMAL, STORE_OFF) it is
 * valid only within one boot of the machine.
 *
 * Memory   a plain value; mark_close() closes the file.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_MARK_H
#define WEIR_STORE_MARK_H

#include "base/err.h"

struct mark {
    int file;
    bool synced;           /* commits reach the disk before they are noted */
    char boot[40];         /* the id of this boot of the machine */
    int64_t newest, epoch; /* as noted by the previous process; 0: no valid note */
};

/* Read the note. A missing or unreadable one claims nothing.
 * errors  ERR_UNAVAILABLE the file cannot be opened */
MUST_CHECK bool mark_open(struct mark *mark, const char *folder, bool synced, struct err *e);
void mark_close(struct mark *mark);

void mark_note(struct mark *mark, int64_t newest, int64_t epoch);

#endif
