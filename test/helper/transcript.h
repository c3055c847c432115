/* transcript: replay what a model API sent and compare the events that its dialect reports.
 *
 * A folder holds one folder for each transcript, with two files:
 *
 *     NAME/input     the body of the answer, server-sent events
 *     NAME/expect    the events, one per line, and the outcome:
 *
 *         text "Hel"
 *         thinking "hm"
 *         call ID TOOL ARGS              as they came; - for an empty id
 *         usage MODEL prompt=1 completion=2 total=3 tool_use=-1 thoughts=0 cached=0
 *               and, where a cache was filled: cache_write=1 cache_write_hour=0
 *         opaque DIALECT BYTES
 *         done MODEL | cut MODEL | failed REASON CODE "why"
 *
 * Each input is replayed cut at every byte, and byte by byte. So are the same events with CRLF,
 * with CR, after a byte order mark, between comments, and with their data on many lines. A
 * reply that is stopped from inside a callback must not call back again. An input that is cut
 * off must not count as complete if the longer input does not. Events that are nearly like the one
 * before them say the same whether they are compared with it (json_template.h) or read.
 */
#ifndef WEIR_TEST_HELPER_TRANSCRIPT_H
#define WEIR_TEST_HELPER_TRANSCRIPT_H

#include "provider/dialect.h"

/* All transcripts of `folder`, "test/provider/transcripts/openai": from the root of the tree,
 * where ctest runs its programs. Fails the test, and names the transcript. */
void transcripts_replay(const struct dialect *dialect, const char *folder);

/* Append what `dialect` makes of `stream`, fed in pieces of `piece` bytes, as above. */
void transcript_record(const struct dialect *dialect, struct str stream, size_t piece,
                       struct buf *out);

/* The same of an answer that came as one JSON value. */
void transcript_read(const struct dialect *dialect, struct str answer, struct buf *out);

#endif
