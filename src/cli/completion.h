/* completion: the words that may follow on a command line, for a shell that completes it.
 *
 * The scripts under deploy/completion/ ask the installed program for them (weir help --words),
 * so they know the flags of that program and not those of the day when they were written.
 *
 * Memory   appends to a buffer of the caller.
 * Threads  any.
 */
#ifndef WEIR_CLI_COMPLETION_H
#define WEIR_CLI_COMPLETION_H

#include "base/buf.h"

/* The words of one command, as its --help has them: first what it does ("new"), then its flags.
 * Each once, one a line: WORD, a tab, the meaning, which may be empty.
 * name  of the command
 * help  all that --help prints */
void completion_words(struct str name, struct str help, struct buf *out);

/* One such line. */
void completion_word(struct str word, struct str meaning, struct buf *out);

#endif
