/* powercut_vfs: a disk under SQLite that loses power.
 *
 * A file system for SQLite that passes everything on to the real one, and remembers for each
 * file what the disk is sure to hold: its content at its last sync. Writes and truncations
 * since then are remembered separately. Every call that changes something, and every
 * powercut_tick(), counts; at the chosen one the power is cut:
 *
 *     file = content at its last sync
 *          + an arbitrary subset of the writes since, in an arbitrary order,
 *            one of them torn at a sector's boundary
 *
 * A file that was created and never synced may be gone, a deleted one may be back. Then the
 * process is ended; what is left is found under the files' own names.
 *
 * Syncs can be made to fail, which loses for good what was written before them: it still reads
 * well, but no later sync brings it to the disk. Writes can be made to fail, too: then nothing
 * is written, or all of it.
 *
 * Shared memory (-shm) is passed on unchanged: SQLite recreates it when no process has it open.
 *
 * Memory   the files' contents, until the process ends.
 * Threads  any.
 */
#ifndef WEIR_TEST_HELPER_POWERCUT_VFS_H
#define WEIR_TEST_HELPER_POWERCUT_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct powercut {
    uint64_t seed;
    size_t at; /* the power goes at this operation, counted from 1; 0: at powercut_now() */
    size_t fail_from, fail_to; /* these syncs fail, counted from 1, the last included */
    bool fail_writes;          /* not the syncs of that number do, but the writes */
    bool fail_keeps; /* what was written before them may reach the disk all the same */
    /* Called when the files are as the cut leaves them, right before _exit(0). May be NULL. */
    void (*on_cut)(void *ctx);
    void *ctx;
};

/* Become the default of this process, before it opens a database. */
void powercut_begin(const struct powercut *powercut);

/* One more operation, in which the caller did something beside SQLite. */
void powercut_tick(void);

/* The power goes. */
_Noreturn void powercut_now(void);

/* How many syncs (or writes, where those fail) there were, and how many of them failed. */
size_t powercut_syncs(size_t *ret_failed);

/* The caller synced or renamed a file by itself. */
void powercut_synced(const char *path);
void powercut_renamed(const char *from, const char *to);

/* A number below `limit`, from the seed. */
size_t powercut_draw(size_t limit);

#endif
