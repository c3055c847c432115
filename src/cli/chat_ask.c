/* A run that waits for a human: the question is shown whole, and answered. */
#include "cli/chat.h"

#include <string.h>

#define BODY_MAX_BYTES (8 * MIB)
#define ANSWER_MAX_BYTES (64 * MIB)

/* --- showing ------------------------------------------------------------------------------ */

/* A person who approves a call must see all of its arguments, so nothing is cut. */
static void show_whole(struct chat *chat, struct json event) {
    struct buf line;
    buf_init(&line, ANSWER_MAX_BYTES);
    event_show_end_line(&chat->show);
    show_form(event, "? {agent}: {question}", &line);
    struct json tool = json_find(event, STR("tool"));
    if (tool.kind == JSON_STRING && !json_is(tool, STR_EMPTY))
        show_form(event, "\n  {tool} {args}", &line);
    fprintf(stderr, STR_FMT "\n", STR_ARG(buf_str(&line)));
    buf_done(&line);
}

/* --- what a line means -------------------------------------------------------------------- */

static bool chat_ask_is_one_of(struct str word, const char *const *words) {
    for (; *words; words++) {
        if (str_equal_nocase(word, str_from(*words))) return true;
    }
    return false;
}

static void chat_ask_write_decision(const char *decision, struct str args, struct str reason,
                                    struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "decision", str_from(decision));
    if (args.len) json_member_raw(&json, "args", args);
    if (reason.len) json_member_str(&json, "reason", reason);
    json_close(&json);
}

static bool chat_ask_is_object(struct str text, struct json *ret) {
    struct err e;
    return json_read(text, ret, &e) && ret->kind == JSON_OBJECT;
}

bool chat_decision(struct str line, bool from_program, struct buf *out) {
    static const char *const yes[] = {"y", "yes", "approve", "ok", NULL};
    static const char *const no[] = {"n", "no", "refuse", NULL};
    static const char *const edit[] = {"e", "edit", NULL};
    struct json object;
    struct str rest, word;
    line = str_trim(line);
    word = str_split(line, ' ', &rest);
    rest = rest.at ? str_trim(rest) : STR_EMPTY;
    if (chat_ask_is_one_of(line, yes)) {
        chat_ask_write_decision("approve", STR_EMPTY, STR_EMPTY, out);
    } else if (chat_ask_is_one_of(word, no)) {
        chat_ask_write_decision("refuse", STR_EMPTY, rest, out);
    } else if (chat_ask_is_one_of(word, edit) && chat_ask_is_object(rest, &object)) {
        chat_ask_write_decision("edit", object.raw, STR_EMPTY, out);
    } else if (!chat_ask_is_object(line, &object)) {
        return false;
    } else if (!from_program) {
        chat_ask_write_decision("edit", object.raw, STR_EMPTY, out);
    } else if (json_find(object, STR("decision")).kind == JSON_STRING) {
        buf_append(out, object.raw);
    } else {
        return false;
    }
    return buf_ok(out);
}

/* A question of the model's own is answered with any text. */
static bool chat_ask_write_answer(struct str line, bool from_program, struct buf *out) {
    struct json object;
    if (from_program && chat_ask_is_object(line, &object) &&
        (json_find(object, STR("answer")).kind == JSON_STRING ||
         json_find(object, STR("decision")).kind == JSON_STRING))
        return buf_append(out, object.raw);
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "answer", line);
    json_close(&json);
    return buf_ok(out);
}

/* --- asking ------------------------------------------------------------------------------- */

static bool chat_ask_send_answer(struct chat *chat, const struct chat_question *question,
                                 struct str body, struct err *e) {
    struct buf path, answer;
    buf_init(&path, KIB);
    buf_init(&answer, ANSWER_MAX_BYTES);
    buf_append(&path, STR("/weir/v1/approvals/"));
    buf_append(&path, buf_str(&question->id));
    bool ok = ask_target_whole(&chat->target, STR("POST"), buf_str(&path), body, &answer, e);
    buf_done(&answer);
    buf_done(&path);
    return ok;
}

/* Someone else may have answered, and then the run goes on. */
static bool is_settled(enum err_code code) {
    return code == ERR_ABORTED || code == ERR_NOT_FOUND;
}

