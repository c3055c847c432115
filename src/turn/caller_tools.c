#include "turn/caller_tools.h"

#include "base/mem.h"
#include "provider/call_pairs.h"
#include "turn/turn.h"
#include "wire/json.h"

#include <stdlib.h>

#define NAME_SHOWN_BYTES 80
#define NO_PARAMETERS STR("{\"type\":\"object\",\"properties\":{}}")

/* --- the request -------------------------------------------------------------------------- */

static const struct tool_offer *find_offer(const struct tool_offer *offers, size_t count,
                                           struct str name) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(offers[i].name, name)) return &offers[i];
    }
    return NULL;
}

/* Whether the agent's calls of this name are not the caller's. */
static bool is_taken(const struct run *run, struct str name) {
    return str_equal(name, STR(TRANSFER_TOOL)) || str_equal(name, STR(APPROVAL_TOOL)) ||
           engine_agent_tool(run->record.engine, run->agent, name);
}

static bool check_tool(const struct run *run, const struct tool_offer *tools, size_t index,
                       struct err *e) {
    const struct tool_offer *tool = &tools[index];
    struct str shown = str_head(tool->name, NAME_SHOWN_BYTES);
    if (tool->name.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "tools[%zu] has no name", index);
    if (find_offer(tools, index, tool->name))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "tools[%zu]: the tool '" STR_FMT "' comes twice; name each once", index,
                       STR_ARG(shown));
    if (is_taken(run, tool->name))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "tools[%zu]: the agent '" STR_FMT "' has a tool '" STR_FMT
                       "' of its own; give yours another name",
                       index, STR_ARG(run->agent->slug), STR_ARG(shown));
    if (tool->parameters.len && !json_reads_as_object(tool->parameters))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "tools[%zu]: the parameters of '" STR_FMT
                       "' are not a JSON Schema, which is an object",
                       index, STR_ARG(shown));
    return true;
}

static bool copy_tool(struct run *run, const struct tool_offer *from, struct tool_offer *to) {
    return arena_str(run->arena, from->name, &to->name) &&
           arena_str(run->arena, from->description, &to->description) &&
           arena_str(run->arena, from->parameters.len ? from->parameters : NO_PARAMETERS,
                     &to->parameters);
}

static bool check_choice(const struct caller_tools *tools, struct str choice, struct err *e) {
    return choice.len == 0 || str_equal(choice, STR(TOOL_CHOICE_REQUIRED)) ||
           find_offer(tools->list, tools->count, choice) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "tool_choice names '" STR_FMT "', which is not one of the request's tools",
                   STR_ARG(str_head(choice, NAME_SHOWN_BYTES)));
}

bool run_keep_caller_tools(struct run *run, const struct run_request *from, struct err *e) {
    struct caller_tools *tools = &run->caller_tools;
    if (from->tool_count > CALLER_TOOLS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "tools: %zu are more than the %d of a request",
                       from->tool_count, CALLER_TOOLS_MAX);
    struct tool_offer *copies =
        arena_alloc(run->arena, (from->tool_count + 1) * sizeof(struct tool_offer));
    bool fits = copies != NULL && arena_str(run->arena, from->tool_choice, &tools->choice);
    for (size_t i = 0; fits && i < from->tool_count; i++) {
        if (!check_tool(run, from->tools, i, e)) return false;
        fits = copy_tool(run, &from->tools[i], &copies[i]);
    }
    if (!fits)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a turn may hold");
    tools->list = copies;
    tools->count = from->tool_count;
    tools->args_as_text = from->args_as_text;
    return check_choice(tools, tools->choice, e);
}

/* --- the offer ---------------------------------------------------------------------------- */

/* Once for each agent that the turn comes to: its own tools, then the caller's that have other
 * names. */
static bool merge(struct run *run, const struct provider_request *asked) {
    struct caller_tools *tools = &run->caller_tools;
    size_t count = asked->tool_count;
    struct tool_offer *merged =
        arena_alloc(run->arena, (count + tools->count) * sizeof(struct tool_offer));
    if (!merged) {
        run_fail_memory(run);
        return false;
    }
    if (count) memcpy(merged, asked->tools, count * sizeof(struct tool_offer));
    for (size_t i = 0; i < tools->count; i++) {
        if (!is_taken(run, tools->list[i].name)) merged[count++] = tools->list[i];
    }
    tools->merged = merged;
    tools->merged_count = count;
    tools->for_one = run->agent;
    return true;
}

bool run_offer_caller_tools(struct run *run, struct provider_request *asked) {
    struct caller_tools *tools = &run->caller_tools;
    if (!tools->count) return true;
    if (tools->for_one != run->agent && !merge(run, asked)) return false;
    asked->tools = tools->merged;
    asked->tool_count = tools->merged_count;
    /* Later, the model has the results of its calls, and decides itself. */
    if (!tools->choice_told) asked->tool_choice = tools->choice;
    tools->choice_told = true;
    return true;
}

