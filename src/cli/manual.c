#include "cli/manual.h"

#include "base/version.h"
#include "cli/help_text.h"

#define CELLS_MAX 8

/* --- text in roff ------------------------------------------------------------------------- */

/* Words of a page: a hyphen stays one, and no backslash or leading dot is a command. */
static void manual_put_text(struct str text, struct buf *out) {
    if (text.len && (text.at[0] == '.' || text.at[0] == '\'')) buf_append(out, STR("\\&"));
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\\') {
            buf_append(out, STR("\\e"));
        } else if (text.at[i] == '-') {
            buf_append(out, STR("\\-"));
        } else if (text.at[i] != '`') {
            buf_append_byte(out, text.at[i]);
        }
    }
}

static void manual_put_line(struct str text, struct buf *out) {
    manual_put_text(text, out);
    buf_append_byte(out, '\n');
}

static void put_heading(const char *macro, struct str text, struct buf *out) {
    buf_printf(out, ".%s \"", macro);
    manual_put_text(text, out);
    buf_append(out, STR("\"\n"));
}

static void put_begin(struct str name, const char *section, struct str what, struct buf *out) {
    buf_append(out, STR(".TH \""));
    for (size_t i = 0; i < name.len; i++) {
        bool lower = name.at[i] >= 'a' && name.at[i] <= 'z';
        buf_append_byte(out, lower ? (char)(name.at[i] - 'a' + 'A') : name.at[i]);
    }
    buf_printf(out, "\" %s \"\" \"weir " WEIR_VERSION "\" \"weir\"\n.SH NAME\n", section);
    manual_put_text(name, out);
    buf_append(out, STR(" \\- "));
    manual_put_line(what, out);
}

/* Paragraphs. Lines that begin with a blank keep their form. */
static void put_body(struct str body, struct buf *out) {
    struct str line;
    bool kept = false;
    while (help_text_line(&body, &line)) {
        bool keeps = line.len && (line.at[0] == ' ' || (kept && !str_trim(line).len));
        if (keeps != kept) buf_append(out, keeps ? STR(".PP\n.nf\n") : STR(".fi\n.PP\n"));
        kept = keeps;
        if (str_trim(line).len) {
            manual_put_line(line, out);
        } else {
            buf_append(out, kept ? STR("\n") : STR(".PP\n"));
        }
    }
    if (kept) buf_append(out, STR(".fi\n"));
}

static void put_kept(struct str text, struct buf *out) {
    struct str line;
    buf_append(out, STR(".nf\n"));
    while (help_text_line(&text, &line)) manual_put_line(line, out);
    buf_append(out, STR(".fi\n"));
}

/* --- pages of commands -------------------------------------------------------------------- */

void manual_write_command(const struct manual_page *page, struct buf *out) {
    struct help_text text = help_text_read(page->help);
    put_begin(page->name, "1", page->what, out);
    put_heading("SH", STR("SYNOPSIS"), out);
    put_kept(text.usage, out);
    put_heading("SH", STR("DESCRIPTION"), out);
    put_body(text.body.len ? text.body : page->what, out);
    if (text.settings.len) {
        put_heading("SH", STR("SETTINGS"), out);
        if (page->settings_apart) {
            manual_put_line(
                STR("Every setting is a flag and a variable of the environment too."), out);
            manual_put_line(
                STR("weir.yaml(5) lists them. Flags beat the environment, and it beats "
                    "the file."),
                out);
        } else {
            put_kept(text.settings, out);
        }
    }
    buf_append(out, STR(".SH \"SEE ALSO\"\n.BR weir (1),\n.BR weir.yaml (5)\n"));
}

void manual_write_overview(struct str help, struct buf *out) {
    struct str line, what, meaning;
    bool listed = false;
    put_begin(STR("weir"), "1", STR("run AI agents and serve them in every wire contract"),
              out);
    buf_append(out, STR(".SH SYNOPSIS\n.B weir\n[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]\n"
                        ".SH DESCRIPTION\n"));
    while (help_text_line(&help, &line)) {
        if (help_text_entry(line, &what, &meaning)) {
            if (!listed) put_heading("SH", STR("COMMANDS"), out);
            listed = true;
            buf_append(out, STR(".TP\n.B "));
            manual_put_line(what, out);
            manual_put_line(meaning, out);
        } else if (line.len) {
            if (listed) put_heading("SH", STR("EXIT STATUS"), out);
            manual_put_line(line, out);
        }
    }
    buf_append(out, STR(".SH FILES\n.TP\n.I weir.yaml\nthe settings; see\n"
                        ".BR weir.yaml (5)\n.SH \"SEE ALSO\"\n.BR weir.yaml (5),\n"
                        ".BR weir\\-serve (1)\n"));
}

/* --- the page of settings ----------------------------------------------------------------- */

/* "| `key` | `--flag` | `NAME` | default | meaning |" */
static size_t read_cells(struct str line, struct str ret[static CELLS_MAX]) {
    size_t count = 0;
    line = str_skip(line, 1);
    while (count < CELLS_MAX && str_trim(line).len) {
        size_t end = str_find(line, STR(" |"));
        ret[count++] = str_trim(str_head(line, end));
        line = end < line.len ? str_skip(line, end + 2) : STR_EMPTY;
    }
    return count;
}

static bool is_heading_row(const struct str *cells, struct str line) {
    return str_starts(line, STR("|-")) || str_equal(cells[0], STR("key")) ||
           str_equal(cells[0], STR("file key"));
}

/* What stands before a cell between the first and the last. Three cells are an entry of a list:
 * key, form, meaning. Others are a setting. */
static struct str before_cell(size_t index, size_t count, bool first) {
    if (count == 3) return STR("value: ");
    if (first) return STR_EMPTY;
    return index == 3 ? STR("; default ") : STR("; ");
}

static void manual_put_row(const struct str *cells, size_t count, struct buf *out) {
    bool first = true;
    buf_append(out, STR(".TP\n.B "));
    manual_put_line(cells[0], out);
    manual_put_line(cells[count - 1], out);
    for (size_t i = 1; i + 1 < count; i++) {
        if (!cells[i].len) continue;
        if (first) buf_append(out, STR(".br\n"));
        buf_append(out, before_cell(i, count, first));
        manual_put_text(cells[i], out);
        first = false;
    }
    if (!first) buf_append_byte(out, '\n');
}

void manual_write_settings(struct str tables, struct buf *out) {
    struct str line, cells[CELLS_MAX] = {STR_EMPTY};
    put_begin(STR("weir.yaml"), "5", STR("settings of weir"), out);
    buf_append(
        out, STR(".SH DESCRIPTION\nweir reads its settings from a YAML file, from the "
                 "environment and from flags.\nFlags beat the environment, and it beats "
                 "the file. A dot in a key is a mapping\ninside another: listen.http is "
                 "http under listen.\nA setting marked (*start*) counts when weir starts, the "
                 "others also when it reads\nthe file again.\nThe command\n.B weir "
                 "config check\nfinds every mistake in a file.\n"));
    while (help_text_line(&tables, &line)) {
        if (str_starts(line, STR("### "))) {
            put_heading("SH", str_skip(line, 4), out);
        } else if (str_starts(line, STR("|"))) {
            size_t count = read_cells(line, cells);
            if (count >= 2 && !is_heading_row(cells, line)) manual_put_row(cells, count, out);
        }
    }
    buf_append(out, STR(".SH \"SEE ALSO\"\n.BR weir (1),\n.BR weir\\-config (1)\n"));
}
