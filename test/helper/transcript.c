#include "helper/transcript.h"

#include "helper/assert_str.h"
#include "helper/reply_heard.h"

#include "base/file.h"
#include "wire/json.h"

#include <dirent.h>
#include <stdio.h>

#define RECORD_MAX_BYTES (4 * MIB)
#define EVENT_MAX_BYTES (4 * MIB)

/* A replay is cut at so many places, far from each other: every byte gets its turn, and a
 * transcript costs an eighth of what it would with one cut a replay. */
#define CUTS_AT_ONCE 8

/* --- what is heard ------------------------------------------------------------------------ */

struct hearing {
    const struct dialect *dialect;
    struct reply *reply;
    struct buf *out;
    bool over;
    bool forgets; /* each event is read in the general way, not as one like that before it */
    size_t callbacks;
    size_t stop_at; /* the callback that stops the reply, counted from 1; 0: none */
};

static const char *const forms[REPLY_KIND_COUNT] = {
    [REPLY_TEXT] = "text $q\n",
    [REPLY_THINKING] = "thinking $q\n",
    [REPLY_TOOL_CALL] = "call $i $n $a\n",
    [REPLY_OPAQUE] = "opaque $n $t\n",
    [REPLY_USAGE] =
        "usage $n prompt=$p completion=$c total=$s tool_use=$u thoughts=$h cached=$k\n",
};

static void write_caches(struct buf *out, const struct event_usage *usage) {
    if (usage->cache_write <= 0 && usage->cache_write_hour <= 0) return;
    out->len--; /* the same line goes on */
    buf_printf(out, " cache_write=%lld cache_write_hour=%lld\n", (long long)usage->cache_write,
               (long long)usage->cache_write_hour);
}

/* The other kinds are remote's business: a dialect reports none of them. */
static void on_reply(const struct reply_event *event, void *ctx) {
    struct hearing *hearing = ctx;
    struct reply_event shown = *event;
    assert_false(hearing->reply->stopped);
    assert_non_null(forms[event->kind]);
    if (event->kind == REPLY_TEXT || event->kind == REPLY_THINKING)
        assert_true(event->text.len > 0);
    if (event->kind == REPLY_OPAQUE) assert_str(event->dialect, hearing->dialect->name);
    if (event->call_id.len == 0) shown.call_id = STR("-");
    reply_heard(hearing->out, forms, &shown);
    if (event->kind == REPLY_USAGE) write_caches(hearing->out, event->usage);
    if (++hearing->callbacks == hearing->stop_at) hearing->reply->stopped = true;
}

static void on_event(const struct sse_event *event, void *ctx) {
    struct hearing *hearing = ctx;
    if (hearing->over || hearing->reply->stopped) return;
    if (hearing->forgets) json_template_forget(&hearing->reply->like);
    if (!hearing->dialect->reader->feed(hearing->reply, event)) hearing->over = true;
}

static void feed(struct sse *sse, struct str piece) {
    struct err e;
    struct str copy = exact_copy(piece);
    assert_true(sse_feed(sse, copy, &e));
    free((void *)copy.at);
}

static void write_outcome(struct hearing *hearing, enum reply_outcome outcome,
                          struct str model) {
    if (outcome != OUTCOME_FAILED) {
        buf_append(hearing->out, outcome == OUTCOME_CUT ? STR("cut ") : STR("done "));
        buf_append(hearing->out, model);
        buf_append_byte(hearing->out, '\n');
        return;
    }
    const struct reply_failure *failure = &hearing->reply->failure;
    assert_non_null(failure->reason);
    assert_int_not_equal(failure->why.code, ERR_NONE);
    buf_printf(hearing->out, "failed %s ", failure->reason);
    buf_append(hearing->out, err_name(failure->why.code));
    buf_append_byte(hearing->out, ' ');
    json_put_str(hearing->out, err_text(&failure->why));
    buf_append_byte(hearing->out, '\n');
}

