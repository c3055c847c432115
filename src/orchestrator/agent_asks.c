#include "orchestrator/agent_asks.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "orchestrator/agent_asks_inner.h"

#include <assert.h>
#include <stdlib.h>

/* The event that says what an agent asks comes over another connection than the call. */
#define LOOK_MS 20
#define LOOKS_MAX 25
#define REQUEST_MAX_BYTES MIB
#define SWEEP_MS 60000
#define ALIVE_MAX_BYTES (4 * MIB)
#define PATH_MAX_BYTES (8 * KIB)

/* --- states ------------------------------------------------------------------------------- */

const struct state agent_ask_states[AGENT_ASK_STATE_COUNT] = {
    [AGENT_ASK_FINDING] = {"finding", TO(AGENT_ASK_ADMITTING) | TO(AGENT_ASK_OVER)},
    [AGENT_ASK_ADMITTING] = {"admitting", TO(AGENT_ASK_ASKING) | TO(AGENT_ASK_OVER)},
    [AGENT_ASK_ASKING] = {"asking", TO(AGENT_ASK_STORING)},
    [AGENT_ASK_STORING] = {"storing", TO(AGENT_ASK_OVER)},
    [AGENT_ASK_OVER] = {"over", 0},
};

/* The only function that writes call->state. */
void agent_ask_move(struct agent_ask *ask, enum agent_ask_state next) {
    assert(states_allow(agent_ask_states, ask->state, next));
    ask->state = next;
}

/* --- the end of a call ---------------------------------------------------------------------- */

void agent_ask_query(struct agent_ask *ask, struct query *query, enum query_kind kind,
                     query_done_fn *done) {
    ask->refs++;
    query_ask(query, ask->asks->options.database, kind, done, ask);
}

void agent_ask_over(struct agent_ask *ask) {
    agent_ask_move(ask, AGENT_ASK_OVER);
    agent_ask_unref(ask);
}

/* Answer with an error, and be over. */
static void agent_ask_fail(struct agent_ask *ask, struct str text) {
    struct orchestrator_call *asked = ask->call;
    ask->call = NULL;
    if (asked) orchestrator_call_fail(asked, text);
    agent_ask_over(ask);
}

static void agent_asks_fail_with(struct agent_ask *ask, const struct err *why) {
    if (why->code == ERR_NOT_FOUND)
        agent_ask_fail(ask, err_text(why));
    else
        agent_ask_fail(ask, STR("the agent cannot be asked now; try again later"));
}

struct agent_row agent_ask_row(const struct agent_ask *ask) {
    return (struct agent_row){.id = uuid_str(&ask->id),
                              .user = ask->workspace->user,
                              .workspace = ask->workspace->id,
                              .conversation = ask->workspace->conversation,
                              .root = text_str(ask->root),
                              .from = ask->from,
                              .to = ask->to,
                              .depth = ask->depth,
                              .request = text_str(ask->request)};
}

/* --- admitting -------------------------------------------------------------------------------- */

static void agent_asks_on_begun(const struct postgres_request *rows, const struct err *failed,
                                void *ctx) {
    struct agent_ask *ask = ctx;
    struct agent_row_begun begun = {0};
    if (!failed) begun = agent_rows_begun(rows);
    if (failed) {
        agent_asks_fail_with(ask, failed);
    } else if (!begun.allowed) {
        agent_ask_fail(ask, STR("monthly token quota exceeded"));
    } else if (begun.depth >= AGENT_DEPTH_MAX) {
        agent_ask_fail(ask, STR("agents have asked each other too deeply; answer yourself"));
    } else {
        struct buf asked;
        buf_init(&asked, 2 * REQUEST_MAX_BYTES);
        ask->depth = begun.depth;
        text_done(&ask->root);
        ask->root = text_copy(begun.root);
        buf_append(&asked, STR("The conversation so far:\n"));
        agent_rows_context(rows, &asked);
        buf_append(&asked, STR("\nA message to you"));
        if (ask->from) buf_printf(&asked, " from " STR_FMT, STR_ARG(ask->from->name));
        buf_append(&asked, STR(":\n"));
        buf_append(&asked, text_str(ask->request));
        ask->asked = text_copy(buf_str(&asked));
        buf_done(&asked);
        agent_turn_begin(ask);
    }
    agent_ask_unref(ask);
}

static size_t running(const struct agent_ask *ask) {
    size_t count = 0;
    LIST_EACH(&ask->asks->all, link) {
        const struct agent_ask *other = CONTAINER_OF(link, struct agent_ask, link);
        bool same = other->workspace && str_equal(other->workspace->id, ask->workspace->id);
        if (other != ask && same) count++;
    }
    return count;
}

/* "/manager/wally/" has the steps manager to wally. */
static bool was_asked(const struct agent_ask *ask) {
    struct buf step;
    buf_init(&step, PATH_MAX_BYTES);
    buf_printf(&step, "/" STR_FMT "/" STR_FMT "/", STR_ARG(ask->from->slug),
               STR_ARG(ask->to->slug));
    bool found = str_find(text_str(ask->path), buf_str(&step)) < ask->path.len;
    buf_done(&step);
    return found;
}

