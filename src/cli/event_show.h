/* event_show: the events of a run, shown to a person as they come.
 *
 * What the agents say goes to `said`, everything else to `done`: tools and their results in a
 * line each, thinking dimmed, or folded into a line that only says how much it was. The input is
 * the JSON of wire/event_json.h. Nothing reaches the terminal as it came.
 *
 * Memory   a plain value with a buffer; event_show_done().
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_EVENT_SHOW_H
#define WEIR_CLI_EVENT_SHOW_H

#include "cli/show.h"

enum thinking_shown { THINKING_SHOWN, THINKING_FOLDED, THINKING_HIDDEN };

struct event_show {
    FILE *said, *done;
    bool colors; /* on `done` */
    enum thinking_shown thinking;
    bool tells_more;    /* also who asked what, and how the run ended */
    bool in_line;       /* `said` is in the middle of a line */
    bool in_thought;    /* `done` is */
    size_t thought;     /* characters of thinking that were folded */
    struct buf speaker; /* who spoke last */
};

void event_show_init(struct event_show *show, FILE *said, FILE *done, bool colors,
                     enum thinking_shown thinking);
void event_show_done(struct event_show *show);

void event_show(struct event_show *show, struct json event);

/* End a line that is not complete. */
void event_show_end_line(struct event_show *show);

/* One line on `done`: `mark`, then the text on one line, cut to a length that can be read. */
void event_show_line(struct event_show *show, const char *mark, struct str text);

/* "shown", "folded", "hidden". False: another word. */
MUST_CHECK bool thinking_shown_parse(const char *text, enum thinking_shown *ret);

#endif
