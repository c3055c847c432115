/* Parses agents, tools and scenes. script_step.c parses their steps. */
#include "script/script_step.h"

#include "base/nearest.h"

#define SCRIPT_VERSION 1

/* For everything a script holds: its tree, texts and tables. */
#define SCRIPT_ARENA_BYTES (32 * MIB)

static const struct script_pace pace_default = {.every_us = 20000, .chunk = 12};

/* An array in the script's arena with one item per child of `list`. NULL and an error at the
 * limit; not NULL for a list without children. */
static void *items_new(const struct yaml *list, size_t size, struct err *e) {
    void *items = arena_alloc(list->document->arena, list->count * size);
    if (!items) yaml_err(e, list, "this list is too large");
    return items;
}

static bool want_list(const struct yaml *node, const char *of, struct err *e) {
    if (node->kind == YAML_LIST) return true;
    return yaml_err(e, node, "expected a list of %s", of);
}

/* --- agents --------------------------------------------------------------------------- */

static bool read_names(const struct yaml *list, const struct str **ret, size_t *ret_count,
                       struct err *e) {
    if (!want_list(list, "names, such as [one, two]", e)) return false;
    struct str *names = items_new(list, sizeof(*names), e);
    if (!names) return false;
    size_t count = 0;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!yaml_value(item, YAML_NAME, &names[count++], e)) return false;
    }
    *ret = names;
    *ret_count = count;
    return true;
}

struct agent_nodes {
    struct str slug, description;
    const struct yaml *delegates, *tools;
};

static const struct yaml_field agent_fields[] = {
    {"slug", YAML_NAME, offsetof(struct agent_nodes, slug), true},
    {"description", YAML_TEXT, offsetof(struct agent_nodes, description), false},
    {"delegates", YAML_NODE, offsetof(struct agent_nodes, delegates), false},
    {"tools", YAML_NODE, offsetof(struct agent_nodes, tools), false},
};

static bool script_parse_read_agent(struct script *script, const struct yaml *node,
                                    struct err *e) {
    struct agent_nodes nodes = {.description = STR_EMPTY};
    if (!yaml_fields(node, "an agent", agent_fields, ARRAY_LEN(agent_fields), &nodes, e))
        return false;
    if (script_agent_find(script, nodes.slug))
        return yaml_err(e, node, "a second agent '" STR_FMT "'; give it another slug",
                        STR_ARG(nodes.slug));
    struct script_agent *agent = &script->agents[script->agent_count];
    *agent = (struct script_agent){
        .slug = nodes.slug, .description = nodes.description, .all_tools = !nodes.tools};
    if (nodes.delegates &&
        !read_names(nodes.delegates, &agent->delegates, &agent->delegate_count, e))
        return false;
    if (nodes.tools && !read_names(nodes.tools, &agent->tools, &agent->tool_count, e))
        return false;
    script->agent_count++;
    return true;
}

static bool script_parse_read_agents(struct script *script, const struct yaml *list,
                                     struct err *e) {
    if (!want_list(list, "agents", e)) return false;
    script->agents = items_new(list, sizeof(*script->agents), e);
    if (!script->agents) return false;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!script_parse_read_agent(script, item, e)) return false;
    }
    return true;
}

/* Runs last, because agents may refer to agents and tools defined below them. */
static bool check_agents(const struct script *script, const struct yaml *list, struct err *e) {
    for (const struct yaml *item = list->first; item; item = item->next) {
        const struct yaml *delegates = yaml_find(item, STR("delegates"));
        const struct yaml *tools = yaml_find(item, STR("tools"));
        for (const struct yaml *name = delegates ? delegates->first : NULL; name;
             name = name->next) {
            if (!script_agent_known(script, name, name->text, e)) return false;
        }
        for (const struct yaml *name = tools ? tools->first : NULL; name; name = name->next) {
            if (!script_tool_known(script, name, name->text, e)) return false;
        }
    }
    return true;
}

bool script_agent_known(const struct script *script, const struct yaml *at, struct str slug,
                        struct err *e) {
    if (script->agent_count == 0 || script_agent_find(script, slug)) return true;
    struct nearest nearest;
    nearest_init(&nearest, slug);
    for (size_t i = 0; i < script->agent_count; i++)
        nearest_offer(&nearest, script->agents[i].slug);
    return yaml_err(e, at, "no agent is called '" STR_FMT "'%s", STR_ARG(slug),
                    nearest_hint(&nearest));
}

