-- wrk's request: one message to a conversation, as a client of the orchestrator's REST sends it. The file that
-- BENCH_TALKS names has a line for each conversation: workspace, conversation, token.
local talks, number = {}, 0
for line in io.lines(os.getenv("BENCH_TALKS")) do
    local workspace, conversation, token = line:match("(%S+) (%S+) (%S+)")
    talks[#talks + 1] = {
        path = "/v1/workspaces/" .. workspace .. "/conversations/" .. conversation .. "/messages",
        headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token },
    }
end

function request()
    number = number + 1
    local talk = talks[number % #talks + 1]
    return wrk.format("POST", talk.path, talk.headers, '{"content":{"type":"text","text":"hello"}}')
end
