/* The agents of a workspace, for the runtime that carries them. */
#include "base/mem.h"
#include "orchestrator/readers.h"
#include "orchestrator/toolbox_inner.h"

#include <stdlib.h>

struct blueprint_reading {
    struct orchestrator *orchestrator;
    struct orchestrator_blueprint *blueprint; /* NULL: no caller waits for it */
};

/* No list of tools means all of them. */
static const char select_blueprint[] =
    "SELECT json_build_object('workspace_id', $1::text, 'agents', coalesce(json_agg("
    "json_build_object('slug', slug, 'role', role, 'system_prompt', system_prompt, "
    "'description', description, 'allowed_tools', CASE WHEN cardinality(s.allowed_tools) > 0 "
    "THEN to_json(s.allowed_tools) ELSE 'null'::json END, 'model', coalesce(s.model, 'auto')) "
    "ORDER BY sort_order, slug), '[]'::json))::text FROM (SELECT * FROM agents WHERE "
    "workspace_id = $1 ORDER BY sort_order, slug LIMIT 64) a "
    "LEFT JOIN agent_settings s ON s.agent_id = a.id";

static bool failed_for(struct blueprint_reading *reading, const struct err *failed) {
    if (!failed && reading->blueprint) return false;
    if (reading->blueprint && failed->code == ERR_NOT_FOUND)
        orchestrator_blueprint_fail(reading->blueprint, 404, STR("workspace not found"));
    else if (reading->blueprint && readers_refused(failed))
        orchestrator_blueprint_fail(reading->blueprint, 429, err_text(failed));
    else if (reading->blueprint)
        orchestrator_blueprint_fail(reading->blueprint, 503,
                                    STR("the database cannot be reached"));
    free(reading);
    return true;
}

static void on_blueprint(const struct postgres_request *rows, const struct err *failed,
                         void *ctx) {
    struct blueprint_reading *reading = ctx;
    if (failed_for(reading, failed)) return;
    orchestrator_blueprint_answer(reading->blueprint,
                                  postgres_content(postgres_rows(rows, 0), 0, 0));
    free(reading);
}

static void blueprint_on_workspace(struct workspace *found, const struct err *failed,
                                   void *ctx) {
    struct blueprint_reading *reading = ctx;
    if (!failed_for(reading, failed)) {
        struct query *query = query_new();
        QUERY_STEP(query, select_blueprint, postgres_text(found->id));
        const struct read_owner owner = {found->id, found->user};
        readers_ask(reading->orchestrator->queries.readers, &owner, query, on_blueprint,
                    reading);
    }
    workspace_unref(found);
}

static void blueprint_on_left(void *ctx) {
    struct blueprint_reading *reading = ctx;
    reading->blueprint = NULL;
}

void blueprint_serve(struct orchestrator_blueprint *blueprint, struct str workspace,
                     struct str user, void *ctx) {
    struct orchestrator *orchestrator = ctx;
    const struct workspace_question question = {
        .user = user, .id = workspace, .conversation = STR_EMPTY, .make = true, .reads = true};
    if (!orchestrator->talks || orchestrator->stopping) {
        orchestrator_blueprint_fail(blueprint, 503, STR("the service is not ready"));
        return;
    }
    struct blueprint_reading *reading = MEM_NEW(struct blueprint_reading);
    *reading = (struct blueprint_reading){orchestrator, blueprint};
    orchestrator_blueprint_watch(blueprint, blueprint_on_left, reading);
    workspace_find(&orchestrator->queries, &question, blueprint_on_workspace, reading);
}
