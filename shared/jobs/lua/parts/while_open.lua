-- The TTL of what an open job is made of, set when it is created: its time, and as long as it is kept (s). Its end sets the rest.
local function while_open(ttl, deadline_s) return math.ceil(tonumber(ttl) + (tonumber(deadline_s) or 0)) end
