-- Admits the next jobs of a lane: deficit round robin over the tenants (Shreedhar and Varghese 1995). Every turn gives a
-- tenant a quantum of leaves and a job takes one quantum; the difference to its real number of leaves is booked when it
-- ends (see leave). A tenant may have as many jobs under way as there is room left (dynamic thresholds, Choudhury and
-- Hahne 1998): one alone gets half of the window, so that the first job of another tenant is admitted at once.
-- An admitted job gets its deadline here: its time runs from its turn. What has waited too long takes no place, nor does
-- what has ended, is gone or cannot be read.
-- KEYS 1 ring   2 counts   3 held   4 deficit   5 under way   6 ends
-- ARGV 1 now   2 ttl (s)   3 window   4 quantum (leaves)   5 lane   6 prefix of the keys of admission queues   7 most jobs
--      taken out of the queues   8, 9 what stands before and behind the id in the key of a job's hash
--      10... priorities of the messages of a job whose tenant has 0, 1, 2... others under way; the last one for more
-- Returns two lists, and 1 where more may be taken at once. Per job whose first message is to be sent: id, priority. Per job
-- that has waited too long: id, seconds that it might wait; it stands in no queue any more and is to be ended.
-- with states
-- with whole
local now, window, quantum, most = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7])
local held = whole(KEYS[2], 'held')
local sent, overdue, taken, passed, idle = {}, {}, 0, 0, held == 0

-- The next job of a queue that may have a place, and its state; nil when there is none.
local function next_job(queue)
  while taken < most do
    local id = redis.call('ZPOPMIN', queue)[1]
    if not id then return nil end
    taken = taken + 1
    add(KEYS[2], 'waiting', -1)
    local job = ARGV[8] .. id .. ARGV[9]
    local found = redis.pcall('HMGET', job, 'state', 'created_at', 'waits_until', 'deadline_s')
    local state, created, waits_until, seconds = found[1], tonumber(found[2]), tonumber(found[3]), tonumber(found[4])
    if state == 'queued' and waits_until and now > waits_until then
      overdue[#overdue + 1] = id
      overdue[#overdue + 1] = string.format('%.3f', waits_until - (created or waits_until))
    elseif state and not TERMINAL[state] then
      return id, job, state, seconds
    end
  end
end

while held < window and passed < redis.call('LLEN', KEYS[1]) and taken < most do
  local tenant = redis.call('LINDEX', KEYS[1], 0)
  local queue = ARGV[6] .. tenant
  local own = whole(KEYS[3], tenant)
  if redis.call('ZCARD', queue) == 0 then
    redis.call('LPOP', KEYS[1])
  elseif own >= math.max(1, window - held) then
    redis.call('RPUSH', KEYS[1], redis.call('LPOP', KEYS[1]))
    passed = passed + 1
  else
    local id, job, state, seconds
    if add(KEYS[4], tenant, quantum) > 0 then
      redis.call('HINCRBY', KEYS[4], tenant, -quantum)
      id, job, state, seconds = next_job(queue)
      passed = 0
    end
    if id then
      local rank = ARGV[math.min(10 + own, #ARGV)]
      redis.call('HSET', KEYS[5], id, ARGV[5] .. ' ' .. tenant)
      redis.call('HINCRBY', KEYS[3], tenant, 1)
      held = add(KEYS[2], 'held', 1)
      local fields = {'rank', rank}
      if state == 'queued' then
        for _, field in ipairs({'admitted_at', ARGV[1], 'updated_at', ARGV[1]}) do fields[#fields + 1] = field end
        if seconds and seconds > 0 then
          fields[#fields + 1], fields[#fields + 2] = 'deadline_at', string.format('%.3f', now + seconds)
        end
        sent[#sent + 1], sent[#sent + 2] = id, rank
      end
      redis.call('HSET', job, unpack(fields))
      redis.call('EXPIRE', job, ARGV[2])
    end
    redis.call('LPOP', KEYS[1])
    if redis.call('ZCARD', queue) > 0 then redis.call('RPUSH', KEYS[1], tenant) end
  end
end
-- The lane was idle until now: the pace is counted from here on.
if idle and held > 0 then redis.call('LPUSH', KEYS[6], '-' .. ARGV[1]) end
-- All have their TTL from when the lane was idle, once half of it is over anew; the deficits come and go.
if idle or redis.call('TTL', KEYS[2]) < tonumber(ARGV[2]) / 2 then
  for i = 1, 6 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
elseif #sent > 0 then
  redis.call('EXPIRE', KEYS[4], ARGV[2])
end
return {sent, overdue, taken < most and 0 or 1}
