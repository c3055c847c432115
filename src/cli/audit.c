#include "cli/cli.h"
#include "store/audit_scan.h"
#include "store/audit_verify.h"
#include "store/schema.h"
#include "wire/json.h"
#include "wire/moment.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "weir audit [list] [--limit N] [--workspace W] [--user U] [--domain D] [--operation O]\n"
    "                  [--since TIME] [--until TIME] [--json]\n"
    "weir audit verify [--head SEQ:HASH] [--json]\n"
    "weir audit export [--format ndjson|json] [--output FILE] [the filters of list]\n\n"
    "The audit log of the store in --data, which may be in use: list shows the newest "
    "records,\n"
    "export all of them, oldest first, up to the newest of when it began. verify looks at the\n"
    "whole log, says what is not as it was written, and prints its head; with the head of an\n"
    "earlier time it also finds an end that is gone. A TIME is 2026-01-31 or\n"
    "2026-01-31T12:00:00Z. Exit code 0: done, and whole; 1: not whole, or it cannot be read;\n"
    "2: wrong usage.\n";

#define LIST_COMMON 50
#define LINE_MAX_BYTES (64 * KIB)
#define HEX_BYTES (2 * (size_t)AUDIT_HASH_BYTES)

enum act { ACT_LIST, ACT_VERIFY, ACT_EXPORT };

struct audit_arguments {
    const char *limit, *workspace, *user, *domain, *operation, *since, *until, *head, *format,
        *output;
    size_t count;
    struct audit_filter filter;
    struct audit_seen seen;
};

/* --- the arguments ------------------------------------------------------------------------ */

static bool wrong(const char *flag, const char *value, const char *wanted) {
    fprintf(stderr, "weir: error: %s: '%s' is not %s\n", flag, value, wanted);
    return false;
}

static bool audit_take_time(const char *what, const char *value, int64_t *ret_ms) {
    char room[64];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct err e;
    int64_t unix_s;
    if (!value) return true;
    buf_append(&text, str_from(value));
    if (text.len == strlen("yyyy-mm-dd")) buf_append(&text, STR("T00:00:00Z"));
    if (!buf_ok(&text) || !moment_read(buf_str(&text), &unix_s, &e))
        return wrong(what, value, "a time; write 2026-01-31 or 2026-01-31T12:00:00Z");
    *ret_ms = unix_s * 1000;
    return true;
}

static bool take_hex(struct str text, uint8_t *ret, size_t len) {
    if (text.len != 2 * len) return false;
    for (size_t i = 0; i < text.len; i++) {
        size_t digit = str_find_byte(STR("0123456789abcdef"), text.at[i]);
        if (digit > 15) return false;
        ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] | digit : digit << 4);
    }
    return true;
}

static bool audit_take_head(struct audit_arguments *arguments) {
    struct str hash, seq = str_split(str_from(arguments->head), ':', &hash);
    if (!arguments->head) return true;
    if (str_to_u64(seq, &arguments->seen.seq) &&
        take_hex(hash, arguments->seen.hash, AUDIT_HASH_BYTES))
        return true;
    return wrong("--head", arguments->head, "SEQ:HASH, as weir audit verify prints it");
}

static bool take_limit(struct audit_arguments *arguments) {
    uint64_t limit = LIST_COMMON;
    if (arguments->limit && (!str_to_u64(str_from(arguments->limit), &limit) || !limit))
        return wrong("--limit", arguments->limit, "a number above 0");
    arguments->count = (size_t)limit;
    return true;
}

static void audit_take_text(struct audit_arguments *arguments, enum audit_text text,
                            const char *value) {
    if (value) arguments->filter.texts[text] = str_from(value);
}

static bool take_values(struct audit_arguments *arguments) {
    const char *format = arguments->format;
    audit_take_text(arguments, AUDIT_WORKSPACE, arguments->workspace);
    audit_take_text(arguments, AUDIT_USER, arguments->user);
    audit_take_text(arguments, AUDIT_DOMAIN, arguments->domain);
    audit_take_text(arguments, AUDIT_OPERATION, arguments->operation);
    if (format && strcmp(format, "ndjson") != 0 && strcmp(format, "json") != 0)
        return wrong("--format", format, "a format; it is ndjson or json");
    return audit_take_time("--since", arguments->since, &arguments->filter.from_ms) &&
           audit_take_time("--until", arguments->until, &arguments->filter.to_ms) &&
           take_limit(arguments) && audit_take_head(arguments);
}

/* --- the file ----------------------------------------------------------------------------- */

