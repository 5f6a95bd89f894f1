-- How a call of a provider ended. Opens and closes its breaker, and lets all workers pause.
-- KEYS 1 gate (hash), as in acquire.lua
-- ARGV 1 outcome: answered; busy (it lives, and wants a pause); failed; unsure (says nothing about the provider)
--      2 the caller's token   3 the pause that the provider asked for (ms; 0 none)   4 what failed, a sentence
--      5 failures that open the breaker (0 never)   6 first opening (ms)   7 longest opening (ms)
--      8 first pause (ms)   9 longest pause (ms)   10 ms after which failures and pauses are forgotten
-- Returns opened or closed when this call did that to the breaker, else an empty string.
local function text(number) return string.format('%.0f', number) end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local key, outcome, forget, news = KEYS[1], ARGV[1], tonumber(ARGV[10]), ''
if redis.call('TYPE', key).ok ~= 'hash' then redis.call('DEL', key) end
local function number(name) return tonumber(redis.call('HGET', key, name)) or 0 end
local is_open = redis.call('HEXISTS', key, 'open_until') == 1
local is_probe = redis.call('HGET', key, 'probe') == ARGV[2]

local function open(fails)
  local trips = number('trips') + 1
  local span = math.min(tonumber(ARGV[6]) * 2 ^ math.min(trips - 1, 30), tonumber(ARGV[7]))
  redis.call('HSET', key, 'trips', text(trips), 'span', text(span), 'opened_at', text(now),
    'open_until', text(now + span), 'fails', text(fails), 'failed_at', text(now), 'why', ARGV[4])
  redis.call('HDEL', key, 'probe', 'probe_until')
  news = 'opened'
end

if outcome == 'answered' or outcome == 'busy' then
  if is_open then news = 'closed' end
  redis.call('HDEL', key, 'fails', 'failed_at', 'why', 'trips', 'span', 'opened_at', 'open_until', 'probe', 'probe_until')
  if outcome == 'answered' then redis.call('HDEL', key, 'strikes') end
elseif outcome == 'failed' then
  local fails = (now - number('failed_at') > forget and not is_open and 0 or number('fails')) + 1
  local most = tonumber(ARGV[5])
  if is_open then
    -- Others that were under way when it opened say nothing new; the probe does.
    if is_probe then open(fails) end
  elseif most > 0 and fails >= most then
    open(fails)
  else
    redis.call('HSET', key, 'fails', text(fails), 'failed_at', text(now), 'why', ARGV[4])
  end
elseif is_probe then
  redis.call('HDEL', key, 'probe', 'probe_until')
end

local asked, longest = tonumber(ARGV[3]), tonumber(ARGV[9])
if asked > 0 then
  local until_then = now + math.min(asked, longest)
  if until_then > number('pause_until') then redis.call('HSET', key, 'pause_until', text(math.ceil(until_then))) end
elseif outcome == 'busy' and now >= number('pause_until') then
  -- One 429 in a pause was under way when it began: only the first after a pause makes the next one longer.
  local strikes = now - number('pause_until') > forget and 0 or number('strikes')
  local pause = math.min(tonumber(ARGV[8]) * 2 ^ math.min(strikes, 30), longest)
  redis.call('HSET', key, 'pause_until', text(math.ceil(now + pause)), 'strikes', text(strikes + 1))
end

local last = math.max(now, number('tat'), number('open_until'), number('pause_until'), number('probe_until'))
redis.call('PEXPIRE', key, math.ceil(math.min(last - now, 3600000) + forget))
return news
