-- Notes how a try went. One whose claim has passed to another worker says nothing.
-- KEYS 1 delivery hash   2 target hash   3 waiting deliveries of the target   4 counts
-- ARGV 1 delivery id   2 the try   3 now   4 status of the reply, or ''   5 why it failed, or '' when it was taken
--      6 seconds until the next try of this delivery, or '' for none   7 first and   8 longest pause of a target that fails
--      9 share of these (jitter)   10 seconds that it is tried   11 1: the target says that it is gone   12 ttl (s)
--      13 1: the target is an endpoint: where it was removed meanwhile, nothing is tried again
-- Returns the state of the delivery, or '' when the try was another's.
-- with schedule
local keys, target = string.match(KEYS[4], '^(.*)counts$'), string.match(KEYS[3], 'waiting:(.*)$')
local tries, since = unpack(redis.call('HMGET', KEYS[1], 'tries', 'since'))
if tries ~= ARGV[2] then return '' end
local now, is_endpoint = tonumber(ARGV[3]), redis.call('HEXISTS', KEYS[2], 'events') == 1
local is_removed = ARGV[13] == '1' and not is_endpoint

local function count(name) redis.call('HINCRBY', KEYS[4], name, 1) end

local function switch_off(why)
  redis.call('HSET', KEYS[2], 'off', why)
  redis.call('HDEL', keys .. 'wanted:' .. redis.call('HGET', KEYS[2], 'tenant'), target)
  count('switched_off')
end

local function fails()
  local strikes = redis.call('HINCRBY', KEYS[2], 'strikes', 1)
  local pause = math.min(tonumber(ARGV[7]) * 2 ^ math.min(strikes - 1, 30), tonumber(ARGV[8])) * tonumber(ARGV[9])
  redis.call('HINCRBY', KEYS[2], 'failed', 1)
  redis.call('HSETNX', KEYS[2], 'failing_since', ARGV[3])
  redis.call('HSET', KEYS[2], 'pause_until', string.format('%.3f', now + pause))
  count('failed')
  local failing_since = tonumber(redis.call('HGET', KEYS[2], 'failing_since'))
  if not is_endpoint then return end
  if ARGV[11] == '1' then
    switch_off('it answered that it is gone (410)')
  elseif now - failing_since >= tonumber(ARGV[10]) then
    switch_off('it has failed for ' .. string.format('%.0f', now - failing_since) .. ' s: ' .. ARGV[5])
  end
end

local state, again = 'waiting', nil
if is_removed then
  state = ARGV[5] == '' and 'delivered' or 'failed'
elseif ARGV[5] == '' then
  state = 'delivered'
  redis.call('HDEL', KEYS[2], 'strikes', 'pause_until', 'failing_since')
  redis.call('HINCRBY', KEYS[2], 'delivered', 1)
  count('delivered')
else
  fails()
  again = tonumber(ARGV[6]) or (is_endpoint and ARGV[11] == '1' and 0)  -- what met the 410 waits, as the others do
  if not again or now + again > tonumber(since) + tonumber(ARGV[10]) then
    state = 'failed'
    count('given_up')
  end
end
redis.call('HSET', KEYS[1], 'state', state, 'last_at', ARGV[3], 'status', ARGV[4], 'error', ARGV[5])
if state == 'waiting' then
  redis.call('ZADD', KEYS[3], now + again, ARGV[1])
else
  redis.call('ZREM', KEYS[3], ARGV[1])
end
redis.call('EXPIRE', KEYS[4], ARGV[12])
if not is_endpoint then redis.call('EXPIRE', KEYS[2], ARGV[12]) end
schedule(keys, target)
return state
