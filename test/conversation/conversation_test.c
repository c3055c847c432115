/* The prompt that a model gets, for every course that a run can take. */
#include "conversation/conversation.h"

#include "base/mem.h"
#include "conversation/import.h"
#include "helper/assert_str.h"
#include "provider/dialect.h"

#define EVENTS_MAX 16

/* --- events ------------------------------------------------------------------------------- */

#define STARTED(words)                                                                         \
    {                                                                                          \
        .kind = EVENT_STARTED, .agent = STR_INIT("a"), .started = {.text = STR_INIT(words) }   \
    }
#define TEXT(words)                                                                            \
    {                                                                                          \
        .kind = EVENT_TEXT, .agent = STR_INIT("a"), .text = { STR_INIT(words) }                \
    }
#define CALL(id, name, spoken)                                                                 \
    {                                                                                          \
        .kind = EVENT_TOOL_CALL, .agent = STR_INIT("a"), .tool_call = {                        \
            .call_id = STR_INIT(id),                                                           \
            .tool = STR_INIT(name),                                                            \
            .args = STR_INIT("{}"),                                                            \
            .said = STR_INIT(spoken)                                                           \
        }                                                                                      \
    }
#define RESULT(id, json)                                                                       \
    {                                                                                          \
        .kind = EVENT_TOOL_RESULT, .agent = STR_INIT("a"), .tool_result = {                    \
            .call_id = STR_INIT(id),                                                           \
            .result = STR_INIT(json)                                                           \
        }                                                                                      \
    }
#define BROKEN(id, json)                                                                       \
    {                                                                                          \
        .kind = EVENT_TOOL_RESULT, .agent = STR_INIT("a"), .tool_result = {                    \
            .call_id = STR_INIT(id),                                                           \
            .result = STR_INIT(json),                                                          \
            .error = true                                                                      \
        }                                                                                      \
    }
#define QUESTION(id, spoken, guarded)                                                          \
    {                                                                                          \
        .kind = EVENT_APPROVAL, .agent = STR_INIT("a"), .approval = {                          \
            .call_id = STR_INIT(id),                                                           \
            .question = STR_INIT("May I?"),                                                    \
            .args = STR_INIT("{\"q\":1}"),                                                     \
            .guards = STR_INIT(guarded),                                                       \
            .said = STR_INIT(spoken)                                                           \
        }                                                                                      \
    }
#define ITEM(what, content)                                                                    \
    {                                                                                          \
        .kind = EVENT_ITEM, .agent = STR_INIT("a"), .item = {                                  \
            STR_INIT(what),                                                                    \
            STR_INIT(content)                                                                  \
        }                                                                                      \
    }
#define DONE(turns_)                                                                           \
    {                                                                                          \
        .kind = EVENT_DONE, .agent = STR_INIT("a"), .done = {.turns = STR_INIT(turns_) }       \
    }
#define FAILED(why, spoken)                                                                    \
    {                                                                                          \
        .kind = EVENT_FAILED, .agent = STR_INIT("a"), .failed = {                              \
            .code = ERR_UNAVAILABLE,                                                           \
            .reason = STR_INIT(why),                                                           \
            .said = STR_INIT(spoken)                                                           \
        }                                                                                      \
    }
#define CANCELLED(spoken)                                                                      \
    {                                                                                          \
        .kind = EVENT_CANCELLED, .agent = STR_INIT("a"), .cancelled = {                        \
            .said = STR_INIT(spoken)                                                           \
        }                                                                                      \
    }

/* --- folding ------------------------------------------------------------------------------ */

struct fold {
    struct arena *arena;
    struct conversation conversation;
    enum conversation_texts texts;
    struct str kept[EVENTS_MAX]; /* the events' bytes, where they stay */
    size_t count;
};

static void begin_within(struct fold *fold, enum conversation_texts texts, size_t arena_max,
                         size_t reply_max) {
    *fold = (struct fold){.arena = arena_new(arena_max), .texts = texts};
    conversation_init(&fold->conversation, fold->arena, reply_max);
}

static void begin(struct fold *fold, enum conversation_texts texts) {
    begin_within(fold, texts, MIB, MIB);
}

static void end(struct fold *fold) {
    conversation_done(&fold->conversation);
    arena_free(fold->arena);
    for (size_t i = 0; i < fold->count; i++) free((void *)(uintptr_t)fold->kept[i].at);
}

/* As it comes from a journal; where texts are lent its bytes are gone when it was applied. */
static bool apply(struct fold *fold, const struct event *event) {
    struct buf bytes;
    struct event decoded = {0};
    struct err e;
    buf_init(&bytes, MIB);
    assert_true(event_encode(event, &bytes));
    struct str copy = exact_copy(buf_str(&bytes)), rest = copy;
    buf_done(&bytes);
    assert_true(event_decode(&rest, &decoded, &e));
    bool taken = conversation_apply(&fold->conversation, &decoded, fold->texts);
    if (fold->texts == TEXTS_LENT) {
        free((void *)(uintptr_t)copy.at);
    } else {
        assert_true(fold->count < EVENTS_MAX);
        fold->kept[fold->count++] = copy;
    }
    return taken;
}

