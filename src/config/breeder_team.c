/* Resolves the subagents of an agent.yaml: existing agents, or files of their own. Each becomes
 * a delegate of the agent that names it. */
#include "config/breeder.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits: the depth of subagents, and the number of agents made from files. */
#define DEPTH_MAX 8
#define AGENTS_MAX 256

static struct config_agent *find_agent(const struct config *config, struct str name) {
    struct config_agent *agents = (struct config_agent *)config->agents; /* not shared yet */
    for (size_t i = 0; i < config->agent_count; i++) {
        if (name.len && breeder_same(agents[i].slug, name)) return &agents[i];
    }
    return NULL;
}

static bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* The agent that was read from this file, by any path. */
static struct config_agent *find_file(const struct config *config, const char *path) {
    struct config_agent *agents = (struct config_agent *)config->agents;
    for (size_t i = 0; i < config->agent_count; i++) {
        char file[4096];
        if (!agents[i].breeder) continue;
        snprintf(file, sizeof(file), STR_FMT, STR_ARG(agents[i].breeder->file));
        if (is_same_file(file, path)) return &agents[i];
    }
    return NULL;
}

/* --- candidate paths ---------------------------------------------------------------------- */

static bool is_file_name(struct str ref) {
    return str_ends(ref, STR(".yaml")) || str_ends(ref, STR(".yml"));
}

/* Look next to the file that names it. `ret` receives the path, ended by NUL. */
static bool try_path(const struct config_breeder *from, struct str name, const char *ending,
                     struct buf *ret) {
    size_t folder = from->file.len;
    while (folder > 0 && from->file.at[folder - 1] != '/') folder--;
    buf_clear(ret);
    if (!str_starts(name, STR("/"))) buf_append(ret, str_head(from->file, folder));
    buf_append(ret, name);
    buf_append(ret, str_from(ending));
    buf_append_byte(ret, '\0');
    return buf_ok(ret) && access(ret->at, R_OK) == 0;
}

/* "agents/summarizer" is a folder or file of that name, in this folder or next to it. */
static bool find_path(const struct config_breeder *from, struct str ref, struct buf *ret) {
    struct str last = breeder_last_part(ref);
    struct buf beside;
    if (is_file_name(ref)) return try_path(from, ref, "", ret);
    buf_init(&beside, KIB);
    buf_printf(&beside, "../" STR_FMT, STR_ARG(last));
    bool found = try_path(from, ref, "/agent.yaml", ret) || try_path(from, ref, ".yaml", ret) ||
                 try_path(from, last, "/agent.yaml", ret) ||
                 try_path(from, last, ".yaml", ret) ||
                 try_path(from, buf_str(&beside), "/agent.yaml", ret);
    buf_done(&beside);
    return found;
}

/* --- one subagent ------------------------------------------------------------------------- */

static bool breeder_team_make_room(struct config *config, const struct yaml *at,
                                   struct err *e) {
    struct config_agent *agents;
    if (config->agent_yaml.room > config->agent_count) return true;
    if (config->agent_count >= AGENTS_MAX)
        return yaml_err(e, at, "there are more than %d agents", AGENTS_MAX);
    size_t room = config->agent_count * 2 + 8;
    agents = arena_alloc(config->arena, room * sizeof(*agents));
    if (!agents) return config_too_large(at, e);
    for (size_t i = 0; i < config->agent_count; i++) agents[i] = config->agents[i];
    config->agents = agents;
    config->agent_yaml.room = room;
    return true;
}

/* `parent` is an index, because the array of agents may move. */
static bool load_subagent(struct config *config, const struct config_input *input,
                          const struct yaml *item, struct str path, size_t parent, size_t *ret,
                          struct err *e) {
    struct config_agent agent;
    unsigned depth = config->agents[parent].breeder->depth + 1;
    if (depth > DEPTH_MAX)
        return yaml_err(e, item, "subagents are more than %d deep here", DEPTH_MAX);
    if (!breeder_team_make_room(config, item, e) ||
        !breeder_read_file(config, input, path, item, &agent, e))
        return false;
    const struct config_agent *other = find_agent(config, agent.slug);
    if (other)
        return yaml_err(e, item,
                        "a second agent '" STR_FMT "': " STR_FMT
                        " has the name of another agent; rename one of them",
                        STR_ARG(agent.slug), STR_ARG(str_head(path, 200)));
    agent.breeder->depth = depth;
    *ret = config->agent_count;
    ((struct config_agent *)config->agents)[config->agent_count++] = agent;
    return true;
}

/* Look for its name, or for the end of the reference. */
static struct config_agent *known_subagent(const struct config *config,
                                           const struct yaml *item) {
    struct str ref = breeder_text(item, "ref");
    struct config_agent *found = find_agent(config, breeder_text(item, "name"));
    if (!found) found = find_agent(config, ref);
    return found ? found : find_agent(config, breeder_last_part(ref));
}

