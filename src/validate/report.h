/* report: findings for people and for machines.
 *
 *     text    one line a check as it ends; what is wrong, below it; a summary
 *     json    one document, at the end
 *     junit   the same as XML for CI systems
 *     tap     Test Anything Protocol 13, a line a check as it ends
 *
 * Results go to `out`, progress to `talk`, and only when that is a terminal.
 *
 * Memory   keeps what json and junit need until report_end().
 * Threads  the main thread.
 */
#ifndef WEIR_VALIDATE_REPORT_H
#define WEIR_VALIDATE_REPORT_H

#include "validate/validate.h"

#include <stdio.h>

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_JUNIT, REPORT_TAP, REPORT_FORMAT_COUNT };

#define REPORT_MAX_BYTES (16 * MIB)

struct report {
    enum report_format format;
    FILE *out, *talk;
    bool progress, color;
    struct str target; /* what is checked, for people */
    bool strict;
    size_t count;
    const struct profile *profile;
    struct buf kept; /* json and junit: the findings so far */
    uint64_t began_ms;
};

/* False: there is no such format. */
bool report_format_named(struct str name, enum report_format *ret);

void report_begin(struct report *report, enum report_format format, struct str target,
                  bool strict);
extern const struct report_sink report_sink; /* its ctx is the report */

/* Print the end, also when the target could not be reached. */
void report_end(struct report *report, const struct validate_result *result);

/* A table of the checks, and all about one. */
void report_list(FILE *out, const struct profile *named);
void report_explain(FILE *out, const struct profile *profile, const struct check *check);

/* --- one writer for each format; in report_text.c and report_machine.c ------------------------ */

struct report_writer {
    void (*begin)(struct report *report);
    void (*profile)(struct report *report);
    void (*finding)(struct report *report, const struct finding *finding);
    void (*end)(struct report *report, const struct validate_result *result);
};

extern const struct report_writer report_text, report_json, report_junit, report_tap;

#endif
