/* files: the console's pages, scripts and styles, as the build embeds them from web/.
 *
 * Memory   constant; the table and the content are part of the program.
 * Threads  any.
 */
#ifndef WEIR_CONTRACT_CONSOLE_FILES_H
#define WEIR_CONTRACT_CONSOLE_FILES_H

#include "base/str.h"

struct console_file {
    struct str name; /* "index.html" */
    struct str type; /* its content type */
    struct str tag;  /* its ETag, with the quotes */
    struct str gzip; /* its content, compressed */
    size_t len;      /* of the content */
};

extern const struct console_file console_files[];
extern const size_t console_file_count;

#endif
