/* doctor: find what keeps weir from serving well on this machine.
 *
 * A check looks at one thing and reports a finding: good, a note, or bad. A finding that is not
 * good comes with a command to copy. Checks change nothing and do not disturb a running weir.
 *
 * Memory   the doctor borrows the configuration; findings are written out at once.
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_DOCTOR_H
#define WEIR_CLI_DOCTOR_H

#include "config/config.h"
#include "wire/json.h"

enum finding { FINDING_GOOD, FINDING_NOTE, FINDING_BAD };

struct doctor {
    const struct config *config;
    bool json;
    struct buf out;
    struct json_writer writer; /* into `out`, for --json */
    size_t bad;
};

/* `fix` is a command, or NULL when all is good. */
PRINTF_LIKE(5, 6)
void doctor_say(struct doctor *doctor, enum finding finding, const char *what, const char *fix,
                const char *format, ...);

typedef void doctor_check(struct doctor *doctor);

/* doctor_machine.c */
doctor_check doctor_ports, doctor_files, doctor_memory, doctor_clock, doctor_speech,
    doctor_exec;

/* doctor_store.c */
doctor_check doctor_store, doctor_disk;

/* The process that has the store of this configuration open, or 0. */
long doctor_store_owner(const struct config *config);

#endif
