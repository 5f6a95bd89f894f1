-- An item waits for a server that failed, until the reaper sends it again: longer each time, within what the job allows.
-- Only its first wait is an event: a night of them would push all others out of the stream.
-- KEYS 1 job hash   2 work hash   3 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 item   5 first wait (s)   6 longest wait (s)   7 least wait (s)
--      8 when it goes on without the server   9 kind of server   10 how that failed
-- Returns 1, or 0 when the job has ended or is gone.
-- with count
-- with emit
-- with opened
-- with states
local state, created = unpack(redis.call('HMGET', KEYS[1], 'state', 'created_at'))
if not state or TERMINAL[state] then return 0 end
local item = ARGV[4]
local waits = add_to(KEYS[2], 'waits:' .. item, 1)
local wait = math.min(tonumber(ARGV[5]) * 2 ^ math.min(waits - 1, 30), tonumber(ARGV[6]))
local wanted = tonumber(ARGV[1]) + math.max(wait, tonumber(ARGV[7]))
local until_then = string.format('%.3f', math.min(wanted, tonumber(ARGV[8])))
redis.call('HSET', KEYS[2], 'postponed:' .. item, table.concat({until_then, ARGV[8], ARGV[9], ARGV[10]}, ' '))
redis.call('EXPIRE', KEYS[2], ARGV[2])
if waits == 1 then
  opened(KEYS[3], created)
  emit(KEYS[3], ARGV[3], 'type', 'postponed', 'item', item, 'provider', ARGV[9], 'why', ARGV[10], 'until', until_then,
    'goes_on_at', ARGV[8])
  redis.call('EXPIRE', KEYS[3], ARGV[2])
end
return 1