static void agent_asks_admit(struct agent_ask *ask) {
    if (ask->from == ask->to) {
        agent_ask_fail(ask, STR("an agent cannot send a message to itself"));
    } else if (ask->from && was_asked(ask)) {
        agent_ask_fail(ask, STR("this agent was asked by you already, and its answer is "
                                "waited for; answer yourself"));
    } else if (ask->depth >= AGENT_DEPTH_MAX) {
        agent_ask_fail(ask, STR("agents have asked each other too deeply; answer yourself"));
    } else if (running(ask) >= AGENT_ASKS_MAX) {
        agent_ask_fail(ask, STR("too many agents are being asked; try again later"));
    } else {
        const struct agent_row row = agent_ask_row(ask);
        agent_ask_move(ask, AGENT_ASK_ADMITTING);
        /* With its own id, a repetition finds itself. */
        agent_ask_query(ask, agent_rows_begin(&row), QUERY_REPEATABLE, agent_asks_on_begun);
    }
}

/* --- who asks ----------------------------------------------------------------------------------- */

static void set_asker(struct agent_ask *ask, struct str slug, struct str message,
                      struct str root, struct str path, int64_t depth) {
    const struct workspace *workspace = ask->workspace;
    struct buf longer;
    size_t agent = workspace_agent_named(workspace, slug);
    if (agent < workspace->agent_count) ask->from = &workspace->agents[agent];
    ask->message = text_copy(message);
    ask->root = text_copy(root);
    ask->depth = depth;
    buf_init(&longer, PATH_MAX_BYTES);
    buf_append(&longer, path.len ? path : STR("/"));
    buf_append(&longer, slug);
    buf_append_byte(&longer, '/');
    ask->path = text_copy(buf_str(&longer));
    buf_done(&longer);
}

/* In another call that runs. */
static bool claim_nested(struct agent_ask *ask, bool *turns) {
    const struct workspace *own = ask->workspace;
    LIST_EACH(&ask->asks->all, link) {
        struct agent_ask *other = CONTAINER_OF(link, struct agent_ask, link);
        if (other->state != AGENT_ASK_ASKING || !other->turn ||
            !str_equal(other->workspace->id, own->id) ||
            !str_equal(other->workspace->conversation, own->conversation))
            continue;
        *turns = true;
        const struct turn_part *part =
            turn_claim(other->turn, text_str(ask->slug), text_str(ask->request));
        if (!part) continue;
        set_asker(ask, part->agent->slug, text_str(other->message), text_str(other->root),
                  text_str(other->path), other->depth + 1);
        return true;
    }
    return false;
}

static void agent_asks_look(void *ctx) {
    struct agent_ask *ask = ctx;
    struct talk_asker asker;
    bool turns = false, nested = false;
    if (talks_claim(ask->asks->talks, ask->workspace, text_str(ask->slug),
                    text_str(ask->request), &asker, &turns)) {
        set_asker(ask, asker.agent, uuid_str(&asker.message), asker.root, STR_EMPTY, 0);
        agent_asks_admit(ask);
    } else if (claim_nested(ask, &nested)) {
        agent_asks_admit(ask);
    } else if ((turns || nested) && ask->looks++ < LOOKS_MAX) {
        timer_start(&ask->again, LOOK_MS);
    } else {
        agent_asks_admit(ask);
    }
}

static void fail_unknown(struct agent_ask *ask) {
    const struct workspace *workspace = ask->workspace;
    size_t count = workspace->agents ? workspace->agent_count : 0;
    struct buf text;
    buf_init(&text, 64 * KIB);
    buf_printf(&text, "there is no agent '" STR_FMT "'; there are:",
               STR_ARG(str_head(text_str(ask->slug), 100)));
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s " STR_FMT, i ? "," : "", STR_ARG(workspace->agents[i].slug));
    agent_ask_fail(ask, buf_str(&text));
    buf_done(&text);
}

static void agent_asks_on_workspace(struct workspace *found, const struct err *failed,
                                    void *ctx) {
    struct agent_ask *ask = ctx;
    ask->workspace = found;
    if (failed) {
        agent_asks_fail_with(ask, failed);
    } else if (!ask->call) {
        agent_ask_over(ask);
    } else {
        size_t to = workspace_agent_named(found, text_str(ask->slug));
        ask->to = to < found->agent_count ? &found->agents[to] : NULL;
        if (ask->to)
            agent_asks_look(ask);
        else
            fail_unknown(ask);
    }
    agent_ask_unref(ask);
}

/* --- a call ---------------------------------------------------------------------------------------- */

/* Before the turn there is nothing to undo: what is asked of the database is answered first. */
static void agent_ask_leave(struct agent_ask *ask) {
    ask->call = NULL;
    if (ask->state == AGENT_ASK_ASKING) {
        agent_turn_cancel(ask);
    } else if (ask->state == AGENT_ASK_FINDING && ask->workspace) {
        timer_stop(&ask->again);
        agent_ask_over(ask);
    }
}