static bool open_log(const struct config *config, struct database *ret, struct err *e) {
    char path[PATH_MAX];
    int64_t version = 0;
    snprintf(path, sizeof(path), STR_FMT "/weir.db", STR_ARG(config->data));
    if (!database_open_reader(ret, path, e) || !schema_version(ret, &version, e)) return false;
    if (version == schema_newest) return true;
    return err_set(e, ERR_FAILED_PRECONDITION,
                   "store %s: an earlier weir wrote it; start this one once, then it has an "
                   "audit log",
                   path);
}

/* --- records ------------------------------------------------------------------------------ */

struct writing {
    FILE *to;
    bool array, table; /* else one object a line */
    size_t count, most;
};

static struct str shown(struct str text, char room[static 64]) {
    struct str cut = str_head(text, 60);
    for (size_t i = 0; i < cut.len; i++) {
        unsigned char c = (unsigned char)cut.at[i];
        room[i] = (char)(c < 0x20 || c == 0x7F ? ' ' : c);
    }
    return cut.len ? str_of(room, cut.len) : STR("-");
}

/* "#7  2026-03-01T12:00:00Z  runtime.run done  w  ada  crawbl  OK": one line. */
static void audit_write_line(const struct audit_record *record, FILE *to) {
    static const enum audit_text columns[] = {AUDIT_DOMAIN, AUDIT_OPERATION, AUDIT_WORKSPACE,
                                              AUDIT_USER,   AUDIT_CONTRACT,  AUDIT_CAPABILITY,
                                              AUDIT_REASON};
    char room[64];
    struct buf time = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    moment_put(&time, record->at_ms / 1000, 0);
    fprintf(to, "%6" PRIu64 "  " STR_FMT, record->seq, STR_ARG(buf_str(&time)));
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        char text[64];
        fprintf(to, "  " STR_FMT, STR_ARG(shown(record->texts[columns[i]], text)));
    }
    if (record->set[AUDIT_COUNT]) fprintf(to, "  x%" PRIu64, record->numbers[AUDIT_COUNT]);
    uint64_t outcome = record->numbers[AUDIT_OUTCOME];
    if (record->set[AUDIT_OUTCOME] && outcome < ERR_CODE_COUNT)
        fprintf(to, "  %s", err_kinds[outcome].name);
    fputc('\n', to);
}

static bool audit_write_record(const struct audit_record *record, void *ctx) {
    struct writing *writing = ctx;
    struct buf json;
    if (writing->array) fputs(writing->count ? ",\n" : "\n", writing->to);
    writing->count++;
    if (writing->table) {
        audit_write_line(record, writing->to);
    } else {
        buf_init(&json, LINE_MAX_BYTES);
        audit_record_json(record, &json);
        fprintf(writing->to, STR_FMT "%s", STR_ARG(buf_str(&json)), writing->array ? "" : "\n");
        buf_done(&json);
    }
    return writing->count < writing->most && !ferror(writing->to);
}

static bool write_pages(struct database *db, struct audit_query *query, struct writing *writing,
                        struct err *e) {
    struct audit_scanned scanned = {.end = false};
    query->limit = AUDIT_PAGE_MAX;
    while (!scanned.end && writing->count < writing->most && !ferror(writing->to)) {
        if (!audit_scan(db, query, audit_write_record, writing, &scanned, e)) return false;
        if (scanned.gap)
            return err_set(e, ERR_ABORTED,
                           "records were pruned before they were read; export again");
        if (query->order == AUDIT_OLDEST_FIRST && !query->last) {
            query->last = scanned.newest; /* what comes later is not part of this */
            if (!query->last) break;
        }
        query->cursor = scanned.cursor;
    }
    return true;
}

