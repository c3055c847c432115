#include "daemon/team_process.h"

#include "agent/process.h"
#include "base/mem.h"
#include "loop/child.h"
#include "wire/yaml.h"

#include <stdlib.h>

static struct str path_of(const struct config_agent *from) {
    for (size_t i = 0; i < from->environment_count; i++) {
        if (str_starts(from->environment[i], STR("PATH=")))
            return str_skip(from->environment[i], 5);
    }
    return STR_EMPTY;
}

/* The texts of the settings end in NUL. */
static const char **list_of(const struct str *texts, size_t count) {
    const char **list = mem_zero(count + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) list[i] = texts[i].at;
    return list;
}

bool team_process_new(const struct config_agent *from, struct process_pool *pool,
                      struct provider **ret, struct err *e) {
    struct buf path;
    buf_init(&path, 64 * KIB);
    if (!child_find(from->command[0], path_of(from), &path)) {
        buf_done(&path);
        return yaml_err(e, yaml_find(from->at, STR("command")),
                        "there is no program '" STR_FMT "'",
                        STR_ARG(str_head(from->command[0], 200)));
    }
    const char **args = list_of(from->command, from->command_count);
    const char **environment = list_of(from->environment, from->environment_count);
    *ret = process_provider_new(&(struct process_options){.name = from->slug,
                                                          .path = path.at,
                                                          .args = args,
                                                          .environment = environment,
                                                          .processes_max = from->processes,
                                                          .stall_ms = from->silence_ms,
                                                          .pool = pool});
    free(args);
    free(environment);
    buf_done(&path);
    return true;
}
