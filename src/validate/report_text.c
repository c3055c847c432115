/* Reports for people, and TAP. */
#include "base/clock.h"
#include "text/terminal_text.h"
#include "validate/report.h"

static const char *const colors[VERDICT_COUNT] = {
    [VERDICT_PASS] = "\x1b[32m",
    [VERDICT_FAIL] = "\x1b[31m",
    [VERDICT_WARN] = "\x1b[33m",
    [VERDICT_SKIP] = "\x1b[2m",
};

/* What a server said, on one line. */
static void put_line(FILE *out, struct str text) {
    struct buf shown;
    buf_init(&shown, 4 * text.len + KIB);
    terminal_text_append(&shown, text, TERMINAL_ONE_LINE);
    if (shown.len) fwrite(shown.at, 1, shown.len, out);
    fputc('\n', out);
    buf_done(&shown);
}

static void print_indented(FILE *out, const char *label, struct str text) {
    const char *before = label;
    text = str_trim(text);
    while (text.len) {
        struct str line = str_split(text, '\n', &text);
        fprintf(out, "        %-6s  ", before);
        put_line(out, line);
        before = "";
    }
}

static bool is_bad(const struct finding *finding) {
    return finding->verdict == VERDICT_FAIL || finding->verdict == VERDICT_WARN;
}

/* --- text --------------------------------------------------------------------------------------- */

static void text_begin(struct report *report) {
    fprintf(report->out, "weir validate " STR_FMT "%s\n", STR_ARG(report->target),
            report->strict ? " --strict" : "");
}

static void text_profile(struct report *report) {
    fprintf(report->out, "profile %s: %s\n", report->profile->name, report->profile->against);
}

static void text_finding(struct report *report, const struct finding *finding) {
    FILE *out = report->out;
    const struct check *check = finding->check;
    const char *color = report->color ? colors[finding->verdict] : "";
    bool skipped = finding->verdict == VERDICT_SKIP;
    fprintf(out, "%s%s%s  %-8s  %s%s", color, verdict_name(finding->verdict),
            report->color ? "\x1b[0m" : "", check->id, check->title, skipped ? ": " : "");
    put_line(out, skipped ? buf_str(&finding->why) : STR_EMPTY);
    if (!is_bad(finding)) return;
    print_indented(out, "why", buf_str(&finding->why));
    print_indented(out, "sent", buf_str(&finding->sent));
    print_indented(out, "seen", buf_str(&finding->seen));
    print_indented(out, "clause", str_from(check->clause));
    print_indented(out, "fix", str_from(check->fix));
}

static void text_end(struct report *report, const struct validate_result *result) {
    const size_t *verdicts = result->verdicts;
    if (result->unreachable) return; /* why is an error on stderr */
    fprintf(report->out,
            "%zu checks in %.1f s: %zu passed, %zu failed, %zu warned, %zu skipped\n",
            report->count, (double)(clock_mono_ms() - report->began_ms) / 1000,
            verdicts[VERDICT_PASS], verdicts[VERDICT_FAIL], verdicts[VERDICT_WARN],
            verdicts[VERDICT_SKIP]);
}

const struct report_writer report_text = {text_begin, text_profile, text_finding, text_end};

/* --- TAP ----------------------------------------------------------------------------------------- */

static void tap_begin(struct report *report) {
    fprintf(report->out, "TAP version 13\n# weir validate " STR_FMT "\n",
            STR_ARG(report->target));
}

static void tap_profile(struct report *report) {
    fprintf(report->out, "# profile %s\n", report->profile->name);
}

static void tap_put(FILE *out, const char *key, struct str text) {
    if (text.len == 0) return;
    fprintf(out, "  %s: |\n", key);
    while (text.len) {
        struct str line = str_split(text, '\n', &text);
        fprintf(out, "    ");
        put_line(out, line);
    }
}

/* A warning is a check that is not required: "not ok" with a TODO directive. */
static void tap_finding(struct report *report, const struct finding *finding) {
    FILE *out = report->out;
    enum verdict verdict = finding->verdict;
    struct str why = buf_str(&finding->why), first = str_split(why, '\n', &why);
    fprintf(out, "%sok %zu - %s %s", is_bad(finding) ? "not " : "", report->count,
            finding->check->id, finding->check->title);
    fputs(verdict == VERDICT_SKIP   ? " # SKIP "
          : verdict == VERDICT_WARN ? " # TODO a warning"
                                    : "",
          out);
    put_line(out, verdict == VERDICT_SKIP ? first : STR_EMPTY);
    if (!is_bad(finding)) return;
    fprintf(out, "  ---\n");
    tap_put(out, "why", buf_str(&finding->why));
    tap_put(out, "sent", buf_str(&finding->sent));
    tap_put(out, "seen", buf_str(&finding->seen));
    tap_put(out, "clause", str_from(finding->check->clause));
    tap_put(out, "fix", str_from(finding->check->fix));
    fprintf(out, "  ...\n");
}

static void tap_end(struct report *report, const struct validate_result *result) {
    if (result->unreachable) {
        struct str why = err_text(&result->why), first = str_split(why, '\n', &why);
        fprintf(report->out, "Bail out! ");
        put_line(report->out, first);
    } else {
        fprintf(report->out, "1..%zu\n", report->count);
    }
}

const struct report_writer report_tap = {tap_begin, tap_profile, tap_finding, tap_end};

/* --- the table of checks --------------------------------------------------------------------------- */

void report_list(FILE *out, const struct profile *named) {
    for (size_t p = 0; profiles[p]; p++) {
        const struct profile *profile = profiles[p];
        if (named && profile != named) continue;
        fprintf(out, "profile %s: %s\n", profile->name, profile->against);
        for (size_t i = 0; i < profile->count; i++) {
            const struct check *check = &profile->checks[i];
            fprintf(out, "%-8s  %-8s  %-8s  %s\n", check->id, level_name(check->level),
                    *word_name(check->word) ? word_name(check->word) : "-", check->title);
        }
    }
}

static const char *const level_meanings[] = {
    [LEVEL_BASE] = "base: broken is a failure; a warning when the word is SHOULD",
    [LEVEL_STRICT] = "strict: broken is a warning; a failure with --strict",
    [LEVEL_ADVISORY] = "advisory: broken is a warning; a failure when the word is MUST",
};

void report_explain(FILE *out, const struct profile *profile, const struct check *check) {
    fprintf(out, "%s  %s\n\n", check->id, check->title);
    print_indented(out, "of", str_from(profile->against));
    print_indented(out, "clause", str_from(check->clause));
    print_indented(out, "word", str_from(word_name(check->word)));
    print_indented(out, "level", str_from(level_meanings[check->level]));
    if (check->proxied)
        print_indented(out, "proxy", STR("with --behind-proxy it warns at most"));
    print_indented(out, "fix", str_from(check->fix));
}
