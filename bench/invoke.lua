-- wrk's request: one turn, as a caller of Runtime Contract v1 sends it. BENCH_SESSIONS sessions, 64 unless
-- said, take turns; with more of them than calls each call begins a session.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local number = 0
local sessions = tonumber(os.getenv("BENCH_SESSIONS") or 64)

function request()
    number = number + 1
    return wrk.format(nil, nil, nil, '{"input":"hello","session_id":"bench-' .. number % sessions .. '"}')
end
