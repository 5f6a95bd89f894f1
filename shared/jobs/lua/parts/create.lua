-- (nothing) -> queued, in the admission queue of the job's tenant: a job that exists waits in its queue, and one that is
-- refused does not exist. A job that exists already, or whose idempotency key names one that does, is left as it is. Its
-- event stream is created when it stops waiting (see start_planning, stop, annotate): an empty stream takes 4 KB, more
-- than the job.
-- KEYS of the script begin with   1 active   2 recent; from `key` on: job hash, queue of its tenant, ring, counts,
--      idempotency key (or empty)
-- ARGV of the script begin with   1 now   2 ttl (s); from `at` on: id, tenant, seconds that it may wait, most jobs
--      that may wait, most of one tenant, number of the following, then field, value pairs of the job hash
-- Returns 1: waits now, 0: was there before, -1: refused, the lane is full, -2: refused, the tenant's share is; and the id
-- of the job.
local function job_key(like, id) return string.match(like, '^(.-{)') .. id .. '}:job' end

-- An error when a key is of another type: that is found before anything is written, so that nothing is left half made.
-- Out of memory, Redis refuses the first write of a script or none.
local function check(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', not a ' .. kind)
  end
end

-- `first`: index of the keys of the first job. A count of waiting jobs that cannot be read begins anew: the reaper counts.
local function check_keys(first)
  local wrong, seen = check(KEYS[1], 'zset') or check(KEYS[2], 'zset'), {}
  for key = first, #KEYS, 5 do
    for i, kind in ipairs({'zset', 'list', 'hash', 'string'}) do
      local name = KEYS[key + i]
      if name ~= '' and not seen[name] then wrong = wrong or check(name, kind) end
      seen[name] = true
    end
  end
  if wrong then return wrong end
  for key = first, #KEYS, 5 do
    if not string.match(redis.call('HGET', KEYS[key + 3], 'waiting') or '0', '^-?%d+$') then
      redis.call('HSET', KEYS[key + 3], 'waiting', 0)
    end
  end
end

local function create(key, at)
  local job, queue, ring, counts, idempotency = unpack(KEYS, key, key + 4)
  local id, tenant, limit, most, most_own, n = unpack(ARGV, at, at + 5)
  local now, ttl = ARGV[1], ARGV[2]
  local first = idempotency ~= '' and redis.call('GET', idempotency)
  if first and redis.call('EXISTS', job_key(job, first)) == 1 then return 0, first end
  if redis.call('EXISTS', job) == 1 then return 0, id end
  if tonumber(redis.call('HGET', counts, 'waiting') or 0) >= tonumber(most) then return -1, id end
  if redis.call('ZCARD', queue) >= tonumber(most_own) then return -2, id end
  if idempotency ~= '' then redis.call('SET', idempotency, id, 'EX', ttl) end
  redis.call('HSET', job, unpack(ARGV, at + 6, at + 5 + n))
  local waits_until = string.format('%.3f', tonumber(now) + tonumber(limit))
  redis.call('HSET', job, 'state', 'queued', 'created_at', now, 'updated_at', now, 'waits_until', waits_until)
  redis.call('EXPIRE', job, ttl)
  if redis.call('ZCARD', queue) == 0 then redis.call('RPUSH', ring, tenant) end
  redis.call('ZADD', queue, now, id)
  redis.call('HINCRBY', counts, 'waiting', 1)
  redis.call('ZADD', KEYS[1], waits_until, id)
  redis.call('ZADD', KEYS[2], now, id)
  for _, used in ipairs({queue, ring, counts}) do redis.call('EXPIRE', used, ttl) end
  return 1, id
end

local function create_is_done()
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', tonumber(ARGV[1]) - tonumber(ARGV[2]))
  for i = 1, 2 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
end
