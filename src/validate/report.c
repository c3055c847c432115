#include "validate/report.h"

#include "base/clock.h"

#include <stdlib.h>
#include <unistd.h>

static const struct {
    struct str name;
    const struct report_writer *writer;
} formats[REPORT_FORMAT_COUNT] = {
    [REPORT_TEXT] = {STR_INIT("text"), &report_text},
    [REPORT_JSON] = {STR_INIT("json"), &report_json},
    [REPORT_JUNIT] = {STR_INIT("junit"), &report_junit},
    [REPORT_TAP] = {STR_INIT("tap"), &report_tap},
};

bool report_format_named(struct str name, enum report_format *ret) {
    for (size_t i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (!str_equal(formats[i].name, name)) continue;
        *ret = (enum report_format)i;
        return true;
    }
    return false;
}

static bool is_terminal(FILE *file) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes our environment */
    struct str terminal = str_from(getenv("TERM"));
    return isatty(fileno(file)) && terminal.len && !str_equal(terminal, STR("dumb"));
}

void report_begin(struct report *report, enum report_format format, struct str target,
                  bool strict) {
    *report = (struct report){.format = format,
                              .out = stdout,
                              .talk = stderr,
                              .target = target,
                              .strict = strict,
                              .began_ms = clock_mono_ms()};
    report->progress = is_terminal(stderr);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes our environment */
    report->color = is_terminal(stdout) && !getenv("NO_COLOR");
    buf_init(&report->kept, REPORT_MAX_BYTES);
    formats[format].writer->begin(report);
}

void report_end(struct report *report, const struct validate_result *result) {
    formats[report->format].writer->end(report, result);
    fflush(report->out);
    buf_done(&report->kept);
}

static void on_profile(const struct profile *profile, void *ctx) {
    struct report *report = ctx;
    report->profile = profile;
    formats[report->format].writer->profile(report);
}

static void on_check(const struct check *check, void *ctx) {
    struct report *report = ctx;
    if (report->progress) fprintf(report->talk, "%s ...\r", check->id);
}

static void on_finding(const struct finding *finding, void *ctx) {
    struct report *report = ctx;
    if (report->progress) fprintf(report->talk, "\x1b[2K\r");
    report->count++;
    formats[report->format].writer->finding(report, finding);
    fflush(report->out);
}

const struct report_sink report_sink = {on_profile, on_check, on_finding};
