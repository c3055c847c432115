#include "orchestrator/tables.h"

#define TIMES                                                                                  \
    "created_at timestamptz NOT NULL DEFAULT clock_timestamp(), "                              \
    "updated_at timestamptz NOT NULL DEFAULT clock_timestamp()"
#define COUNTERS                                                                               \
    "tokens_used bigint NOT NULL DEFAULT 0, prompt_tokens_used bigint NOT NULL DEFAULT 0, "    \
    "completion_tokens_used bigint NOT NULL DEFAULT 0, "                                       \
    "cost_usd numeric(18,6) NOT NULL DEFAULT 0, request_count bigint NOT NULL DEFAULT 0, "     \
    "last_updated_at timestamptz NOT NULL DEFAULT now()"

static const char *const first[] = {
    "CREATE TABLE workspaces (id text PRIMARY KEY, user_id text NOT NULL, "
    "name text NOT NULL DEFAULT '', " TIMES ")",
    "CREATE INDEX workspaces_user ON workspaces (user_id)",

    "CREATE TABLE agents (id text PRIMARY KEY, "
    "workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE, "
    "name text NOT NULL, role text NOT NULL, slug text NOT NULL, "
    "avatar_url text NOT NULL DEFAULT '', system_prompt text NOT NULL DEFAULT '', "
    "description text NOT NULL DEFAULT '', sort_order int NOT NULL DEFAULT 0, " TIMES
    ", UNIQUE (workspace_id, slug))",

    "CREATE TABLE agent_settings (agent_id text PRIMARY KEY REFERENCES agents ON DELETE "
    "CASCADE, "
    "model text NOT NULL DEFAULT 'auto', response_length text NOT NULL DEFAULT 'auto', "
    "allowed_tools text[] NOT NULL DEFAULT '{}', " TIMES ")",

    "CREATE TABLE conversations (id text PRIMARY KEY, "
    "workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE, "
    "agent_id text REFERENCES agents ON DELETE CASCADE, "
    "type text NOT NULL CHECK (type IN ('swarm', 'agent')), title text NOT NULL DEFAULT '', "
    "unread_count int NOT NULL DEFAULT 0, " TIMES ")",
    "CREATE INDEX conversations_workspace ON conversations (workspace_id)",

    "CREATE TABLE messages (id text PRIMARY KEY, "
    "conversation_id text NOT NULL REFERENCES conversations ON DELETE CASCADE, "
    "role text NOT NULL CHECK (role IN ('user', 'agent', 'system')), content jsonb NOT NULL, "
    "status text NOT NULL, local_id text, agent_id text, "
    "attachments jsonb NOT NULL DEFAULT '[]', turn_id text, " TIMES ")",
    "CREATE INDEX messages_newest ON messages (conversation_id, created_at DESC, id DESC)",
    "CREATE INDEX messages_pending ON messages (updated_at) WHERE status = 'pending'",
    "CREATE INDEX messages_turn ON messages (turn_id)",
    "CREATE UNIQUE INDEX messages_local ON messages (conversation_id, local_id) "
    "WHERE role = 'user' AND local_id IS NOT NULL",

    "CREATE TABLE agent_delegations (id text PRIMARY KEY, workspace_id text NOT NULL, "
    "conversation_id text NOT NULL, trigger_message_id text, delegator_agent_id text NOT NULL, "
    "delegate_agent_id text NOT NULL, tool_name text NOT NULL DEFAULT '', "
    "task_summary text NOT NULL DEFAULT '', status text NOT NULL, duration_ms bigint, " TIMES
    ")",
    "CREATE INDEX agent_delegations_conversation ON agent_delegations (conversation_id)",

    "CREATE TABLE agent_messages (id text PRIMARY KEY, workspace_id text NOT NULL, "
    "conversation_id text NOT NULL, root_message_id text, from_agent_id text, "
    "from_agent_slug text NOT NULL, to_agent_id text, to_agent_slug text NOT NULL, "
    "request_text text NOT NULL, response_text text NOT NULL DEFAULT '', status text NOT NULL, "
    "error text NOT NULL DEFAULT '', depth int NOT NULL DEFAULT 0, duration_ms bigint, " TIMES
    ")",
    "CREATE INDEX agent_messages_conversation ON agent_messages (conversation_id, status)",

    "CREATE TABLE mcp_audit_logs (id text PRIMARY KEY, user_id text NOT NULL, "
    "workspace_id text NOT NULL, session_id text NOT NULL DEFAULT '', tool text NOT NULL, "
    "input jsonb, output jsonb, error text NOT NULL DEFAULT '', success boolean NOT NULL, "
    "duration_ms bigint NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now())",
    "CREATE INDEX mcp_audit_logs_workspace ON mcp_audit_logs (workspace_id, created_at)",

    "CREATE TABLE usage_plans (plan_id text PRIMARY KEY, name text NOT NULL, "
    "monthly_token_limit bigint NOT NULL DEFAULT 500000, daily_request_limit int, "
    "max_tokens_per_request int, " TIMES ")",
    "INSERT INTO usage_plans (plan_id, name, monthly_token_limit) "
    "VALUES ('free', 'Free', 500000), ('pro', 'Pro', 10000000)",

    "CREATE TABLE usage_quotas (id text PRIMARY KEY, user_id text NOT NULL, "
    "plan_id text NOT NULL DEFAULT 'free' REFERENCES usage_plans, "
    "effective_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz, " TIMES ")",
    "CREATE UNIQUE INDEX usage_quotas_one ON usage_quotas (user_id, plan_id) "
    "WHERE expires_at IS NULL",

    "CREATE TABLE usage_counters (user_id text NOT NULL, period text NOT NULL, " COUNTERS
    ", PRIMARY KEY (user_id, period))",
    "CREATE TABLE agent_usage_counters (agent_id text PRIMARY KEY, workspace_id text NOT "
    "NULL, " COUNTERS ")",

    "CREATE TABLE model_pricing (provider text NOT NULL, model text NOT NULL, "
    "region text NOT NULL DEFAULT 'global', "
    "input_cost_per_token numeric(18,12) NOT NULL DEFAULT 0, "
    "output_cost_per_token numeric(18,12) NOT NULL DEFAULT 0, "
    "cached_cost_per_token numeric(18,12) NOT NULL DEFAULT 0, source text NOT NULL DEFAULT '', "
    "effective_at timestamptz NOT NULL DEFAULT now(), "
    "PRIMARY KEY (provider, model, region, effective_at))",

    /* One row a model call. `published_at` is when NATS had taken it. */
    "CREATE TABLE usage_events (seq bigserial UNIQUE, event_id text PRIMARY KEY, "
    "event_time timestamptz NOT NULL DEFAULT clock_timestamp(), user_id text NOT NULL, "
    "workspace_id text NOT NULL, conversation_id text NOT NULL, message_id text NOT NULL, "
    "agent_id text NOT NULL, agent_db_id text NOT NULL, model text NOT NULL, "
    "provider text NOT NULL, prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL, "
    "total_tokens bigint NOT NULL, tool_use_prompt_tokens bigint NOT NULL, "
    "thoughts_tokens bigint NOT NULL, cached_tokens bigint NOT NULL, "
    "cost_usd numeric(18,6) NOT NULL, call_sequence bigint NOT NULL, turn_id text NOT NULL, "
    "session_id text NOT NULL, published_at timestamptz)",
    "CREATE INDEX usage_events_unpublished ON usage_events (seq) WHERE published_at IS NULL",
    "CREATE INDEX usage_events_user ON usage_events (user_id, event_time)",
    0,
};