/* Messages as text: U user, S system, A agent, C call, R result, O opaque; > before the one
 * that this turn answers, ! behind one with `error`. */
static void write_messages(const struct conversation *c, struct buf *out) {
    static const char letters[] = {
        [MESSAGE_USER] = 'U',        [MESSAGE_AGENT] = 'A',  [MESSAGE_TOOL_CALL] = 'C',
        [MESSAGE_TOOL_RESULT] = 'R', [MESSAGE_OPAQUE] = 'O', [MESSAGE_SYSTEM] = 'S'};
    for (size_t i = 0; i < c->count; i++) {
        const struct message *message = &c->messages[i];
        buf_printf(out, "%s%c%s", i == c->turn_start ? ">" : "", letters[message->role],
                   message->error ? "!" : "");
        if (message->agent.len) buf_printf(out, "(" STR_FMT ")", STR_ARG(message->agent));
        if (message->call_id.len) buf_printf(out, " " STR_FMT, STR_ARG(message->call_id));
        if (message->tool.len) buf_printf(out, "=" STR_FMT, STR_ARG(message->tool));
        buf_printf(out, " " STR_FMT "|", STR_ARG(message->text));
    }
}

static void assert_messages(const struct conversation *c, const char *expected) {
    struct buf out;
    buf_init(&out, MIB);
    write_messages(c, &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

struct course {
    const char *name;
    struct event events[EVENTS_MAX]; /* up to the first of no kind */
    const char *read;
};

static void assert_courses(const struct course *courses, size_t count) {
    for (size_t i = 0; i < 2 * count; i++) {
        const struct course *course = &courses[i / 2];
        struct fold fold;
        struct buf out;
        begin(&fold, i % 2 ? TEXTS_KEPT : TEXTS_LENT);
        for (size_t at = 0; at < EVENTS_MAX && course->events[at].kind; at++)
            assert_true(apply(&fold, &course->events[at]));
        buf_init(&out, MIB);
        write_messages(&fold.conversation, &out);
        if (!str_equal(buf_str(&out), str_from(course->read)))
            fail_msg("%s: got '" STR_FMT "', expected '%s'", course->name,
                     STR_ARG(buf_str(&out)), course->read);
        buf_done(&out);
        end(&fold);
    }
}

/* --- what happens on the way -------------------------------------------------------------- */

static const struct course ways[] = {
    {"the caller's words", {STARTED("hi")}, ">U hi|"},
    {"a reply is not there before it ends", {STARTED("hi"), TEXT("he")}, ">U hi|"},
    {"one message for each reply",
     {STARTED("hi"), TEXT("let "), TEXT("me"), CALL("1", "t", ""), RESULT("1", "{\"r\":1}"),
      TEXT("done"), DONE("")},
     ">U hi|A(a) let me|C(a) 1=t {}|R(a) 1=t {\"r\":1}|A(a) done|"},
    {"what a call says is the whole of it, whatever streamed",
     {STARTED("hi"), TEXT("let"), CALL("1", "t", "let me")},
     ">U hi|A(a) let me|C(a) 1=t {}|"},
    {"and is there though nothing streamed",
     {STARTED("hi"), CALL("1", "t", "let me"), CALL("2", "t", "")},
     ">U hi|A(a) let me|C(a) 1=t {}|C(a) 2=t {}|"},
    {"blanks are no reply",
     {STARTED("hi"), TEXT(" \n"), CALL("1", "t", ""), RESULT("1", "{}"), TEXT("\n"), DONE("")},
     ">U hi|C(a) 1=t {}|R(a) 1=t {}|"},
    {"what is opaque stands before its reply",
     {STARTED("hi"), TEXT("let me"), CALL("1", "t", ""), CALL("2", "t", ""),
      ITEM(OPAQUE_ITEM "gemini", "one"), RESULT("2", "{}"), RESULT("1", "{}"),
      ITEM(OPAQUE_ITEM "gemini", "two"), TEXT("done"), DONE("")},
     ">U hi|O(a)=gemini one|A(a) let me|C(a) 1=t {}|C(a) 2=t {}|R(a) 2=t {}|R(a) 1=t {}|"
     "O(a)=gemini two|A(a) done|"},
    {"a result says whether it is an error",
     {STARTED("hi"), CALL("1", "t", ""), BROKEN("1", "{\"error\":1}")},
     ">U hi|C(a) 1=t {}|R!(a) 1=t {\"error\":1}|"},
    {"a result of no call is none",
     {STARTED("hi"), RESULT("1", "{}"), CALL("1", "t", "")},
     ">U hi|C(a) 1=t {}|"},
    {"a second result of one call is none",
     {STARTED("hi"), CALL("1", "t", ""), CALL("2", "t", ""), RESULT("1", "{}"),
      RESULT("1", "{\"r\":2}"), RESULT("2", "{}")},
     ">U hi|C(a) 1=t {}|C(a) 2=t {}|R(a) 1=t {}|R(a) 2=t {}|"},
    {"an id that is repeated within a reply is answered in the order of the calls",
     {STARTED("hi"), CALL("x", "t", ""), CALL("x", "u", ""), RESULT("x", "{\"r\":1}"),
      RESULT("x", "{\"r\":2}")},
     ">U hi|C(a) x=t {}|C(a) x=u {}|R(a) x=t {\"r\":1}|R(a) x=u {\"r\":2}|"},
    {"an id that a later reply repeats is that reply's",
     {STARTED("hi"), CALL("x", "t", ""), RESULT("x", "{}"), CALL("x", "u", ""),
      RESULT("x", "{}")},
     ">U hi|C(a) x=t {}|R(a) x=t {}|C(a) x=u {}|R(a) x=u {}|"},
    {"a human's question is a call, his answer its result and his words",
     {STARTED("hi"), TEXT("Hm. "), QUESTION("q", "Hm. ", ""),
      RESULT("q", "{\"answer\":\"go \\u00e9\"}"), TEXT("ok"), DONE("")},
     ">U hi|A(a) Hm. |C(a) q=" APPROVAL_TOOL " {\"q\":1}|R(a) q=" APPROVAL_TOOL
     " {\"answer\":\"go \\u00e9\"}|U go \xC3\xA9|A(a) ok|"},
    {"an answer without words is a result alone",
     {STARTED("hi"), QUESTION("q", "", ""), RESULT("q", "{\"decision\":\"approve\"}")},
     ">U hi|C(a) q=" APPROVAL_TOOL " {\"q\":1}|R(a) q=" APPROVAL_TOOL
     " {\"decision\":\"approve\"}|"},
    {"the word answer in a tool's result is nobody's",
     {STARTED("hi"), CALL("1", "t", ""), RESULT("1", "{\"answer\":\"x\"}")},
     ">U hi|C(a) 1=t {}|R(a) 1=t {\"answer\":\"x\"}|"},
    {"a question about a call is no call; what he changed is what was done",
     {STARTED("hi"), CALL("1", "t", ""), QUESTION("approve-1", "", "1"),
      RESULT("approve-1", "{\"decision\":\"edit\",\"args\":{\"x\":2}}"), RESULT("1", "{}")},
     ">U hi|C(a) 1=t {\"x\":2}|R(a) 1=t {}|"},
    {"a decision of two calls with one id is about the one that waits",
     {STARTED("hi"), CALL("x", "t", ""), CALL("x", "u", ""),
      RESULT("approve-x", "{\"args\":{\"x\":1}}"), RESULT("x", "{}"),
      RESULT("approve-x", "{\"args\":{\"x\":2}}"), RESULT("x", "{}")},
     ">U hi|C(a) x=t {\"x\":1}|C(a) x=u {\"x\":2}|R(a) x=t {}|R(a) x=u {}|"},
    {"a decision that changes nothing, is no JSON or is about no call",
     {STARTED("hi"), CALL("1", "t", ""), RESULT("approve-1", "{\"decision\":\"refuse\"}"),
      RESULT("approve-1", "{\"args\":5}"), RESULT("approve-1", "{"),
      RESULT("approve-2", "{\"args\":{}}")},
     ">U hi|C(a) 1=t {}|"},
    {"what a human said instead comes when no call is open",
     {STARTED("hi"), CALL("1", "t", ""), CALL("2", "t", ""), ITEM(ASIDE_ITEM, "wait"),
      RESULT("1", "{}"), ITEM(ASIDE_ITEM, "no, go"), RESULT("2", "{}"),
      ITEM(ASIDE_ITEM, "well")},
     ">U hi|C(a) 1=t {}|C(a) 2=t {}|R(a) 1=t {}|R(a) 2=t {}|U wait|U no, go|U well|"},
    {"an answer of the wrong shape and why",
     {STARTED("hi"), ITEM(REPAIR_ITEM, "\1a\3{5}\0\2no"), TEXT("{}"), DONE("\1a\2{}")},
     ">U hi|A(a) {5}|U no|A(a) {}|"},
    {"a blank answer was none",
     {STARTED("hi"), ITEM(REPAIR_ITEM, "\1a\1 \0\2no")},
     ">U hi|U no|"},
    {"a repair that cannot be read", {STARTED("hi"), ITEM(REPAIR_ITEM, "\1a")}, ">U hi|"},
    {"a summary stands for everything before the turn",
     {STARTED("hi"),
      ITEM(BROUGHT_ITEM, "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":\"agent\",\"text\":"
                         "\"b\"},{\"role\":\"user\",\"text\":\"c\"}]"),
      ITEM(SUMMARY_ITEM, "before"), ITEM(OPAQUE_ITEM "d", "o"), TEXT("d"), DONE("")},
     "U before|>U c|O(a)=d o|A(a) d|"},
    {"a list stands in the place of the words",
     {STARTED("c"),
      ITEM(BROUGHT_ITEM, "[{\"role\":\"system\",\"text\":\"s\"},{\"role\":\"user\",\"text\":"
                         "\"a\"},{\"role\":\"agent\",\"text\":\"b\"},{\"role\":\"user\","
                         "\"text\":\"c\"}]"),
      TEXT("d"), DONE("")},
     "S s|U a|A b|>U c|A(a) d|"},
    {"the turn answers its last user message",
     {STARTED(""),
      ITEM(BROUGHT_ITEM ";whole",
           "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":\"agent\",\"text\":\"{\"}]"),
      ITEM(OPAQUE_ITEM "d", "o")},
     ">U a|A {|O(a)=d o|"},
    {"an empty list and one that cannot be read leave the words",
     {STARTED("hi"), ITEM(BROUGHT_ITEM, "[]"), ITEM(BROUGHT_ITEM, "{"),
      ITEM(BROUGHT_ITEM, "[{\"role\":\"x\"}]")},
     ">U hi|"},
    {"what is for those who watch is not for the model",
     {STARTED("hi"),
      {.kind = EVENT_THINKING, .thinking = {STR_INIT("hm")}},
      {.kind = EVENT_STEP, .step = {.description = STR_INIT("s")}},
      {.kind = EVENT_AUDIO, .audio = {STR_INIT("audio/wav"), STR_INIT("w")}},
      {.kind = EVENT_USAGE},
      ITEM("application/vnd.other", "x")},
     ">U hi|"},
};

static void every_event_becomes_what_the_table_says(void **state) {
    (void)state;
    assert_courses(ways, ARRAY_LEN(ways));
}

/* --- the end ------------------------------------------------------------------------------ */

#define OUT                                                                                    \
    "{\"effect\":\"unknown\",\"error\":\"the turn ended while this call was out: it may or "   \
    "may not have had its effect. Find out before you call it again\"}"
#define FIRST "{\"effect\":\"none\",\"error\":\"the turn ended first: this call was not made\"}"
#define NOTE "[A message stood here. The model's provider refused it, so it is left out.]"

static const struct course endings[] = {
    {"well, with what streamed",
     {STARTED("hi"), TEXT("hel"), TEXT("lo"), DONE("\1a\5hello")},
     ">U hi|A(a) hello|"},
    {"well, read back without what streamed",
     {STARTED("hi"), TEXT("hel"), DONE("\1b\3one\1a\5hello")},
     ">U hi|A(a) hello|"},
    {"well, with nothing said", {STARTED("hi"), DONE("")}, ">U hi|"},
    {"failed, with nothing said", {STARTED("hi"), FAILED(PROVIDER_TIMEOUT, "")}, ">U! hi|"},
    {"failed in the middle of a reply",
     {STARTED("hi"), TEXT("hel"), FAILED(PROVIDER_TIMEOUT, "")},
     ">U! hi|A(a) hel|"},
    {"failed, read back without what streamed",
     {STARTED("hi"), FAILED(PROVIDER_TIMEOUT, "hel")},
     ">U! hi|A(a) hel|"},
    {"failed with calls out",
     {STARTED("hi"), CALL("1", "t", ""), CALL("2", "u", ""), RESULT("1", "{}"),
      ITEM(ASIDE_ITEM, "wait"), FAILED("TURN_TIMEOUT", "")},
     ">U! hi|C(a) 1=t {}|C(a) 2=u {}|R(a) 1=t {}|R!(a) 2=u " OUT "|U wait|"},
    {"failed with one id out twice",
     {STARTED("hi"), CALL("x", "t", ""), CALL("x", "u", ""), FAILED("TURN_TIMEOUT", "")},
     ">U! hi|C(a) x=t {}|C(a) x=u {}|R!(a) x=t " OUT "|R!(a) x=u " OUT "|"},
    {"cancelled while a human and another agent are asked",
     {STARTED("hi"), CALL("1", TRANSFER_TOOL, ""), QUESTION("2", "", ""), CANCELLED("")},
     ">U! hi|C(a) 1=" TRANSFER_TOOL " {}|C(a) 2=" APPROVAL_TOOL " {\"q\":1}|"
     "R!(a) 1=" TRANSFER_TOOL " " FIRST "|R!(a) 2=" APPROVAL_TOOL " " FIRST "|"},
    {"cancelled in the middle of a reply",
     {STARTED("hi"), TEXT("hel"), CANCELLED("hell")},
     ">U! hi|A(a) hell|"},
    {"a result that was brought is as good as it was in a turn that failed",
     {STARTED(""),
      ITEM(BROUGHT_ITEM, "[{\"role\":\"tool_result\",\"call_id\":\"1\",\"tool\":\"t\","
                         "\"text\":\"{}\"}]"),
      FAILED("GONE", "")},
     ">R 1=t {}|"},
    {"nothing follows an end",
     {STARTED("hi"), DONE(""), TEXT("more"), CALL("1", "t", "x"), ITEM(ASIDE_ITEM, "x"),
      ITEM(SUMMARY_ITEM, "x"), STARTED("x"), FAILED(PROVIDER_REJECTED, "x")},
     ">U hi|"},
    {"refused as a request", {STARTED("hi"), FAILED(PROVIDER_REJECTED, "")}, ">U! " NOTE "|"},
    {"refused with what it brought",
     {STARTED("b"),
      ITEM(BROUGHT_ITEM,
           "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":\"user\",\"text\":\"b\"}]"),
      FAILED(MODEL_CONTEXT, "")},
     ">U! " NOTE "|"},
    {"refused with a beginning of the reply that it brought",
     {STARTED(""),
      ITEM(BROUGHT_ITEM,
           "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":\"agent\",\"text\":\"{\"}]"),
      FAILED(MODEL_CANNOT_CARRY, "")},
     ">U! " NOTE "|"},
    {"refused with a result that it brought",
     {STARTED(""),
      ITEM(BROUGHT_ITEM,
           "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":\"tool_call\",\"call_id\":\"1\","
           "\"tool\":\"t\"},{\"role\":\"tool_result\",\"call_id\":\"1\",\"tool\":\"t\"}]"),
      FAILED(PROVIDER_REJECTED, "")},
     ">U! " NOTE "|"},
    {"refused after a summary, which stays",
     {STARTED("hi"), ITEM(SUMMARY_ITEM, "before"), FAILED(MODEL_CONTEXT, "")},
     "U before|>U! " NOTE "|"},
    {"refused after it had begun to answer",
     {STARTED("hi"), TEXT("hel"), FAILED(MODEL_REFUSED, "")},
     ">U! hi|A(a) hel|"},
    {"refused after it had called something",
     {STARTED("hi"), CALL("1", "t", ""), RESULT("1", "{}"), FAILED(PROVIDER_REJECTED, "")},
     ">U! hi|C(a) 1=t {}|R(a) 1=t {}|"},
    {"what is opaque is not an answer",
     {STARTED("hi"), ITEM(OPAQUE_ITEM "d", "o"), FAILED(MODEL_REFUSED, "")},
     ">U! " NOTE "|"},
};

static void every_ending_leaves_what_happened(void **state) {
    (void)state;
    assert_courses(endings, ARRAY_LEN(endings));
}

/* --- what came before --------------------------------------------------------------------- */

static void put_before(struct conversation *c) {
    struct message *before = conversation_precede(c, 2);
    before[0] = (struct message){.role = MESSAGE_USER, .text = STR("old")};
    before[1] = (struct message){.role = MESSAGE_AGENT, .text = STR("older")};
}

static void apply_all(struct fold *fold, const struct event *events, size_t count) {
    for (size_t i = 0; i < count; i++) assert_true(apply(fold, &events[i]));
}

static void what_came_before_stands_in_front_whenever_it_comes(void **state) {
    (void)state;
    static const struct event events[] = {STARTED("hi"), TEXT("x"), CALL("1", "t", ""),
                                          ITEM(OPAQUE_ITEM "d", "o"), FAILED("E", "")};
    for (size_t when = 0; when <= ARRAY_LEN(events); when++) {
        struct fold fold;
        struct conversation *c = &fold.conversation;
        begin(&fold, TEXTS_LENT);
        apply_all(&fold, events, when);
        put_before(c);
        apply_all(&fold, events + when, ARRAY_LEN(events) - when);
        assert_messages(c,
                        "U old|A older|>U! hi|O(a)=d o|A(a) x|C(a) 1=t {}|R!(a) 1=t " OUT "|");
        assert_int_equal(c->own_from, 2);
        assert_int_equal(c->brought_at, 2);
        end(&fold);
    }
}

static void a_call_that_came_before_is_not_this_run_s(void **state) {
    (void)state;
    static const struct event events[] = {STARTED("hi"), RESULT("x", "{}"), DONE("")};
    struct fold fold;
    begin(&fold, TEXTS_LENT);
    *conversation_precede(&fold.conversation, 1) =
        (struct message){.role = MESSAGE_TOOL_CALL, .call_id = STR("x"), .tool = STR("t")};
    assert_null(conversation_call(&fold.conversation, STR("x")));
    apply_all(&fold, events, ARRAY_LEN(events));
    assert_messages(&fold.conversation, "C x=t |>U hi|");
    end(&fold);
}

static void a_summary_of_the_session_is_the_run_s_own(void **state) {
    (void)state;
    static const struct event events[] = {STARTED("hi"), ITEM(SUMMARY_ITEM, "short"),
                                          CALL("1", "t", "so"), RESULT("1", "{}")};
    struct fold fold;
    begin(&fold, TEXTS_LENT);
    put_before(&fold.conversation);
    apply_all(&fold, events, ARRAY_LEN(events));
    assert_messages(&fold.conversation, "U short|>U hi|A(a) so|C(a) 1=t {}|R(a) 1=t {}|");
    assert_str(fold.conversation.messages[0].heard_by, "a"); /* who wrote it */
    assert_int_equal(fold.conversation.own_from, 0);
    assert_true(fold.conversation.starts_anew);
    end(&fold);
}

static void a_summary_of_the_view_is_not(void **state) {
    (void)state;
    static const struct event before[] = {STARTED("hi"), CALL("1", "t", "so")};
    static const struct event after[] = {ITEM(OPAQUE_ITEM "d", "o"), RESULT("1", "{}")};
    struct fold fold;
    begin(&fold, TEXTS_KEPT);
    put_before(&fold.conversation);
    apply_all(&fold, before, ARRAY_LEN(before));
    conversation_summarize(&fold.conversation, STR("short"), STR("a"), SUMMARY_OF_VIEW);
    apply_all(&fold, after, ARRAY_LEN(after));
    assert_messages(&fold.conversation,
                    "U short|>U hi|O(a)=d o|A(a) so|C(a) 1=t {}|R(a) 1=t {}|");
    assert_int_equal(fold.conversation.own_from, 1);
    assert_false(fold.conversation.starts_anew);
    end(&fold);
}

#define INSTRUCTIONS "[{\"role\":\"system\",\"text\":\"i\",\"instructions\":true}"
#define SAYS(text) "{\"role\":\"user\",\"text\":\"" text "\"}"

/* Whether the list is all there is, or goes on with what was before. */
static void a_summary_leaves_the_turn_its_instructions(void **state) {
    (void)state;
    static const struct {
        const char *type, *list, *read;
    } cases[] = {
        {BROUGHT_ITEM, INSTRUCTIONS "," SAYS("b") "]", "U short|S i|>U b|"},
        {BROUGHT_ITEM BROUGHT_ALL, INSTRUCTIONS "," SAYS("a") "," SAYS("b") "]",
         "U short|S i|>U b|"},
        {BROUGHT_ITEM, INSTRUCTIONS ",{\"role\":\"tool_result\",\"call_id\":\"1\"}]",
         "U short|C 1=t |S i|>R 1 |"},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct event brought = {
            .kind = EVENT_ITEM,
            .item = {str_from(cases[i / 2].type), str_from(cases[i / 2].list)}};
        static const struct event started = STARTED("b"), said = TEXT("so"), done = DONE("");
        struct fold fold;
        begin(&fold, TEXTS_KEPT);
        struct conversation *c = &fold.conversation;
        struct message *before = conversation_precede(c, 2);
        before[0] = (struct message){.role = MESSAGE_USER, .text = STR("old")};
        before[1] =
            (struct message){.role = MESSAGE_TOOL_CALL, .call_id = STR("1"), .tool = STR("t")};
        assert_true(apply(&fold, &started) && apply(&fold, &brought));
        conversation_summarize(c, STR("short"), STR("a"),
                               i % 2 ? SUMMARY_OF_SESSION : SUMMARY_OF_VIEW);
        assert_messages(c, cases[i / 2].read);
        assert_int_equal(c->own_from, i % 2 ? 0 : c->turn_start);
        assert_true(apply(&fold, &said) && apply(&fold, &done));
        assert_int_equal(c->messages[c->count - 1].role, MESSAGE_AGENT);
        end(&fold);
    }
}

static void a_summary_of_nothing_is_all_there_is(void **state) {
    (void)state;
    struct fold fold;
    begin(&fold, TEXTS_LENT);
    conversation_summarize(&fold.conversation, STR("short"), STR("a"), SUMMARY_OF_SESSION);
    assert_messages(&fold.conversation, "U short|");
    end(&fold);
}

static void only_a_whole_list_is_all_that_a_session_shall_remember(void **state) {
    (void)state;
    static const struct event events[] = {
        STARTED("hi"), ITEM(BROUGHT_ITEM, "[{\"role\":\"user\",\"text\":\"a\"}]"),
        ITEM(BROUGHT_ITEM BROUGHT_ALL, "[{\"role\":\"user\",\"text\":\"a\"}]")};
    struct fold fold;
    begin(&fold, TEXTS_LENT);
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        assert_true(apply(&fold, &events[i]));
        assert_int_equal(fold.conversation.starts_anew, i == 2);
    }
    end(&fold);
}

/* A list may say who heard its messages, as that of a fork does. */
static void who_heard_what_is_brought_is_as_it_says_else_its_agent(void **state) {
    (void)state;
    static const struct event events[] = {
        STARTED("hi"), ITEM(BROUGHT_ITEM, "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":"
                                          "\"user\",\"text\":\"b\",\"heard_by\":\"w\"}]")};
    struct fold fold;
    begin(&fold, TEXTS_LENT);
    apply_all(&fold, events, ARRAY_LEN(events));
    assert_str(fold.conversation.messages[0].heard_by, "a");
    assert_str(fold.conversation.messages[1].heard_by, "w");
    end(&fold);
}

/* --- looking ------------------------------------------------------------------------------ */

/* A search for each would take minutes. */
static void a_reply_may_have_very_many_calls(void **state) {
    (void)state;
    const size_t many = 50000, answered = many - 2;
    const struct event started = STARTED("hi"), call = CALL("x", "t", "");
    const struct event result = RESULT("x", "{}"), cancelled = CANCELLED("");
    struct arena *arena = arena_new(64 * MIB);
    struct conversation c;
    conversation_init(&c, arena, KIB);
    assert_true(conversation_apply(&c, &started, TEXTS_KEPT));
    for (size_t i = 0; i < many; i++) assert_true(conversation_apply(&c, &call, TEXTS_KEPT));
    for (size_t i = 0; i < answered; i++)
        assert_true(conversation_apply(&c, &result, TEXTS_KEPT));
    assert_int_equal(c.open_calls, many - answered);
    for (size_t i = 0; i < c.count; i++)
        assert_true(conversation_is_open(&c, i) == (i > answered && i <= many));
    assert_true(conversation_apply(&c, &cancelled, TEXTS_KEPT));
    assert_int_equal(c.count, 1 + 2 * many);
    for (size_t i = 0; i < c.count; i++) assert_false(conversation_is_open(&c, i));
    conversation_done(&c);
    arena_free(arena);
}

/* A call of the list that has no result there is open; the others are not. */
static void the_calls_that_a_caller_brings_are_open_without_a_result(void **state) {
    (void)state;
    static const struct event events[] = {
        STARTED("hi"),
        ITEM(BROUGHT_ITEM,
             "[{\"role\":\"tool_call\",\"call_id\":\"x\",\"tool\":\"t\",\"text\":\"{}\"},"
             "{\"role\":\"tool_call\",\"call_id\":\"y\",\"tool\":\"t\",\"text\":\"{}\"},"
             "{\"role\":\"tool_result\",\"call_id\":\"y\",\"text\":\"{}\"},"
             "{\"role\":\"user\",\"text\":\"go on\"}]"),
        CALL("z", "t", "")};
    struct fold fold;
    begin(&fold, TEXTS_LENT);
    apply_all(&fold, events, ARRAY_LEN(events));
    const struct conversation *c = &fold.conversation;
    bool open[] = {true, false, false, false, true};
    assert_int_equal(c->count, ARRAY_LEN(open));
    for (size_t i = 0; i < c->count; i++) assert_int_equal(conversation_is_open(c, i), open[i]);
    end(&fold);
}

static void a_conversation_knows_its_end_its_reply_and_its_open_calls(void **state) {
    (void)state;
    static const struct event events[] = {STARTED("hi"), TEXT("he"), TEXT("llo")};
    static const struct event calls[] = {CALL("x", "t", ""), CALL("x", "u", "")};
    static const struct event result = RESULT("x", "{}"), failed = FAILED(MODEL_REFUSED, "");
    struct fold fold;
    struct conversation *c = &fold.conversation;
    begin(&fold, TEXTS_LENT);
    assert_str(conversation_reply(c), "");
    apply_all(&fold, events, ARRAY_LEN(events));
    assert_str(conversation_reply(c), "hello");
    assert_null(conversation_call(c, STR("x")));
    apply_all(&fold, calls, ARRAY_LEN(calls));
    assert_str(conversation_reply(c), "");
    assert_int_equal(c->open_calls, 2);
    assert_false(conversation_is_open(c, 1));
    assert_true(conversation_is_open(c, 2) && conversation_is_open(c, 3));
    assert_str(conversation_call(c, STR("x"))->tool, "t");
    assert_true(apply(&fold, &result));
    assert_int_equal(c->open_calls, 1);
    assert_true(!conversation_is_open(c, 2) && conversation_is_open(c, 3));
    assert_str(conversation_call(c, STR("x"))->tool, "u");
    assert_true(apply(&fold, &result));
    assert_str(conversation_call(c, STR("x"))->tool, "u");
    assert_int_equal(c->ended, 0);
    assert_true(apply(&fold, &failed));
    assert_int_equal(c->ended, EVENT_FAILED);
    assert_false(c->refused);
    end(&fold);
}

static void a_repair_is_written_as_it_is_read(void **state) {
    (void)state;
    static const struct event started = STARTED("hi");
    struct buf bytes;
    struct fold fold;
    buf_init(&bytes, KIB);
    assert_true(conversation_repair(STR("b"), STR("[1"), STR("cut short"), &bytes));
    struct event item = {.kind = EVENT_ITEM, .item = {STR(REPAIR_ITEM), buf_str(&bytes)}};
    begin(&fold, TEXTS_LENT);
    assert_true(apply(&fold, &started) && apply(&fold, &item));
    assert_messages(&fold.conversation, ">U hi|A(b) [1|U cut short|");
    end(&fold);
    buf_done(&bytes);
    for (size_t max = 0; max < 15; max++) {
        buf_init(&bytes, max);
        assert_false(conversation_repair(STR("b"), STR("[1"), STR("cut short"), &bytes));
        buf_done(&bytes);
    }
}

/* --- limits ------------------------------------------------------------------------------- */

static const struct event long_way[] = {
    STARTED("hi"),
    ITEM(BROUGHT_ITEM, "[{\"role\":\"user\",\"text\":\"a\"},{\"role\":\"user\",\"text\":"
                       "\"b\"}]"),
    ITEM(SUMMARY_ITEM, "short"),
    TEXT("let me"),
    CALL("1", "t", "let me"),
    RESULT("approve-1", "{\"args\":{\"x\":2}}"),
    ITEM(OPAQUE_ITEM "d", "o"),
    ITEM(ASIDE_ITEM, "wait"),
    RESULT("1", "{\"r\":1}"),
    ITEM(REPAIR_ITEM, "\1a\3{5}\0\2no"),
    QUESTION("q", "Hm.", ""),
    RESULT("q", "{\"answer\":\"go\"}"),
    CALL("2", "t", ""),
    TEXT("so"),
    CANCELLED("so far"),
};

static void assert_ended_whole(const struct conversation *c) {
    assert_int_equal(c->ended, EVENT_CANCELLED);
    assert_true(c->own_from <= c->turn_start && c->turn_start <= c->count);
    for (size_t i = 0; i < c->count; i++) assert_false(conversation_is_open(c, i));
}

/* Whether all of it was taken. */
static bool walk(struct fold *fold, bool on) {
    size_t last = ARRAY_LEN(long_way) - 1;
    bool whole = true;
    for (size_t i = 0; i < last && (whole || on); i++)
        whole = apply(fold, &long_way[i]) && whole;
    assert_true(apply(fold, &long_way[last]));
    assert_ended_whole(&fold->conversation);
    return whole;
}

static void a_full_arena_refuses_what_comes_but_never_the_end(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool whole = false;
        for (size_t max = 0; !whole; max++) {
            struct fold fold;
            assert_true(max < 8 * KIB);
            begin_within(&fold, i % 2 ? TEXTS_KEPT : TEXTS_LENT, max, MIB);
            whole = walk(&fold, i / 2);
            end(&fold);
        }
    }
}