static bool miss_subagent(struct config *config, const struct yaml *item, struct err *e) {
    struct str ref = str_head(breeder_text(item, "ref"), 80);
    if (is_file_name(ref))
        return breeder_missing(config, yaml_find(item, STR("ref")), e,
                               "there is no file '" STR_FMT "' for this subagent",
                               STR_ARG(ref));
    return breeder_missing(config, item, e,
                           "subagent '" STR_FMT "' is nowhere here; write " STR_FMT
                           "/agent.yaml beside this file, or list an agent with 'slug: " STR_FMT
                           "' under 'agents' of the settings",
                           STR_ARG(ref), STR_ARG(ref), STR_ARG(breeder_last_part(ref)));
}

/* *ret: its index, or that of `parent` if it is left out. */
static bool find_subagent(struct config *config, const struct config_input *input,
                          const struct yaml *item, size_t parent, size_t *ret, struct err *e) {
    struct str ref = breeder_text(item, "ref");
    struct config_agent *found = is_file_name(ref) ? NULL : known_subagent(config, item);
    struct buf path;
    bool done = true;
    buf_init(&path, 4 * KIB);
    bool there = !found && find_path(config->agents[parent].breeder, ref, &path);
    if (there) found = find_file(config, path.at);
    if (found) {
        *ret = (size_t)(found - config->agents);
        if (*ret == parent) done = yaml_err(e, item, "an agent cannot be its own subagent");
    } else if (there) {
        done = load_subagent(config, input, item, str_from(path.at), parent, ret, e);
    } else {
        *ret = parent;
        done = miss_subagent(config, item, e);
    }
    buf_done(&path);
    return done;
}

static bool add_subagents(struct config *config, const struct config_input *input, size_t index,
                          struct err *e) {
    const struct yaml *list = config->agents[index].breeder->subagents;
    if (!list) return true;
    struct str *names = arena_alloc(config->arena, (list->count + 1) * sizeof(*names));
    size_t count = 0;
    if (!names) return config_too_large(list, e);
    for (const struct yaml *item = list->first; item; item = item->next) {
        size_t found = index;
        if (!find_subagent(config, input, item, index, &found, e)) {
            if (!config_goes_on(config, e)) return false;
            continue;
        }
        struct config_agent *agents = (struct config_agent *)config->agents;
        if (found == index) continue; /* left out */
        if (!agents[found].description.len)
            agents[found].description = breeder_text(item, "description");
        names[count++] = agents[found].slug;
    }
    ((struct config_agent *)config->agents)[index].delegates = names;
    ((struct config_agent *)config->agents)[index].delegate_count = count;
    return true;
}

/* --- cycles ------------------------------------------------------------------------------- */

enum mark { UNSEEN, ON_THE_WAY, SEEN };

/* Follow the subagents of files to find a circle. Other agents may form one, because the number
 * of transfers in a turn is limited. */
static const struct config_agent *
find_circle(const struct config *config, const struct config_agent *agent, enum mark *marks) {
    enum mark *mark = &marks[agent - config->agents];
    if (*mark == ON_THE_WAY) return agent;
    if (*mark == SEEN || !agent->breeder) return NULL;
    *mark = ON_THE_WAY;
    for (size_t i = 0; i < agent->delegate_count; i++) {
        const struct config_agent *next = find_agent(config, agent->delegates[i]);
        const struct config_agent *found = next ? find_circle(config, next, marks) : NULL;
        if (found) return found;
    }
    *mark = SEEN;
    return NULL;
}

static bool refuse_circles(struct config *config, struct err *e) {
    enum mark *marks = arena_alloc(config->arena, (config->agent_count + 1) * sizeof(*marks));
    if (!marks) return err_set(e, ERR_TOO_LARGE, "the settings are too large");
    for (size_t i = 0; i < config->agent_count; i++) marks[i] = UNSEEN;
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *found = find_circle(config, &config->agents[i], marks);
        if (!found) continue;
        yaml_err(e, found->breeder->subagents,
                 "the subagents of '" STR_FMT "' lead back to it; remove it from theirs",
                 STR_ARG(found->slug));
        return config_goes_on(config, e);
    }
    return true;
}

bool breeder_find_subagents(struct config *config, const struct config_input *input,
                            struct err *e) {
    bool any = false;
    for (size_t i = 0; i < config->agent_count; i++) { /* the count grows meanwhile */
        if (!config->agents[i].breeder) continue;
        any = true;
        if (!add_subagents(config, input, i, e)) return false;
    }
    return !any || refuse_circles(config, e);
}