#define TOKENS                                                                                 \
    "prompt_tokens bigint NOT NULL DEFAULT 0, completion_tokens bigint NOT NULL DEFAULT 0, "   \
    "total_tokens bigint NOT NULL DEFAULT 0, tool_use_prompt_tokens bigint NOT NULL DEFAULT "  \
    "0, thoughts_tokens bigint NOT NULL DEFAULT 0, cached_tokens bigint NOT NULL DEFAULT 0, "  \
    "cost_usd numeric(18,6) NOT NULL DEFAULT 0"

static const char *const second[] = {
    "CREATE INDEX agent_messages_running ON agent_messages (updated_at) WHERE status = "
    "'running'",
    "CREATE INDEX conversations_page ON conversations (workspace_id, (type <> 'swarm'), title, "
    "id)",
    "CREATE INDEX conversations_order ON conversations (workspace_id, updated_at DESC, id)",

    /* What `weir usage --from nats` has taken from the stream. */
    "CREATE TABLE llm_usage (event_id text PRIMARY KEY, event_time timestamptz NOT NULL, "
    "user_id text NOT NULL, workspace_id text NOT NULL, conversation_id text NOT NULL, "
    "message_id text NOT NULL, agent_id text NOT NULL, agent_db_id text NOT NULL, "
    "model text NOT NULL, provider text NOT NULL, " TOKENS ", "
    "call_sequence bigint NOT NULL DEFAULT 0, turn_id text NOT NULL, session_id text NOT NULL)",
    "CREATE INDEX llm_usage_time ON llm_usage (event_time)",
    "CREATE TABLE llm_usage_daily (day date NOT NULL, user_id text NOT NULL, "
    "workspace_id text NOT NULL, agent_id text NOT NULL, model text NOT NULL, "
    "calls bigint NOT NULL DEFAULT 0, " TOKENS
    ", PRIMARY KEY (day, user_id, workspace_id, agent_id, model))",
    "CREATE INDEX llm_usage_daily_user ON llm_usage_daily (user_id, day)",
    0,
};

const struct tables_step tables_steps[] = {{first}, {second}};
const size_t tables_newest = sizeof(tables_steps) / sizeof(tables_steps[0]);
