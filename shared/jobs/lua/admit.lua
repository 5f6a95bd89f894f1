-- Admits the next jobs of each lane: deficit round robin over the tenants (Shreedhar and Varghese 1995). Every turn gives a
-- tenant a quantum of leaves and a job takes one quantum; the difference to its real number of leaves is booked when it
-- ends (see give_back). A tenant may have as many jobs under way as there is room left (dynamic thresholds, Choudhury and
-- Hahne 1998): one alone gets half of the window, so that the first job of another tenant is admitted at once.
-- An admitted job gets its deadline here: its time runs from its turn. What has waited too long takes no place, nor does
-- what has ended, is gone or cannot be read.
-- KEYS 1 under way   2... per lane: ring, counts, held, deficit, ends
-- ARGV 1 now   2 ttl (s)   3 window   4 quantum (leaves)   5 most jobs taken out of the queues of a lane   6, 7 what stands
--      before and behind the id in the key of a job's hash   8... per lane: its name, prefix of the keys of its admission
--      queues, how many priorities follow, and these: of the messages of a job whose tenant has 0, 1, 2... others under way;
--      the last one for more
-- Returns two lists, and 1 where more may be taken at once. Per job whose first message is to be sent: id, priority. Per job
-- that has waited too long: id, seconds that it might wait; it stands in no queue any more and is to be ended.
-- with states
-- with whole
local now, ttl, window, quantum, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local sent, overdue, more = {}, {}, 0

-- How many jobs were taken out of a queue, and the last of them if it may have a place: id, key, state, seconds.
local function next_job(queue, left)
  local taken = 0
  while taken < left do
    local id = redis.call('ZPOPMIN', queue)[1]
    if not id then break end
    taken = taken + 1
    local job = ARGV[6] .. id .. ARGV[7]
    local found = redis.pcall('HMGET', job, 'state', 'created_at', 'waits_until', 'deadline_s')
    local state, created, waits_until, seconds = found[1], tonumber(found[2]), tonumber(found[3]), tonumber(found[4])
    if state == 'queued' and waits_until and now > waits_until then
      overdue[#overdue + 1] = id
      overdue[#overdue + 1] = string.format('%.3f', waits_until - (created or waits_until))
    elseif state and not TERMINAL[state] then
      return taken, id, job, state, seconds
    end
  end
  return taken
end

local function begin(id, job, state, seconds, rank)
  local fields = {'rank', rank}
  if state == 'queued' then
    for _, field in ipairs({'admitted_at', ARGV[1], 'updated_at', ARGV[1]}) do fields[#fields + 1] = field end
    if seconds and seconds > 0 then
      fields[#fields + 1], fields[#fields + 2] = 'deadline_at', string.format('%.3f', now + seconds)
    end
    sent[#sent + 1], sent[#sent + 2] = id, rank
  end
  redis.call('HSET', job, unpack(fields))
  redis.call('EXPIRE', job, ttl)
end

-- Hashes that are empty while the lane is idle have their TTL from its first job on, the others for as long as they are
-- there; all of them anew once half of it is over.
local function renew(key, idle)
  local ring, counts, held, deficit, ends = unpack(KEYS, key, key + 4)
  if redis.call('TTL', counts) < tonumber(ttl) / 2 then
    for _, one in ipairs({ring, counts, held, deficit, ends, KEYS[1]}) do redis.call('EXPIRE', one, ttl) end
  elseif idle then
    for _, one in ipairs({held, KEYS[1]}) do redis.call('EXPIRE', one, ttl) end
  end
end

local function admit_lane(key, lane, prefix, ranks)
  local ring, counts, owners, deficits, ends = unpack(KEYS, key, key + 4)
  local tenants = redis.call('LLEN', ring)
  if tenants == 0 then return end
  local before, begun, taken, passed = whole(counts, 'held'), 0, 0, 0
  while before + begun < window and passed < tenants and taken < most do
    local tenant = redis.call('LINDEX', ring, 0)
    local queue = prefix .. tenant
    local own, waiting = whole(owners, tenant), redis.call('ZCARD', queue)
    if waiting > 0 and own >= math.max(1, window - before - begun) then
      redis.call('LMOVE', ring, ring, 'LEFT', 'RIGHT')
      passed = passed + 1
    else
      local deficit = waiting > 0 and whole(deficits, tenant) + quantum
      if deficit and deficit > 0 then
        local out, id, job, state, seconds = next_job(queue, most - taken)
        taken, waiting, passed = taken + out, waiting - out, 0
        if id then
          redis.call('HSET', KEYS[1], id, lane .. ' ' .. tenant)
          redis.call('HINCRBY', owners, tenant, 1)
          begun = begun + 1
          begin(id, job, state, seconds, ranks[math.min(1 + own, #ranks)])
        end
      elseif deficit then
        redis.call('HSET', deficits, tenant, deficit)
        redis.call('EXPIRE', deficits, ttl)
      end
      if waiting <= 0 then
        redis.call('LPOP', ring)
        tenants = tenants - 1
      elseif tenants > 1 then
        redis.call('LMOVE', ring, ring, 'LEFT', 'RIGHT')
      end
    end
  end
  if taken >= most then more = 1 end
  if taken > 0 then add(counts, 'waiting', -taken) end
  if begun == 0 then return end
  add(counts, 'held', begun)
  -- The lane was idle until now: the pace is counted from here on.
  if before == 0 and redis.call('LPUSH', ends, '-' .. ARGV[1]) == 1 then redis.call('EXPIRE', ends, ttl) end
  renew(key, before == 0)
end

local at = 8
for key = 2, #KEYS, 5 do
  local last = at + 2 + tonumber(ARGV[at + 2])
  admit_lane(key, ARGV[at], ARGV[at + 1], {unpack(ARGV, at + 3, last)})
  at = last + 1
end
return {sent, overdue, more}