static int cli_audit_list(struct database *db, const struct audit_arguments *arguments,
                          bool as_json) {
    struct writing writing = {.to = stdout, .table = !as_json, .most = arguments->count};
    struct audit_query query = {.filter = arguments->filter, .order = AUDIT_NEWEST_FIRST};
    struct err e;
    return write_pages(db, &query, &writing, &e) ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

static bool audit_write_all(struct database *db, const struct audit_arguments *arguments,
                            FILE *to, struct err *e) {
    bool array = arguments->format && strcmp(arguments->format, "json") == 0;
    struct writing writing = {.to = to, .array = array, .most = SIZE_MAX};
    struct audit_query query = {.filter = arguments->filter, .order = AUDIT_OLDEST_FIRST};
    if (array) fputc('[', to);
    if (!write_pages(db, &query, &writing, e)) return false;
    if (array) fputs(writing.count ? "\n]\n" : "]\n", to);
    if (fflush(to) == 0 && !ferror(to)) return true;
    return err_set(e, ERR_UNAVAILABLE, "the export cannot be written: %s",
                   strerrordesc_np(errno));
}

static int export(struct database *db, const struct audit_arguments *arguments, bool as_json) {
    (void)as_json; /* --format says it */
    struct err e;
    FILE *to = arguments->output ? fopen(arguments->output, "we") : stdout;
    if (!to) {
        err_set(&e, ERR_UNAVAILABLE, "%s: %s", arguments->output, strerrordesc_np(errno));
        return cli_fail(EXIT_FAILED, &e);
    }
    bool ok = audit_write_all(db, arguments, to, &e);
    if (to != stdout && fclose(to) != 0 && ok)
        ok = err_set(&e, ERR_UNAVAILABLE, "%s: %s", arguments->output, strerrordesc_np(errno));
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* --- verify ------------------------------------------------------------------------------- */

struct report {
    bool as_json;
    size_t count;
};

static void write_fault(uint64_t seq, const char *text, void *ctx) {
    struct report *report = ctx;
    struct buf quoted;
    if (!report->as_json) {
        printf("record %" PRIu64 ": %s\n", seq, text);
        return;
    }
    buf_init(&quoted, LINE_MAX_BYTES);
    json_put_str(&quoted, str_from(text));
    printf("%s{\"seq\":%" PRIu64 ",\"what\":" STR_FMT "}", report->count++ ? "," : "", seq,
           STR_ARG(buf_str(&quoted)));
    buf_done(&quoted);
}

static void write_verdict(const struct audit_verdict *verdict, bool as_json) {
    char hex[HEX_BYTES + 1] = "";
    audit_hex(str_of(verdict->head.hash, AUDIT_HASH_BYTES), hex);
    if (as_json) {
        printf("],\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"blocks\":%" PRIu64
               ",\"bytes\":%" PRIu64 ",\"head\":\"%" PRIu64 ":%s\",\"whole\":%s}\n",
               verdict->first, verdict->last, verdict->blocks, verdict->bytes, verdict->last,
               hex, verdict->faults ? "false" : "true");
        return;
    }
    printf("records %" PRIu64 " to %" PRIu64 " in %" PRIu64 " blocks, %" PRIu64
           " bytes: %s\nhead %" PRIu64 ":%s\n",
           verdict->first, verdict->last, verdict->blocks, verdict->bytes,
           verdict->faults ? "not whole" : "whole", verdict->last, hex);
}

static int verify(struct database *db, const struct audit_arguments *arguments, bool as_json) {
    struct report report = {.as_json = as_json};
    struct audit_verdict verdict;
    struct err e;
    if (report.as_json) printf("{\"faults\":[");
    if (!audit_verify(db, arguments->head ? &arguments->seen : NULL, write_fault, &report,
                      &verdict, &e)) {
        if (report.as_json) printf("],\"whole\":false}\n");
        return cli_fail(EXIT_FAILED, &e);
    }
    write_verdict(&verdict, report.as_json);
    return verdict.faults ? EXIT_FAILED : EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------- */

static bool audit_fits(const struct asked *asked, void *ctx) {
    return cli_operands_fit(asked->config, 0, 0, NULL) && take_values(ctx);
}

static int audit_act(const struct asked *asked, void *ctx) {
    static int (*const acts[])(struct database *, const struct audit_arguments *, bool) = {
        [ACT_LIST] = cli_audit_list, [ACT_VERIFY] = verify, [ACT_EXPORT] = export};
    struct database db = {0};
    struct err e;
    int code = open_log(asked->config, &db, &e) ? acts[asked->act](&db, ctx, asked->json)
                                                : cli_fail(EXIT_FAILED, &e);
    database_close(&db);
    return code;
}

int command_audit(int arg_count, const char *const *args) {
    static const char *const acts[] = {
        [ACT_LIST] = "list", [ACT_VERIFY] = "verify", [ACT_EXPORT] = "export", NULL};
    struct audit_arguments arguments = {.limit = NULL};
    const struct argument_flag flags[] = {{.name = "limit", .value = &arguments.limit},
                                          {.name = "workspace", .value = &arguments.workspace},
                                          {.name = "user", .value = &arguments.user},
                                          {.name = "domain", .value = &arguments.domain},
                                          {.name = "operation", .value = &arguments.operation},
                                          {.name = "since", .value = &arguments.since},
                                          {.name = "until", .value = &arguments.until},
                                          {.name = "head", .value = &arguments.head},
                                          {.name = "format", .value = &arguments.format},
                                          {.name = "output", .value = &arguments.output},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .acts = acts,
                                      .flags = flags,
                                      .takes = TAKES_JSON,
                                      .fits = audit_fits,
                                      .act = audit_act};
    return cli_command(arg_count, args, &form, &arguments);
}
