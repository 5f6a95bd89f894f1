-- May a provider be called now? Order: the breaker, a pause, the rate limit (GCRA: a token bucket kept as one time),
-- then the lease of the probe, so that nobody holds the lease while it waits for something else.
-- KEYS 1 gate (hash): tat, pause_until, strikes, fails, failed_at, why, trips, span, opened_at, open_until,
--        probe, probe_until. Times are ms of Redis' clock.
-- ARGV 1 interval of the rate limit (ms; 0 none)   2 burst   3 failures that open the breaker (0 never)
--      4 longest opening (ms)   5 longest pause (ms)   6 the caller's token   7 lease of a probe (ms)
--      8 how long the caller can wait (ms)   9 1: it was given its turn before   10 ms that the gate is remembered
-- Returns {verdict, wait (ms), a, b, failures, why}, numbers as text. What a and b are:
--   go: is it a probe, is a success to be told too (0, 1)   open: ms that it is open in all, until   probing: 0, 0
--   paused: 0, until   turn (it is reserved for this caller): 0, 0   full: 0, 0
local function text(number) return string.format('%.0f', number) end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local flat = redis.pcall('HGETALL', KEYS[1])
if flat.err then
  redis.call('DEL', KEYS[1])
  flat = {}
end
local gate = {}
for i = 1, #flat, 2 do gate[flat[i]] = flat[i + 1] end
-- A clock that was set back must not keep a provider closed for longer than any rule would.
local function at(name, most) return math.min(tonumber(gate[name]) or 0, now + most) end
local function keep(ms)
  local kept = math.ceil(ms) + tonumber(ARGV[10])
  if redis.call('PTTL', KEYS[1]) < kept then redis.call('PEXPIRE', KEYS[1], kept) end
end
local fails, why = text(tonumber(gate.fails) or 0), gate.why or ''

local half_open = false
if tonumber(ARGV[3]) > 0 and gate.open_until then
  local open_until = at('open_until', tonumber(ARGV[4]))
  if now < open_until then
    return {'open', text(math.ceil(open_until - now)), text(tonumber(gate.span) or 0), text(open_until), fails, why}
  end
  local leased = at('probe_until', tonumber(ARGV[4]))
  if gate.probe and gate.probe ~= ARGV[6] and now < leased then
    return {'probing', text(math.ceil(leased - now)), '0', '0', fails, why}
  end
  half_open = true
end

local pause_until = at('pause_until', tonumber(ARGV[5]))
if now < pause_until then return {'paused', text(math.ceil(pause_until - now)), '0', text(pause_until), '0', ''} end

local interval = tonumber(ARGV[1])
if interval > 0 and ARGV[9] ~= '1' then
  local tat = math.max(at('tat', 3600000), now) + interval
  local wait = math.ceil(tat - tonumber(ARGV[2]) * interval - now)
  if wait > tonumber(ARGV[8]) then return {'full', text(wait), '0', '0', '0', ''} end
  redis.call('HSET', KEYS[1], 'tat', string.format('%.3f', tat))
  keep(tat - now)
  if wait > 0 then return {'turn', text(wait), '0', '0', '0', ''} end
end

if half_open then
  redis.call('HSET', KEYS[1], 'probe', ARGV[6], 'probe_until', text(now + tonumber(ARGV[7])))
  keep(tonumber(ARGV[7]))
  return {'go', '0', '1', '1', '0', ''}
end
local watch = (fails ~= '0' or gate.strikes or gate.open_until) and '1' or '0'
return {'go', '0', '0', watch, '0', ''}
