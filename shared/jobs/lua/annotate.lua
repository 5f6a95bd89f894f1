-- Adds to a job's costs, warnings and reasons, in any state; a job that is gone stays gone. A warning that is in the
-- list already is not added again, nor is a reason. A job that has ended gets no more reasons: its batch has counted them.
-- KEYS 1 job hash   2 warnings list   3 events stream
-- ARGV 1 ttl (s)   2 max events   3 max warnings   4 item of the work   5 reasons for what it was made without, joined by
-- commas   6 number of cost pairs   7... field, delta pairs, then warnings
-- Returns 1, or 0 when the job is unknown.
-- with count
-- with emit
-- with opened
-- with states
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local after = 7 + 2 * tonumber(ARGV[6])
for i = 7, after - 1, 2 do
  add_to(KEYS[1], 'cost:' .. ARGV[i], tonumber(ARGV[i + 1]))
  if ARGV[4] ~= '' then add_to(KEYS[1], 'paid:' .. ARGV[4] .. ':' .. ARGV[i], tonumber(ARGV[i + 1])) end
end

local function add_reason(field, reason)
  local known = redis.call('HGET', KEYS[1], field) or ''
  if string.find(',' .. known .. ',', ',' .. reason .. ',', 1, true) then return false end
  local all = {reason}
  for one in string.gmatch(known, '[^,]+') do all[#all + 1] = one end
  table.sort(all)
  redis.call('HSET', KEYS[1], field, table.concat(all, ','))
  return true
end

local reasons = TERMINAL[redis.call('HGET', KEYS[1], 'state') or ''] and '' or ARGV[5]
for reason in string.gmatch(reasons, '[^,]+') do
  add_reason('degraded', reason)
  if add_reason('degraded:' .. ARGV[4], reason) then
    opened(KEYS[3], redis.call('HGET', KEYS[1], 'created_at'))
    emit(KEYS[3], ARGV[2], 'type', 'degraded', 'item', ARGV[4], 'reason', reason)
    redis.call('EXPIRE', KEYS[3], ARGV[1])
  end
end
if after <= #ARGV then
  if redis.call('TYPE', KEYS[2]).ok ~= 'list' then redis.call('DEL', KEYS[2]) end
  local known = {}
  for _, warning in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do known[warning] = true end
  local count = redis.call('LLEN', KEYS[2])
  opened(KEYS[3], redis.call('HGET', KEYS[1], 'created_at'))
  for i = after, #ARGV do
    if not known[ARGV[i]] and count < tonumber(ARGV[3]) then
      redis.call('RPUSH', KEYS[2], ARGV[i])
      emit(KEYS[3], ARGV[2], 'type', 'warning', 'text', ARGV[i], 'item', ARGV[4])
      known[ARGV[i]], count = true, count + 1
    end
  end
  redis.call('EXPIRE', KEYS[2], ARGV[1])
  redis.call('EXPIRE', KEYS[3], ARGV[1])
end
return 1
