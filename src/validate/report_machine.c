/* Reports for machines: JSON and JUnit's XML. */
#include "base/clock.h"
#include "validate/report.h"

static void keep_nothing(struct report *report) {
    (void)report;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static void member_if(struct json_writer *json, const char *key, struct str text) {
    if (text.len) json_member_str(json, key, text);
}

static void json_finding(struct report *report, const struct finding *finding) {
    const struct check *check = finding->check;
    struct json_writer json = json_writer(&report->kept);
    if (report->kept.len) buf_append_byte(&report->kept, ',');
    json_open_object(&json);
    json_member_str(&json, "id", str_from(check->id));
    json_member_str(&json, "profile", str_from(report->profile->name));
    json_member_str(&json, "verdict", str_from(verdict_name(finding->verdict)));
    json_member_str(&json, "title", str_from(check->title));
    json_member_str(&json, "level", str_from(level_name(check->level)));
    member_if(&json, "word", str_from(word_name(check->word)));
    json_member_u64(&json, "took_ms", finding->took_ms);
    member_if(&json, "why", buf_str(&finding->why));
    member_if(&json, "sent", buf_str(&finding->sent));
    member_if(&json, "seen", buf_str(&finding->seen));
    json_member_str(&json, "clause", str_from(check->clause));
    json_member_str(&json, "fix", str_from(check->fix));
    json_close(&json);
}

static void json_end(struct report *report, const struct validate_result *result) {
    struct buf out;
    buf_init(&out, REPORT_MAX_BYTES + 64 * KIB);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    json_member_str(&json, "target", report->target);
    json_member_bool(&json, "strict", report->strict);
    json_member_bool(&json, "reached", !result->unreachable);
    if (result->unreachable) json_member_str(&json, "why", err_text(&result->why));
    json_member_bool(&json, "good", !result->unreachable && !result->verdicts[VERDICT_FAIL]);
    for (size_t i = 0; i < VERDICT_COUNT; i++)
        json_member_u64(&json, verdict_name((enum verdict)i), result->verdicts[i]);
    json_member_u64(&json, "took_ms", clock_mono_ms() - report->began_ms);
    json_member_array(&json, "checks");
    if (report->kept.len) json_write_raw(&json, buf_str(&report->kept));
    json_close(&json);
    json_close(&json);
    fprintf(report->out, STR_FMT "\n", STR_ARG(buf_str(&out)));
    buf_done(&out);
}

const struct report_writer report_json = {keep_nothing, keep_nothing, json_finding, json_end};

/* --- JUnit --------------------------------------------------------------------------------------- */

/* Text of XML 1.0. The texts of findings are valid UTF-8 without control bytes but '\n' and
 * '\t'; U+FFFE and U+FFFF, which XML does not allow either, become U+FFFD. */
static void put_xml(struct buf *out, struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        struct str rest = str_skip(text, i);
        if (str_starts(rest, STR("\xef\xbf\xbe")) || str_starts(rest, STR("\xef\xbf\xbf"))) {
            buf_append(out, STR("\xef\xbf\xbd"));
            i += 2;
            continue;
        }
        switch (text.at[i]) {
        case '<': buf_append(out, STR("&lt;")); break;
        case '>': buf_append(out, STR("&gt;")); break;
        case '&': buf_append(out, STR("&amp;")); break;
        case '"': buf_append(out, STR("&quot;")); break;
        default: buf_append_byte(out, text.at[i]);
        }
    }
}

static void put_attribute(struct buf *out, const char *name, struct str text) {
    buf_printf(out, " %s=\"", name);
    put_xml(out, text);
    buf_append_byte(out, '"');
}

static void put_detail(struct buf *out, const char *label, struct str text) {
    if (text.len == 0) return;
    buf_printf(out, "%s: ", label);
    put_xml(out, text);
    buf_append_byte(out, '\n');
}

static void junit_finding(struct report *report, const struct finding *finding) {
    struct buf *out = &report->kept;
    const struct check *check = finding->check;
    buf_printf(out, "<testcase time=\"%llu.%03llu\"",
               (unsigned long long)(finding->took_ms / 1000),
               (unsigned long long)(finding->took_ms % 1000));
    put_attribute(out, "classname", str_from(report->profile->name));
    buf_printf(out, " name=\"%s ", check->id);
    put_xml(out, str_from(check->title));
    buf_append(out, STR("\">"));
    if (finding->verdict == VERDICT_SKIP) {
        buf_append(out, STR("<skipped"));
        put_attribute(out, "message", buf_str(&finding->why));
        buf_append(out, STR("/>"));
    } else if (finding->verdict != VERDICT_PASS) {
        bool failed = finding->verdict == VERDICT_FAIL;
        buf_append(out, failed ? STR("<failure") : STR("<system-out>warning: "));
        if (failed) put_attribute(out, "message", buf_str(&finding->why));
        if (failed) buf_append_byte(out, '>');
        put_detail(out, "why", buf_str(&finding->why));
        put_detail(out, "sent", buf_str(&finding->sent));
        put_detail(out, "seen", buf_str(&finding->seen));
        put_detail(out, "clause", str_from(check->clause));
        put_detail(out, "fix", str_from(check->fix));
        buf_append(out, failed ? STR("</failure>") : STR("</system-out>"));
    }
    buf_append(out, STR("</testcase>\n"));
}

static void junit_end(struct report *report, const struct validate_result *result) {
    struct buf name;
    uint64_t took_ms = clock_mono_ms() - report->began_ms;
    buf_init(&name, 64 * KIB);
    put_attribute(&name, "name", report->target);
    fprintf(
        report->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite" STR_FMT
        " tests=\"%zu\" failures=\"%zu\" errors=\"%d\" skipped=\"%zu\" time=\"%llu.%03llu\">\n",
        STR_ARG(buf_str(&name)), report->count + result->unreachable,
        result->verdicts[VERDICT_FAIL], result->unreachable, result->verdicts[VERDICT_SKIP],
        (unsigned long long)(took_ms / 1000), (unsigned long long)(took_ms % 1000));
    if (result->unreachable) {
        buf_clear(&name);
        put_attribute(&name, "message", err_text(&result->why));
        fprintf(report->out,
                "<testcase classname=\"target\" name=\"reached\"><error" STR_FMT
                "/></testcase>\n",
                STR_ARG(buf_str(&name)));
    }
    fprintf(report->out, STR_FMT "</testsuite>\n", STR_ARG(buf_str(&report->kept)));
    buf_done(&name);
}

const struct report_writer report_junit = {keep_nothing, keep_nothing, junit_finding,
                                           junit_end};