/* --- one replay --------------------------------------------------------------------------- */

/* Fed up to `cut`, then from there in pieces of `piece`. */
static enum reply_outcome replay(struct hearing *hearing, struct str stream, size_t cut,
                                 size_t piece) {
    struct str model = STR_EMPTY;
    enum reply_outcome outcome = OUTCOME_FAILED;
    struct sse *sse = sse_new(EVENT_MAX_BYTES, on_event, hearing);
    hearing->reply = hearing->dialect->reader->begin(on_reply, hearing);
    if (cut) feed(sse, str_head(stream, cut));
    for (struct str rest = str_skip(stream, cut); rest.len; rest = str_skip(rest, piece))
        feed(sse, str_head(rest, piece));
    if (!hearing->over) outcome = hearing->dialect->reader->end(hearing->reply, &model);
    if (hearing->stop_at == 0) write_outcome(hearing, outcome, model);
    hearing->dialect->reader->free(hearing->reply);
    sse_free(sse);
    return outcome;
}

void transcript_record(const struct dialect *dialect, struct str stream, size_t piece,
                       struct buf *out) {
    struct hearing hearing = {.dialect = dialect, .out = out};
    replay(&hearing, stream, 0, piece);
}

void transcript_read(const struct dialect *dialect, struct str answer, struct buf *out) {
    struct hearing hearing = {.dialect = dialect, .out = out};
    struct str model = STR_EMPTY, copy = exact_copy(answer);
    struct json json;
    struct err e;
    assert_true(json_read(copy, &json, &e));
    hearing.reply = dialect->reader->begin(on_reply, &hearing);
    enum reply_outcome outcome = OUTCOME_FAILED;
    if (dialect->reader->read(hearing.reply, json))
        outcome = dialect->reader->end(hearing.reply, &model);
    write_outcome(&hearing, outcome, model);
    dialect->reader->free(hearing.reply);
    free((void *)copy.at);
}

/* --- the same events, written otherwise --------------------------------------------------- */

static void as_it_is(struct str stream, struct buf *out) {
    buf_append(out, stream);
}

static void with_breaks(struct str stream, struct str line_break, struct buf *out) {
    for (size_t i = 0; i < stream.len; i++) {
        if (stream.at[i] == '\n') {
            buf_append(out, line_break);
        } else {
            buf_append_byte(out, stream.at[i]);
        }
    }
}

static void with_crlf(struct str stream, struct buf *out) {
    with_breaks(stream, STR("\r\n"), out);
}

static void with_cr(struct str stream, struct buf *out) {
    with_breaks(stream, STR("\r"), out);
}

static void behind_a_mark(struct str stream, struct buf *out) {
    buf_append(out, STR("\xEF\xBB\xBF"));
    buf_append(out, stream);
}

static void between_comments(struct str stream, struct buf *out) {
    buf_append(out, STR(": hello\n\n"));
    with_breaks(stream, STR("\n: still here\n"), out);
}

/* JSON may break its line after each comma outside of strings. */
static void on_many_lines(struct str stream, struct buf *out) {
    while (stream.len) {
        size_t end = str_find_byte(stream, '\n');
        struct str line = str_head(stream, end);
        bool data = str_starts(line, STR("data: {")), quoted = false;
        for (size_t i = 0; i < line.len; i++) {
            buf_append_byte(out, line.at[i]);
            if (quoted && line.at[i] == '\\' && i + 1 < line.len) {
                buf_append_byte(out, line.at[++i]);
            } else if (line.at[i] == '"') {
                quoted = !quoted;
            } else if (data && !quoted && line.at[i] == ',') {
                buf_append(out, STR("\ndata: "));
            }
        }
        buf_append(out, str_head(str_skip(stream, end), 1));
        stream = str_skip(stream, end + 1);
    }
}