/* --- calls -------------------------------------------------------------------------------- */

bool run_is_callers_call(const struct run *run, const struct turn_call *call) {
    const struct caller_tools *tools = &run->caller_tools;
    return find_offer(tools->list, tools->count, call->tool) && !is_taken(run, call->tool);
}

static bool any_is_callers(const struct run *run) {
    if (!run->caller_tools.count || run->approval.by_model) return false;
    for (size_t i = 0; i < run->calls.count; i++) {
        if (run_is_callers_call(run, &run->calls.list[i])) return true;
    }
    return false;
}

/* Whether each call of the caller's has arguments that its contract can carry. */
static bool all_are_readable(const struct run *run) {
    for (size_t i = 0; i < run->calls.count && !run->caller_tools.args_as_text; i++) {
        const struct turn_call *call = &run->calls.list[i];
        if (call->unread_args.len && run_is_callers_call(run, call)) return false;
    }
    return true;
}

static void record_handed_over(struct run *run, struct turn_call *call, bool callers) {
    bool as_written = callers && call->unread_args.len;
    struct event event = {.kind = EVENT_TOOL_CALL,
                          .tool_call = {.call_id = call->call_id,
                                        .tool = call->tool,
                                        .args = as_written ? call->unread_args : call->args,
                                        .idempotent = true, /* it is not made here */
                                        .callers = callers,
                                        .said = conversation_reply(&run->conversation)}};
    run_append_kept(run, &event);
    call->recorded = !run->ending_begun;
}

/* The agent's own call, in a reply that must wait for the caller. */
static void answer_unmade(struct turn_call *call) {
    struct err why;
    err_set(
        &why, ERR_FAILED_PRECONDITION,
        "this call was not made, because the same reply called tools of the caller; make it "
        "again once they have answered");
    run_answer_error(call, &why);
}

bool run_hand_over_calls(struct run *run) {
    struct calls *calls = &run->calls;
    if (!any_is_callers(run) || !all_are_readable(run)) return false;
    for (size_t i = 0; i < calls->count && !run->ending_begun; i++) {
        struct turn_call *call = &calls->list[i];
        record_handed_over(run, call, run_is_callers_call(run, call));
    }
    for (size_t i = 0; i < calls->count && !run->ending_begun; i++) {
        struct turn_call *call = &calls->list[i];
        if (run_is_callers_call(run, call)) {
            turn_call_move(call, TURN_CALL_ANSWERED); /* elsewhere, and later */
        } else {
            answer_unmade(call);
        }
    }
    run_done(run);
    return true;
}

/* --- results ------------------------------------------------------------------------------ */

static bool refuse_result(struct run *run, const char *reason, const char *why) {
    run_fail(run, ERR_INVALID_ARGUMENT, str_from(reason), str_from(why));
    return false;
}

/* A result of a call that has one: the same again, from a caller whose request was cut, is what the
 * model reads anyway. */
static bool check_repeat(struct run *run, const struct call_pairs *pairs,
                         const struct message *messages, size_t index) {
    size_t call = pairs->of[index];
    if (call == CALL_PAIRS_NONE)
        return refuse_result(
            run, "UNKNOWN_CALL",
            "a tool result answers a call that this conversation does not have; "
            "send the call's id as it was given");
    size_t first = pairs->of[call];
    if (first == CALL_PAIRS_NONE || str_equal(messages[first].text, messages[index].text))
        return true;
    return refuse_result(run, "ANSWERED_CALL",
                         "a tool result answers a call that has another result already; the "
                         "first one counts");
}

/* The results from `fresh` on. */
static bool check_brought_results(struct run *run, const struct message *messages, size_t fresh,
                                  size_t count) {
    struct call_pairs pairs;
    bool fine = true, *answers = mem_zero(count + 1, sizeof(bool));
    call_pairs_init(&pairs, messages, count, run->agent->slug);
    for (size_t i = 0; i < count; i++) {
        bool called = messages[i].role == MESSAGE_TOOL_CALL && pairs.of[i] != CALL_PAIRS_NONE;
        if (called) answers[pairs.of[i]] = true;
    }
    for (size_t i = fresh; fine && i < count; i++) {
        if (messages[i].role == MESSAGE_TOOL_RESULT && !answers[i])
            fine = check_repeat(run, &pairs, messages, i);
    }
    call_pairs_done(&pairs);
    free(answers);
    return fine;
}

bool run_check_results(struct run *run) {
    const struct import *fresh = &run->request.brought.fresh;
    const struct conversation *c = &run->conversation;
    size_t count = c->count + fresh->count;
    if (!fresh->count) return true;
    struct message *all = mem_zero(count, sizeof(struct message));
    if (c->count) memcpy(all, c->messages, c->count * sizeof(struct message));
    memcpy(all + c->count, fresh->messages, fresh->count * sizeof(struct message));
    bool fine = check_brought_results(run, all, c->count, count);
    free(all);
    return fine;
}