bool script_tool_known(const struct script *script, const struct yaml *at, struct str name,
                       struct err *e) {
    if (script_tool_find(script, name)) return true;
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < script->tool_count; i++)
        nearest_offer(&nearest, script->tools[i].name);
    return yaml_err(e, at, "no tool is called '" STR_FMT "'%s", STR_ARG(name),
                    nearest_hint(&nearest));
}

/* --- tools ---------------------------------------------------------------------------- */

struct answer_nodes {
    const struct yaml *result, *error;
    bool stall;
    uint64_t after_us;
};

static const struct yaml_field answer_fields[] = {
    {"result", YAML_NODE, offsetof(struct answer_nodes, result), false},
    {"error", YAML_NODE, offsetof(struct answer_nodes, error), false},
    {"stall", YAML_BOOL, offsetof(struct answer_nodes, stall), false},
    {"after", YAML_DURATION, offsetof(struct answer_nodes, after_us), false},
};

static bool script_parse_read_answer(const struct yaml *at, const struct answer_nodes *nodes,
                                     struct script_answer *ret, struct err *e) {
    int kinds = (nodes->result != NULL) + (nodes->error != NULL) + nodes->stall;
    if (kinds != 1)
        return yaml_err(e, at, "a tool answers with one of: result, error, stall: true");
    if (!script_within_a_day(at, nodes->after_us, e)) return false;
    *ret = (struct script_answer){.after_us = nodes->after_us, .stall = nodes->stall};
    if (nodes->result) return script_json_read(nodes->result, HOLES_OF_TOOL, &ret->result, e);
    if (!nodes->error) return true;
    ret->error = true;
    return yaml_value(nodes->error, YAML_TEXT, &ret->message, e);
}

struct tool_nodes {
    struct str name, description, parameters;
    struct answer_nodes answer; /* the short form: one answer, next to the name */
    const struct yaml *answers;
};

static const struct yaml_field tool_fields[] = {
    {"name", YAML_NAME, offsetof(struct tool_nodes, name), true},
    {"description", YAML_TEXT, offsetof(struct tool_nodes, description), false},
    {"parameters", YAML_JSON, offsetof(struct tool_nodes, parameters), false},
    {"result", YAML_NODE, offsetof(struct tool_nodes, answer.result), false},
    {"error", YAML_NODE, offsetof(struct tool_nodes, answer.error), false},
    {"stall", YAML_BOOL, offsetof(struct tool_nodes, answer.stall), false},
    {"after", YAML_DURATION, offsetof(struct tool_nodes, answer.after_us), false},
    {"answers", YAML_NODE, offsetof(struct tool_nodes, answers), false},
};

static bool read_answers(const struct yaml *list, struct script_tool *tool, struct err *e) {
    if (!want_list(list, "answers", e)) return false;
    if (list->count == 0) return yaml_err(e, list, "a tool needs at least one answer");
    struct script_answer *answers = items_new(list, sizeof(*answers), e);
    if (!answers) return false;
    for (const struct yaml *item = list->first; item; item = item->next) {
        struct answer_nodes nodes = {0};
        if (!yaml_fields(item, "an answer", answer_fields, ARRAY_LEN(answer_fields), &nodes, e))
            return false;
        if (!script_parse_read_answer(item, &nodes, &answers[tool->answer_count++], e))
            return false;
    }
    tool->answers = answers;
    return true;
}

static bool script_parse_read_tool(struct script *script, const struct yaml *node,
                                   struct err *e) {
    struct tool_nodes nodes = {.description = STR_EMPTY,
                               .parameters = STR("{\"type\":\"object\"}")};
    if (!yaml_fields(node, "a tool", tool_fields, ARRAY_LEN(tool_fields), &nodes, e))
        return false;
    if (script_tool_find(script, nodes.name))
        return yaml_err(e, node, "a second tool '" STR_FMT "'; give it another name",
                        STR_ARG(nodes.name));
    struct script_tool *tool = &script->tools[script->tool_count];
    *tool = (struct script_tool){
        .name = nodes.name, .description = nodes.description, .parameters = nodes.parameters};
    if (nodes.answers) {
        const struct answer_nodes *one = &nodes.answer;
        if (one->result || one->error || one->stall || one->after_us)
            return yaml_err(e, node, "give either one answer or the list 'answers', not both");
        if (!read_answers(nodes.answers, tool, e)) return false;
    } else {
        struct script_answer *answer = ARENA_NEW(script->arena, struct script_answer);
        if (!answer) return yaml_err(e, node, "this script is too large");
        if (!script_parse_read_answer(node, &nodes.answer, answer, e)) return false;
        tool->answers = answer;
        tool->answer_count = 1;
    }
    script->tool_count++;
    return true;
}