static const struct {
    const char *name;
    void (*write)(struct str stream, struct buf *out);
} spellings[] = {
    {"as it is", as_it_is},
    {"with CRLF", with_crlf},
    {"with CR", with_cr},
    {"behind a byte order mark", behind_a_mark},
    {"between comments", between_comments},
    {"on many lines", on_many_lines},
};

/* --- one transcript ----------------------------------------------------------------------- */

struct transcript {
    const struct dialect *dialect;
    const char *name;
    struct str input, expect;
};

static void assert_heard(const struct transcript *transcript, const char *spelling,
                         struct str stream, size_t cut, size_t piece) {
    struct buf out;
    buf_init(&out, RECORD_MAX_BYTES);
    struct hearing hearing = {.dialect = transcript->dialect, .out = &out};
    replay(&hearing, stream, cut, piece);
    if (!str_equal(buf_str(&out), transcript->expect)) {
        print_error("%s, %s, cut at %zu of %zu:\n" STR_FMT "expected\n" STR_FMT,
                    transcript->name, spelling, cut, stream.len, STR_ARG(buf_str(&out)),
                    STR_ARG(transcript->expect));
        fail();
    }
    buf_done(&out);
}

static void replay_cut_anywhere(const struct transcript *transcript) {
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        struct buf stream;
        buf_init(&stream, RECORD_MAX_BYTES);
        spellings[i].write(transcript->input, &stream);
        size_t piece = stream.len / CUTS_AT_ONCE + 1;
        for (size_t cut = 0; cut < piece; cut++)
            assert_heard(transcript, spellings[i].name, buf_str(&stream), cut, piece);
        assert_heard(transcript, spellings[i].name, buf_str(&stream), 0, 1);
        buf_done(&stream);
    }
}

/* on_reply() fails when a callback comes after the one that stopped. */
static void replay_stopped_anywhere(const struct transcript *transcript) {
    bool stopped = true;
    for (size_t at = 1; stopped; at++) {
        struct buf out;
        buf_init(&out, RECORD_MAX_BYTES);
        struct hearing hearing = {.dialect = transcript->dialect, .out = &out, .stop_at = at};
        replay(&hearing, transcript->input, 0, RECORD_MAX_BYTES);
        stopped = hearing.callbacks >= at;
        buf_done(&out);
    }
}

/* Whether the first `len` bytes are a complete answer. */
static bool completes(const struct transcript *transcript, size_t len) {
    struct buf out;
    buf_init(&out, RECORD_MAX_BYTES);
    struct hearing hearing = {.dialect = transcript->dialect, .out = &out};
    struct str part = str_head(transcript->input, len);
    bool complete = replay(&hearing, part, 0, RECORD_MAX_BYTES) != OUTCOME_FAILED;
    buf_done(&out);
    return complete;
}

/* Nothing is never an answer; of a good answer, once there is enough of it, more is not less.
 */
static void replay_truncated_anywhere(const struct transcript *transcript) {
    assert_false(completes(transcript, 0));
    if (!completes(transcript, transcript->input.len)) return;
    bool complete = false;
    for (size_t len = 0; len <= transcript->input.len; len++) {
        bool now = completes(transcript, len);
        if (complete && !now) print_error("%s: cut off at %zu\n", transcript->name, len);
        assert_false(complete && !now);
        complete = now;
    }
}

/* --- events that are nearly like the one before ------------------------------------------- */

/* Of each transcript. Of all dialects these are more than 100,000 streams. */
#define CHANGED_STREAMS 700
#define COPIES_MAX 3

static uint64_t throw_dice(uint64_t *dice) {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    return *dice ^= *dice << 17;
}

/* An event of the stream from its data on, with the blank line after it. */
static struct str pick_event(struct str stream, uint64_t *dice) {
    struct str rest = str_skip(stream, throw_dice(dice) % stream.len);
    size_t at = str_find(rest, STR("data:"));
    if (at == rest.len) rest = stream, at = str_find(stream, STR("data:"));
    rest = str_skip(rest, at);
    return str_head(rest, str_find(rest, STR("\n\n")) + 2);
}

