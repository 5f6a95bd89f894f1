-- Adds an entry to a job's event stream, capped at `most`. A stream that cannot be written costs its entries alone, never
-- the half of a change.
local function emit(events, most, ...) redis.pcall('XADD', events, 'MAXLEN', '~', most, '*', ...) end
