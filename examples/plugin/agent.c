/* An agent as a shared library: it adds numbers with a tool, and asks before it goes on.
 *
 *     cc -shared -fPIC -I include -o examples/plugin/agent.so examples/plugin/agent.c
 *     weir -c examples/plugin/weir.yaml */
#include "weir/agent.h"

#include <stdio.h>
#include <string.h>

static void add(const struct weir_host *host, const char *expression) {
    char args[256];
    struct weir_result result;
    snprintf(args, sizeof(args), "{\"expression\":\"%s\"}", expression);
    const struct weir_call call = {"calculator", args};
    host->say(host->ctx, "Let me see. ");
    if (host->call(host->ctx, &call, 1, &result) == WEIR_OVER) return;
    host->say(host->ctx, result.failed ? "I cannot: " : "The calculator says ");
    host->say(host->ctx, result.result);
}

static void ask(const struct weir_host *host) {
    struct weir_result answer;
    if (host->ask(host->ctx, "Shall I go on?", &answer) == WEIR_OVER) return;
    host->say(host->ctx, "You said ");
    host->say(host->ctx, answer.result);
}

static void turn(const struct weir_turn *turn, const struct weir_host *host) {
    if (strncmp(turn->input, "add ", 4) == 0) {
        add(host, turn->input + 4);
    } else if (strcmp(turn->input, "ask") == 0) {
        ask(host);
    } else if (strcmp(turn->input, "fail") == 0) {
        host->fail(host->ctx, "NOT_FOUND", "there is nothing here");
    } else {
        host->step(host->ctx, "listening");
        host->say(host->ctx, "I heard: ");
        host->say(host->ctx, turn->input);
        host->usage(host->ctx, "no-model", 2, 3);
    }
}

const struct weir_agent *weir_agent(void) {
    static const struct weir_agent agent = {sizeof(agent), WEIR_AGENT_ABI, turn};
    return &agent;
}
