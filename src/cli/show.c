#include "cli/show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX_BYTES (64 * MIB)
#define CELL_MAX_BYTES (64 * KIB)

void show_member(struct json object, const char *name, struct buf *out) {
    struct json member = json_find(object, str_from(name));
    struct arena *arena = arena_new(TEXT_MAX_BYTES);
    struct str text = member.kind == JSON_NONE ? STR_EMPTY : member.raw;
    if (member.kind == JSON_STRING && !json_str(member, arena, &text)) text = STR("...");
    terminal_text_append(out, text, TERMINAL_ONE_LINE);
    arena_free(arena);
}

void show_form(struct json object, const char *form, struct buf *out) {
    for (; *form; form++) {
        const char *end = *form == '{' ? strchr(form, '}') : NULL;
        char name[32];
        if (!end) {
            buf_append_byte(out, *form);
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(end - form - 1), form + 1);
        show_member(object, name, out);
        form = end;
    }
}

void show_cell(struct json object, const char *name, int width, struct buf *out) {
    struct buf text;
    struct json value = json_find(object, str_from(name));
    buf_init(&text, CELL_MAX_BYTES);
    if (value.kind == JSON_STRING)
        (void)json_text(value, &text);
    else if (value.kind != JSON_NULL)
        buf_append(&text, value.raw);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c < 0x20 || c == 0x7F) text.at[i] = ' ';
    }
    if (!text.len) buf_append_byte(&text, '-');
    buf_printf(out, "%*.*s", width, STR_ARG(buf_str(&text)));
    buf_done(&text);
}

void show_text(FILE *to, struct str text, enum terminal_lines lines) {
    struct buf shown;
    buf_init(&shown, TEXT_MAX_BYTES);
    terminal_text_append(&shown, text, lines);
    if (shown.len) fwrite(shown.at, 1, shown.len, to);
    buf_done(&shown);
}

void show_json(FILE *to, struct str json) {
    struct buf shown;
    buf_init(&shown, TEXT_MAX_BYTES);
    terminal_text_append_json(&shown, json);
    buf_append_byte(&shown, '\n');
    if (shown.len) fwrite(shown.at, 1, shown.len, to);
    buf_done(&shown);
}

void show_json_error(FILE *to, const struct err *problem) {
    struct buf line;
    buf_init(&line, 64 * KIB);
    struct json_writer json = json_writer(&line);
    json_open_object(&json);
    json_member_str(&json, "type", STR("error"));
    json_member_str(&json, "code", err_name(problem->code));
    json_member_str(&json, "message", err_text(problem));
    json_close(&json);
    show_json(to, buf_str(&line));
    fflush(to);
    buf_done(&line);
}

void show_listing(struct str list, bool is_json) {
    if (is_json)
        show_json(stdout, list);
    else
        show_text(stdout, list, TERMINAL_LINES);
}

bool show_colors(FILE *to, const char *asked) {
    /* NOLINTBEGIN(concurrency-mt-unsafe): nothing changes the environment meanwhile */
    const char *terminal = getenv("TERM"), *none = getenv("NO_COLOR");
    /* NOLINTEND(concurrency-mt-unsafe) */
    if (asked && strcmp(asked, "auto") != 0) return strcmp(asked, "on") == 0;
    return isatty(fileno(to)) && !(none && none[0]) && terminal && terminal[0] &&
           strcmp(terminal, "dumb") != 0;
}