/* One byte of it becomes another, or goes, or gets one in front. */
static void put_changed(struct str event, uint64_t *dice, struct buf *out) {
    static const char bytes[] = "\"\\\\{}[],:0123456789.eE+-ntfu abc\x80\xC3\xA9\xF0\x01\n";
    size_t at = throw_dice(dice) % event.len;
    uint64_t how = throw_dice(dice) % 4; /* 0: as it is */
    buf_append(out, str_head(event, at));
    if (how == 1 || how == 2)
        buf_append_byte(out, bytes[throw_dice(dice) % (sizeof(bytes) - 1)]);
    buf_append(out, str_skip(event, at + (how == 2 || how == 3)));
}

static void put_stream(struct str stream, uint64_t *dice, struct buf *out) {
    struct str event = pick_event(stream, dice);
    if (event.len == 0) return;
    size_t after = (size_t)(event.at - stream.at) + event.len;
    buf_append(out, str_head(stream, after));
    for (uint64_t copies = throw_dice(dice) % COPIES_MAX + 1; copies; copies--)
        put_changed(event, dice, out);
    buf_append(out, str_skip(stream, after));
}

/* An event that is taken like the one before says the same as one that is read. */
static void replay_changed(const struct transcript *transcript) {
    uint64_t dice = UINT64_C(88172645463325252);
    struct buf stream, read, taken;
    buf_init(&stream, RECORD_MAX_BYTES);
    buf_init(&read, RECORD_MAX_BYTES);
    buf_init(&taken, RECORD_MAX_BYTES);
    for (size_t i = 0; i < CHANGED_STREAMS && transcript->input.len; i++) {
        buf_clear(&stream);
        buf_clear(&read);
        buf_clear(&taken);
        put_stream(transcript->input, &dice, &stream);
        struct hearing reading = {
            .dialect = transcript->dialect, .out = &read, .forgets = true};
        struct hearing taking = {.dialect = transcript->dialect, .out = &taken};
        replay(&reading, buf_str(&stream), 0, RECORD_MAX_BYTES);
        replay(&taking, buf_str(&stream), 0, RECORD_MAX_BYTES);
        if (!str_equal(buf_str(&taken), buf_str(&read))) {
            print_error("%s, changed to\n" STR_FMT "taken as\n" STR_FMT "read as\n" STR_FMT,
                        transcript->name, STR_ARG(buf_str(&stream)), STR_ARG(buf_str(&taken)),
                        STR_ARG(buf_str(&read)));
            fail();
        }
    }
    buf_done(&stream);
    buf_done(&read);
    buf_done(&taken);
}

static struct str read_part(const char *folder, const char *name, const char *part,
                            struct buf *out) {
    char path[512];
    struct err e;
    int len = snprintf(path, sizeof path, "%s/%s/%s", folder, name, part);
    assert_true(len > 0 && (size_t)len < sizeof path);
    buf_init(out, RECORD_MAX_BYTES);
    if (!file_read(str_from(path), out, &e)) {
        print_error("%s\n", e.text);
        fail();
    }
    return buf_str(out);
}

static void replay_folder(const struct dialect *dialect, const char *folder, const char *name) {
    struct buf input, expect;
    struct transcript transcript = {.dialect = dialect, .name = name};
    transcript.input = read_part(folder, name, "input", &input);
    transcript.expect = read_part(folder, name, "expect", &expect);
    replay_cut_anywhere(&transcript);
    replay_stopped_anywhere(&transcript);
    replay_truncated_anywhere(&transcript);
    replay_changed(&transcript);
    buf_done(&input);
    buf_done(&expect);
}

void transcripts_replay(const struct dialect *dialect, const char *folder) {
    struct dirent **entries;
    size_t seen = 0;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) print_error("no transcripts in %s\n", folder);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            replay_folder(dialect, folder, entries[i]->d_name);
            seen++;
        }
        free(entries[i]);
    }
    free(entries);
    assert_true(seen > 0);
}
