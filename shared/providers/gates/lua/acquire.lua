-- May a provider be called now? Order: the breaker, a pause, the rate limit (GCRA: a token bucket kept as one time),
-- then the lease of the probe, so that nobody holds the lease while it waits for something else.
-- Of the rate limit interactive calls reserve their turns ahead of time, batch calls only stand in line: a ticket is the
-- time at which the call would go if no interactive call came. A ticket whose time has come while the tokens are gone
-- delays the whole line (shift), so the line keeps its order, however often it is overtaken.
-- KEYS 1 gate (hash): tat, line (the last ticket), shift, batch_at (when a batch call went last, or the line began),
--        pause_until, strikes, fails, failed_at, why, trips, span, opened_at, open_until, probe, probe_until.
--        Times are ms of Redis' clock.
-- ARGV 1 interval of the rate limit (ms; 0 none)   2 burst   3 failures that open the breaker (0 never)
--      4 longest opening (ms)   5 longest pause (ms)   6 the caller's token   7 lease of a probe (ms)
--      8 how long the caller can wait (ms)   9 1: it was given its turn before   10 ms that the gate is remembered
--      11 lane (interactive, batch)   12 the ticket of a batch call that stands in line, or nothing
--      13 tokens that batch calls leave in the bucket   14 ms after which one batch call goes in any case (0 never)
-- Returns {verdict, wait (ms), a, b, failures, why}, numbers as text. What a and b are:
--   go: is it a probe, is a success to be told too (0, 1)   open: ms that it is open in all, until   probing: 0, 0
--   paused: 0, until   turn (it is reserved for this caller): 0, 0   line: the ticket, 0   full: 0, 0
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

local interval, burst, left = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[8])
local tat = math.max(now, at('tat', 3600000)) + interval

-- How long a batch call has to stand in line from now on, and its ticket. 0: it may take a token, or reserve a turn.
local function stand_in_line()
  local shift, most = math.max(0, at('shift', 0)), tonumber(ARGV[14])
  local last, ticket = at('line', 3600000 - shift), tonumber(ARGV[12])
  local others = last + shift > now
  local function next_token(since)
    local free = math.max(now, tat - (burst - tonumber(ARGV[13])) * interval)
    return most > 0 and math.max(now, math.min(free, since + most)) or free
  end
  local due = ticket or (others and last + interval) or next_token(now) - shift
  local wait = due + shift - now
  if ticket and wait <= 0 then
    wait = next_token(at('batch_at', 0)) - now
    if wait > 0 then redis.call('HSET', KEYS[1], 'shift', string.format('%.3f', now + wait - due)) end
  end
  if wait > left then
    -- The place of a call that gives up goes to those behind it.
    if ticket then redis.call('HSET', KEYS[1], 'shift', string.format('%.3f', math.max(0, shift - interval))) end
    return wait, ''
  end
  if wait <= 0 or not (ticket or others) then redis.call('HSET', KEYS[1], 'batch_at', text(now)) end
  if wait > 0 and not ticket then redis.call('HSET', KEYS[1], 'line', string.format('%.3f', due)) end
  keep(math.max(0, wait))
  return wait, string.format('%.3f', due)
end

if interval > 0 and ARGV[9] ~= '1' then
  if ARGV[11] == 'batch' then
    local wait, ticket = stand_in_line()
    if wait > left then return {'full', text(math.ceil(wait)), '0', '0', '0', ''} end
    if wait > 0 then return {'line', text(math.ceil(wait)), ticket, '0', '0', ''} end
  end
  local wait = math.ceil(tat - burst * interval - now)
  if wait > left then return {'full', text(wait), '0', '0', '0', ''} end
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