static void what_streamed_is_left_when_the_arena_is_full(void **state) {
    (void)state;
    static const struct event said = TEXT("let me"), ended = CANCELLED("let me see");
    struct fold fold;
    begin_within(&fold, TEXTS_LENT, 3, MIB);
    assert_true(apply(&fold, &said) && apply(&fold, &ended));
    assert_messages(&fold.conversation, ">A!(a) let me|");
    end(&fold);
}

static void a_reply_has_a_limit(void **state) {
    (void)state;
    static const struct event said = TEXT("let me"), more = TEXT("x"), ended = CANCELLED("");
    for (size_t max = 0; max <= 7; max++) {
        struct fold fold;
        begin_within(&fold, TEXTS_LENT, MIB, max);
        assert_int_equal(apply(&fold, &said), max >= 6);
        assert_int_equal(apply(&fold, &more), max >= 7);
        assert_true(apply(&fold, &ended));
        end(&fold);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_becomes_what_the_table_says),
        cmocka_unit_test(every_ending_leaves_what_happened),
        cmocka_unit_test(what_came_before_stands_in_front_whenever_it_comes),
        cmocka_unit_test(a_call_that_came_before_is_not_this_run_s),
        cmocka_unit_test(a_summary_of_the_session_is_the_run_s_own),
        cmocka_unit_test(a_summary_of_the_view_is_not),
        cmocka_unit_test(a_summary_leaves_the_turn_its_instructions),
        cmocka_unit_test(a_summary_of_nothing_is_all_there_is),
        cmocka_unit_test(only_a_whole_list_is_all_that_a_session_shall_remember),
        cmocka_unit_test(who_heard_what_is_brought_is_as_it_says_else_its_agent),
        cmocka_unit_test(a_reply_may_have_very_many_calls),
        cmocka_unit_test(the_calls_that_a_caller_brings_are_open_without_a_result),
        cmocka_unit_test(a_conversation_knows_its_end_its_reply_and_its_open_calls),
        cmocka_unit_test(a_repair_is_written_as_it_is_read),
        cmocka_unit_test(a_full_arena_refuses_what_comes_but_never_the_end),
        cmocka_unit_test(what_streamed_is_left_when_the_arena_is_full),
        cmocka_unit_test(a_reply_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