static bool script_parse_read_tools(struct script *script, const struct yaml *list,
                                    struct err *e) {
    if (!want_list(list, "tools", e)) return false;
    script->tools = items_new(list, sizeof(*script->tools), e);
    if (!script->tools) return false;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!script_parse_read_tool(script, item, e)) return false;
    }
    return true;
}

/* --- scenes --------------------------------------------------------------------------- */

struct branch_nodes {
    const struct yaml *approved, *refused;
};

static const struct yaml_field branch_fields[] = {
    {"approved", YAML_NODE, offsetof(struct branch_nodes, approved), true},
    {"refused", YAML_NODE, offsetof(struct branch_nodes, refused), true},
};

static bool read_reply(const struct script *script, const struct yaml *node,
                       const struct script_pace *pace, struct script_reply *ret,
                       struct err *e) {
    bool branches = yaml_find(node, STR("approved")) || yaml_find(node, STR("refused"));
    *ret = (struct script_reply){.branches = branches};
    if (!branches) return script_steps_read(script, node, pace, &ret->plain, e);

    struct branch_nodes nodes = {0};
    return yaml_fields(node, "a reply to an approval", branch_fields, ARRAY_LEN(branch_fields),
                       &nodes, e) &&
           script_steps_read(script, nodes.approved, pace, &ret->approved, e) &&
           script_steps_read(script, nodes.refused, pace, &ret->refused, e);
}

struct scene_nodes {
    struct str agent, match, exact;
    bool once;
    const struct yaml *pace, *reply, *replies;
};

static const struct yaml_field scene_fields[] = {
    {"agent", YAML_NAME, offsetof(struct scene_nodes, agent), false},
    {"match", YAML_TEXT, offsetof(struct scene_nodes, match), false},
    {"exact", YAML_TEXT, offsetof(struct scene_nodes, exact), false},
    {"once", YAML_BOOL, offsetof(struct scene_nodes, once), false},
    {"pace", YAML_NODE, offsetof(struct scene_nodes, pace), false},
    {"reply", YAML_NODE, offsetof(struct scene_nodes, reply), false},
    {"replies", YAML_NODE, offsetof(struct scene_nodes, replies), false},
};

static bool read_replies(const struct script *script, const struct scene_nodes *nodes,
                         const struct script_pace *pace, struct script_scene *scene,
                         struct err *e) {
    const struct yaml *list = nodes->replies;
    if (!list) {
        struct script_reply *reply = ARENA_NEW(script->arena, struct script_reply);
        if (!reply) return yaml_err(e, nodes->reply, "this script is too large");
        scene->replies = reply;
        scene->reply_count = 1;
        return read_reply(script, nodes->reply, pace, reply, e);
    }
    if (!want_list(list, "replies", e)) return false;
    if (list->count == 0) return yaml_err(e, list, "a scene needs at least one reply");
    struct script_reply *replies = items_new(list, sizeof(*replies), e);
    if (!replies) return false;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!read_reply(script, item, pace, &replies[scene->reply_count++], e)) return false;
    }
    scene->replies = replies;
    return true;
}

/* Refuse a scene that follows one which matches everything: it could never be reached. */
static bool check_reached(const struct script *script, const struct script_scene *scene,
                          const struct yaml *at, struct err *e) {
    for (size_t i = 0; i < script->scene_count; i++) {
        const struct script_scene *above = &script->scenes[i];
        bool any_text = above->match.len == 0 && !above->exact;
        bool any_agent = above->agent.len == 0 || str_equal(above->agent, scene->agent);
        if (any_text && any_agent)
            return yaml_err(
                e, at,
                "this scene is never played: the one on line %u answers every text; "
                "move this one above it",
                above->line);
    }
    return true;
}

