/* reply_heard: what a provider reports, recorded as one line: "text(Hi) done(m) ".
 *
 * Each kind of event has a form. `$` and a letter stand for a field:
 *
 *     t text   q text as JSON   i call_id   a args   n name: tool, dialect, model or reason
 *     e code   p c s u h k prompt, completion, total, tool_use, thoughts, cached of usage
 *     y l type and length of an artifact   v w x input, length and first number of a vector
 *
 * A test that needs more or fewer fields sets its own forms for some kinds.
 */
#ifndef WEIR_TEST_HELPER_REPLY_HEARD_H
#define WEIR_TEST_HELPER_REPLY_HEARD_H

#include "provider/provider.h"

/* Append `event` in its form of `forms`, or where that has none (or is NULL) in the usual one:
 *
 *     text($t) thinking($t) call($i,$n,$a) usage($n) opaque($t) note($t) approval($t)
 *     artifact($y $l) vector($v $w $x) done($n) failed($n)
 */
void reply_heard(struct buf *out, const char *const forms[REPLY_KIND_COUNT],
                 const struct reply_event *event);

/* What a listener does to the call that has just reported something. */
enum reply_then { GO_ON, PAUSE, PAUSE_AND_RESUME, CANCEL, FINISH };

/* *call becomes NULL when it is cancelled. */
void reply_then(enum reply_then then, const struct provider *asked,
                struct provider_call **call);

#endif