static enum chat_line read_answer(struct chat *chat, bool guards, struct buf *out) {
    static const char call[] = "  y = yes, n [REASON] = no, e {ARGUMENTS} = with these > ";
    bool from_program = chat->options->json, interrupted = false;
    struct str line;
    while (true) {
        enum chat_line came = chat_input_line(&chat->input,
                                              from_program ? ""
                                              : guards     ? call
                                                           : "  > ",
                                              &line);
        if (came == CHAT_INTERRUPTED && chat->input.terminal && !interrupted) {
            interrupted = true;
            fprintf(stderr,
                    "%s  (Ctrl-C again or Ctrl-D leaves, and the question stays open)\n",
                    chat_input_gap(&chat->input));
            continue;
        }
        if (came != CHAT_LINE) return came;
        interrupted = false;
        buf_clear(out);
        if (guards ? chat_decision(line, from_program, out)
                   : chat_ask_write_answer(line, from_program, out))
            return CHAT_LINE;
        struct err e;
        err_set(&e, ERR_INVALID_ARGUMENT,
                "that is no decision: say y, n, n REASON, or e and a JSON object");
        chat_report(chat, &e);
    }
}

static void report_unanswered(struct chat *chat, const struct chat_question *question) {
    struct err e;
    err_set(&e, ERR_FAILED_PRECONDITION,
            "the turn waits for an answer: weir approvals approve " STR_FMT
            ", or weir chat --session " STR_FMT,
            STR_ARG(buf_str(&question->id)), STR_ARG(buf_str(&chat->session)));
    chat_report(chat, &e);
}

enum chat_answer chat_ask(struct chat *chat, const struct chat_question *question) {
    struct json event;
    struct buf body;
    struct err e;
    if (!json_read(buf_str(&question->event), &event, &e)) return CHAT_UNANSWERED;
    struct json guards = json_find(event, STR("guards"));
    bool is_call = guards.kind == JSON_STRING && !json_is(guards, STR_EMPTY);
    bool answered = false;
    enum chat_line came = CHAT_LINE;
    buf_init(&body, BODY_MAX_BYTES);
    if (!chat->options->json) show_whole(chat, event);
    chat_input_drop(&chat->input);
    while (!answered && (came = read_answer(chat, is_call, &body)) == CHAT_LINE) {
        answered = chat_ask_send_answer(chat, question, buf_str(&body), &e);
        if (!answered) chat_report(chat, &e);
        if (!answered && is_settled(e.code)) answered = true;
        if (!answered && e.code == ERR_UNAVAILABLE && !chat->input.terminal) break;
    }
    if (!answered) report_unanswered(chat, question);
    buf_done(&body);
    if (answered) return CHAT_ANSWERED;
    return came == CHAT_INTERRUPTED ? CHAT_ASK_LEFT : CHAT_UNANSWERED;
}

/* --- a question of an earlier turn -------------------------------------------------------- */

static bool take_waiting(struct json approval, struct chat_question *ret) {
    struct json guards = json_find(approval, STR("call_id"));
    struct str id, seq, run;
    struct arena *arena = arena_new(64 * KIB);
    bool ok = json_str(json_find(approval, STR("id")), arena, &id);
    run = ok ? str_split(id, '-', &seq) : STR_EMPTY;
    ok = ok && seq.at && run.len;
    if (ok) {
        buf_append(&ret->id, id);
        buf_append(&ret->run, run);
        /* Any epoch will do: the run has not ended. */
        snprintf(ret->after, sizeof(ret->after), "1-" STR_FMT, STR_ARG(seq));
        struct json_writer json = json_writer(&ret->event);
        json_open_object(&json);
        json_member_str(&json, "type", STR("approval"));
        static const char *const names[] = {"agent", "question", "tool", "args"};
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            struct json member = json_find(approval, str_from(names[i]));
            if (member.kind != JSON_NONE) json_member_raw(&json, names[i], member.raw);
        }
        if (guards.kind == JSON_STRING) json_member_raw(&json, "guards", guards.raw);
        json_close(&json);
    }
    arena_free(arena);
    return ok;
}

bool chat_find_question(struct chat *chat, struct chat_question *ret) {
    const char *user = chat->options->user;
    struct buf path, body;
    struct json answer, approval;
    struct err e;
    buf_init(&path, 16 * KIB);
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_append(&path, STR("/weir/v1/approvals?limit=1"));
    daemon_path_add(&path, "session_id", buf_str(&chat->session));
    daemon_path_add(&path, "user", user ? str_from(user) : STR("anonymous"));
    bool found =
        buf_ok(&path) &&
        ask_target_whole(&chat->target, STR("GET"), buf_str(&path), STR_EMPTY, &body, &e) &&
        json_read(buf_str(&body), &answer, &e);
    struct json_reader reader =
        json_enter(found ? json_find(answer, STR("approvals")) : (struct json){0});
    found = json_next_item(&reader, &approval) && take_waiting(approval, ret);
    if (found && chat->options->json) show_json(stdout, buf_str(&ret->event));
    buf_done(&body);
    buf_done(&path);
    return found;
}