static bool read_scene(struct script *script, const struct yaml *node,
                       const struct script_pace *pace, struct err *e) {
    struct scene_nodes nodes = {.agent = STR_EMPTY, .match = STR_EMPTY, .exact = STR_EMPTY};
    if (!yaml_fields(node, "a scene", scene_fields, ARRAY_LEN(scene_fields), &nodes, e))
        return false;
    if (!nodes.reply == !nodes.replies)
        return yaml_err(e, node,
                        "a scene needs 'reply' (its steps) or 'replies' (a list of them)");
    const struct yaml *match = yaml_find(node, STR("match"));
    const struct yaml *exact = yaml_find(node, STR("exact"));
    if (match && exact)
        return yaml_err(e, node, "give 'match' (a part of the text) or 'exact' (all of it)");
    if (match && nodes.match.len == 0)
        return yaml_err(e, match, "an empty 'match' is in every text; leave it out");
    if (nodes.agent.len &&
        !script_agent_known(script, yaml_find(node, STR("agent")), nodes.agent, e))
        return false;

    struct script_scene *scene = &script->scenes[script->scene_count];
    *scene = (struct script_scene){.agent = nodes.agent,
                                   .match = exact ? nodes.exact : nodes.match,
                                   .exact = exact != NULL,
                                   .once = nodes.once,
                                   .line = node->line};
    struct script_pace own = *pace;
    if (nodes.pace && !script_pace_read(nodes.pace, &own, e)) return false;
    if (!check_reached(script, scene, node, e)) return false;
    if (!read_replies(script, &nodes, &own, scene, e)) return false;
    script->scene_count++;
    return true;
}

static bool read_scenes(struct script *script, const struct yaml *list,
                        const struct script_pace *pace, struct err *e) {
    if (!want_list(list, "scenes", e)) return false;
    script->scenes = items_new(list, sizeof(*script->scenes), e);
    if (!script->scenes) return false;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!read_scene(script, item, pace, e)) return false;
    }
    return true;
}

/* --- the script ----------------------------------------------------------------------- */

struct script_nodes {
    uint64_t version;
    struct str model;
    const struct yaml *pace, *agents, *tools, *scenes;
};

static const struct yaml_field script_fields[] = {
    {"script", YAML_COUNT, offsetof(struct script_nodes, version), true},
    {"model", YAML_TEXT, offsetof(struct script_nodes, model), false},
    {"pace", YAML_NODE, offsetof(struct script_nodes, pace), false},
    {"agents", YAML_NODE, offsetof(struct script_nodes, agents), false},
    {"tools", YAML_NODE, offsetof(struct script_nodes, tools), false},
    {"scenes", YAML_NODE, offsetof(struct script_nodes, scenes), true},
};

static bool read_script(struct script *script, const struct yaml *root, struct err *e) {
    struct script_nodes nodes = {.model = STR_EMPTY};
    if (!yaml_fields(root, "a script", script_fields, ARRAY_LEN(script_fields), &nodes, e))
        return false;
    if (nodes.version != SCRIPT_VERSION)
        return yaml_err(e, yaml_find(root, STR("script")),
                        "this is version %llu of the format; version %d is read here",
                        (unsigned long long)nodes.version, SCRIPT_VERSION);
    struct script_pace pace = pace_default;
    script->model = nodes.model;
    return (!nodes.pace || script_pace_read(nodes.pace, &pace, e)) &&
           (!nodes.agents || script_parse_read_agents(script, nodes.agents, e)) &&
           (!nodes.tools || script_parse_read_tools(script, nodes.tools, e)) &&
           (!nodes.agents || check_agents(script, nodes.agents, e)) &&
           read_scenes(script, nodes.scenes, &pace, e);
}

bool script_parse(struct str file, struct str text, struct script **ret, struct err *e) {
    struct arena *arena = arena_new(SCRIPT_ARENA_BYTES);
    struct script *script = ARENA_NEW(arena, struct script);
    script->arena = arena;

    const struct yaml *root;
    if (!yaml_parse(arena, file, text, &root, e) || !read_script(script, root, e)) {
        arena_free(arena);
        return false;
    }
    *ret = script;
    return true;
}
