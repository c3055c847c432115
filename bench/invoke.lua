-- wrk's request: one turn of a session of its own, as a caller of Runtime Contract v1 sends it.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local number = 0

function request()
    number = number + 1
    return wrk.format(nil, nil, nil, '{"input":"hello","session_id":"bench-' .. number % 64 .. '"}')
end