static void agent_asks_on_left(void *ctx) {
    struct agent_ask *ask = ctx;
    struct orchestrator_call *asked = ask->call;
    agent_ask_leave(ask);
    orchestrator_call_fail(asked,
                           STR("the caller left, so the other agent's turn is cancelled"));
}

static struct text argument(const struct orchestrator_call_view *view, struct str key) {
    struct arena *arena = arena_new(REQUEST_MAX_BYTES);
    struct str text;
    struct text own = {0};
    if (json_str(json_find(view->arguments, key), arena, &text)) own = text_copy(text);
    arena_free(arena);
    return own;
}

void agent_asks_serve(struct agent_asks *asks, struct orchestrator_call *asked,
                      const struct orchestrator_call_view *view) {
    struct agent_ask *ask = MEM_NEW(struct agent_ask);
    *ask = (struct agent_ask){.asks = asks,
                              .refs = 1,
                              .call = asked,
                              .id = uuid_new(),
                              .slug = argument(view, STR("agent_slug")),
                              .request = argument(view, STR("message")),
                              .depth = -1,
                              .began_ms = loop_now_ms(asks->options.loop)};
    buf_init(&ask->failure, 4 * KIB);
    list_init(&ask->link);
    list_append(&asks->all, &ask->link);
    timer_init(&ask->again, asks->options.loop, agent_asks_look, ask);
    if (asks->stopped) {
        agent_ask_fail(ask, STR("the service stops; try again later"));
    } else if (!str_trim(text_str(ask->request)).len) {
        agent_ask_fail(ask, STR("message must be a text, and not longer than 1 MiB"));
    } else if (str_find_byte(text_str(ask->request), '\0') < ask->request.len) {
        agent_ask_fail(ask, STR("message has a NUL (U+0000), which the database cannot hold; "
                                "leave it out"));
    } else if (!id_ok(view->conversation)) {
        agent_ask_fail(ask, STR("conversation_id is required: this call is not from a turn"));
    } else {
        const struct workspace_question question = {.user = view->user,
                                                    .id = view->workspace,
                                                    .conversation = view->conversation,
                                                    .make = true};
        orchestrator_call_watch(asked, agent_asks_on_left, ask);
        ask->refs++;
        workspace_find(asks->options.database, &question, agent_asks_on_workspace, ask);
    }
}

/* --- calls of the living and of the dead -------------------------------------------------------------- */

static void on_swept(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct agent_asks *asks = ctx;
    struct postgres_rows swept = {0};
    asks->asking--;
    if (!failed) swept = postgres_rows(rows, rows->step_count - 1);
    if (swept.affected > 0)
        log_warning("%lld calls from agent to agent were left by a process that has ended",
                    (long long)swept.affected);
}

/* Our own are touched three times before they could be taken for dead. */
static void on_sweep(void *ctx) {
    struct agent_asks *asks = ctx;
    uint64_t every_ms = asks->options.stale_ms / 4;
    struct buf ids;
    buf_init(&ids, ALIVE_MAX_BYTES);
    LIST_EACH(&asks->all, link) {
        const struct agent_ask *ask = CONTAINER_OF(link, struct agent_ask, link);
        if (ids.len) buf_append_byte(&ids, ',');
        buf_append(&ids, uuid_str(&ask->id));
    }
    timer_start(&asks->sweep, every_ms < SWEEP_MS ? every_ms : SWEEP_MS);
    asks->asking++;
    query_ask(agent_rows_sweep(buf_str(&ids), (int64_t)asks->options.stale_ms),
              asks->options.database, QUERY_REPEATABLE, on_swept, asks);
    buf_done(&ids);
}

/* --- all of them ---------------------------------------------------------------------------------------- */

struct agent_asks *agent_asks_new(const struct talks_options *options, struct talks *talks) {
    struct agent_asks *asks = MEM_NEW(struct agent_asks);
    asks->options = *options;
    asks->talks = talks;
    list_init(&asks->all);
    timer_init(&asks->sweep, options->loop, on_sweep, asks);
    timer_start(&asks->sweep, 0);
    return asks;
}

bool agent_asks_idle(const struct agent_asks *asks) {
    return list_empty(&asks->all);
}

/* The first that still has a caller or a turn. */
static struct agent_ask *next_live(const struct agent_asks *asks) {
    LIST_EACH(&asks->all, link) {
        struct agent_ask *ask = CONTAINER_OF(link, struct agent_ask, link);
        bool looks = ask->state == AGENT_ASK_FINDING && ask->workspace;
        if (ask->call || looks || ask->state == AGENT_ASK_ASKING) return ask;
    }
    return NULL;
}

void agent_asks_stop(struct agent_asks *asks) {
    struct agent_ask *ask;
    asks->stopped = true;
    timer_stop(&asks->sweep);
    while ((ask = next_live(asks))) {
        struct orchestrator_call *asked = ask->call;
        agent_ask_leave(ask);
        if (asked) orchestrator_call_fail(asked, STR("the service stops; try again later"));
    }
}

void agent_asks_free(struct agent_asks *asks) {
    if (!asks) return;
    assert(list_empty(&asks->all) && !asks->asking);
    free(asks);
}
