#include "cli/event_show.h"

#include "base/utf8.h"
#include "wire/event.h"

#include <string.h>

#define LINE_CHARACTERS 240
#define TEXT_MAX_BYTES (64 * MIB)
#define DIM "\x1b[2m"
#define NORMAL "\x1b[0m"

bool thinking_shown_parse(const char *text, enum thinking_shown *ret) {
    static const char *const names[] = {
        [THINKING_SHOWN] = "shown", [THINKING_FOLDED] = "folded", [THINKING_HIDDEN] = "hidden"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *ret = (enum thinking_shown)i;
        return true;
    }
    return false;
}

void event_show_init(struct event_show *show, FILE *said, FILE *done, bool colors,
                     enum thinking_shown thinking) {
    *show =
        (struct event_show){.said = said, .done = done, .colors = colors, .thinking = thinking};
    buf_init(&show->speaker, KIB);
}

void event_show_done(struct event_show *show) {
    buf_done(&show->speaker);
}

/* --- lines -------------------------------------------------------------------------------- */

static void dim(const struct event_show *show, bool on) {
    if (show->colors) fputs(on ? DIM : NORMAL, show->done);
}

void event_show_end_line(struct event_show *show) {
    if (show->in_line) fputc('\n', show->said);
    if (show->in_thought) {
        dim(show, false);
        fputc('\n', show->done);
    }
    if (show->thought) {
        dim(show, true);
        fprintf(show->done, "(thinking: %zu characters)", show->thought);
        dim(show, false);
        fputc('\n', show->done);
    }
    show->in_line = show->in_thought = false;
    show->thought = 0;
    fflush(show->said);
    fflush(show->done);
}

static void show_cut(struct event_show *show, const char *mark, struct str text, size_t most) {
    struct buf line;
    buf_init(&line, TEXT_MAX_BYTES);
    terminal_text_append(&line, text, TERMINAL_ONE_LINE);
    struct str shown = buf_str(&line);
    size_t len = utf8_head(shown, most);
    event_show_end_line(show);
    dim(show, true);
    fprintf(show->done, "%s" STR_FMT "%s", mark, STR_ARG(str_head(shown, len)),
            len < shown.len ? "…" : "");
    dim(show, false);
    fputc('\n', show->done);
    fflush(show->done);
    buf_done(&line);
}

void event_show_line(struct event_show *show, const char *mark, struct str text) {
    show_cut(show, mark, text, LINE_CHARACTERS);
}

/* --- events ------------------------------------------------------------------------------- */

static struct str member_text(struct json event, const char *name, struct arena *arena) {
    struct json member = json_find(event, str_from(name));
    struct str text = member.kind == JSON_NONE ? STR_EMPTY : member.raw;
    if (member.kind == JSON_STRING && !json_str(member, arena, &text)) text = STR_EMPTY;
    return text;
}

/* Where another agent speaks its name comes first; the first one needs none. */
static void name_speaker(struct event_show *show, struct str agent) {
    if (str_equal(buf_str(&show->speaker), agent)) return;
    if (show->speaker.len || show->tells_more) show_cut(show, "", agent, 60);
    buf_clear(&show->speaker);
    buf_append(&show->speaker, agent);
}

static void show_said(struct event_show *show, struct json event, struct arena *arena) {
    struct str text = member_text(event, "text", arena);
    if (show->in_thought || show->thought) event_show_end_line(show);
    name_speaker(show, member_text(event, "agent", arena));
    show_text(show->said, text, TERMINAL_LINES);
    if (text.len) show->in_line = text.at[text.len - 1] != '\n';
    fflush(show->said);
}

static void show_thinking(struct event_show *show, struct json event, struct arena *arena) {
    struct str text = member_text(event, "text", arena);
    if (show->in_line) event_show_end_line(show);
    if (show->thinking == THINKING_FOLDED) {
        for (size_t i = 0; i < text.len; i++) show->thought += (text.at[i] & 0xC0) != 0x80;
    } else if (show->thinking == THINKING_SHOWN) {
        if (!show->in_thought) dim(show, true);
        show->in_thought = true;
        show_text(show->done, text, TERMINAL_LINES);
        fflush(show->done);
    }
}

static void show_tool_call(struct event_show *show, struct json event, struct arena *arena) {
    struct buf line;
    buf_init(&line, TEXT_MAX_BYTES);
    buf_append(&line, member_text(event, "tool", arena));
    buf_append_byte(&line, ' ');
    buf_append(&line, json_find(event, STR("args")).raw);
    event_show_line(show, "* ", buf_str(&line));
    buf_done(&line);
}

static void show_tool_result(struct event_show *show, struct json event, struct arena *arena) {
    struct str call = member_text(event, "call_id", arena);
    if (str_starts(call, STR(EVENT_APPROVAL_ID)) && !show->tells_more)
        return; /* the decision of the person who sees this */
    bool failed = json_find(event, STR("error")).kind == JSON_TRUE;
    struct str message = member_text(event, "message", arena);
    if (failed && message.len) {
        event_show_line(show, "  failed: ", message);
    } else {
        event_show_line(show, failed ? "  failed: " : "  -> ",
                        json_find(event, STR("result")).raw);
    }
}

static void show_step(struct event_show *show, struct json event, struct arena *arena) {
    event_show_line(show, "* ", member_text(event, "description", arena));
}

static void show_item(struct event_show *show, struct json event, struct arena *arena) {
    event_show_line(show, "* ", member_text(event, "content_type", arena));
}

static void show_question(struct event_show *show, struct json event, struct arena *arena) {
    event_show_line(show, "? ", member_text(event, "question", arena));
}

static void show_failure(struct event_show *show, struct json event, struct arena *arena) {
    show_cut(show, "weir: error: ", member_text(event, "message", arena), 4 * LINE_CHARACTERS);
}

static void show_cancelled(struct event_show *show, struct json event, struct arena *arena) {
    event_show_line(show, "cancelled: ", member_text(event, "message", arena));
}

static void show_started(struct event_show *show, struct json event, struct arena *arena) {
    if (!show->tells_more) return;
    event_show_line(show, "session ", member_text(event, "session", arena));
    event_show_line(show, "> ", member_text(event, "text", arena));
}

static void show_done(struct event_show *show, struct json event, struct arena *arena) {
    event_show_end_line(show);
    if (show->tells_more) event_show_line(show, "done, ", member_text(event, "model", arena));
}

static const struct {
    const char *type;
    void (*show)(struct event_show *show, struct json event, struct arena *arena);
} kinds[] = {
    /* usage has no row: it is not shown */
    {"started", show_started},
    {"text", show_said},
    {"thinking", show_thinking},
    {"tool_call", show_tool_call},
    {"tool_result", show_tool_result},
    {"step", show_step},
    {"audio", show_item},
    {"item", show_item},
    {"approval", show_question},
    {"done", show_done},
    {"failed", show_failure},
    {"cancelled", show_cancelled},
};

void event_show(struct event_show *show, struct json event) {
    struct json type = json_find(event, STR("type"));
    struct arena *arena = arena_new(TEXT_MAX_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (json_is(type, str_from(kinds[i].type))) kinds[i].show(show, event, arena);
    }
    arena_free(arena);
}
