-- (nothing) -> queued, in the admission queue of each job's tenant. A whole page in one step: a job that exists waits in
-- its queue, and one that is refused does not exist. A job that exists already is left as it is. Its event stream is
-- created when it stops waiting (see start_planning, stop, annotate): an empty stream takes 4 KB, more than the job.
-- KEYS 1 ring   2 counts   3 active   4 recent   5... per job: job hash, queue of its tenant
-- ARGV 1 now   2 ttl (s)   3 most jobs that may wait   4 most of one tenant
--      5... per job: id, tenant, seconds that it may wait, number of the following, then field, value pairs of the job
--      hash
-- Returns per job 1: waits now, 0: was there before, -1: refused, the lane is full, -2: refused, the tenant's share is.
-- An error when a key is of another type: that is found before anything is written, so that no job is left half made.
-- Out of memory, Redis refuses the first write of a script or none.
local function check(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', not a ' .. kind)
  end
end
local wrong = check(KEYS[1], 'list') or check(KEYS[2], 'hash') or check(KEYS[3], 'zset') or check(KEYS[4], 'zset')
for key = 6, #KEYS, 2 do wrong = wrong or check(KEYS[key], 'zset') end
if wrong then return wrong end
if not string.match(redis.call('HGET', KEYS[2], 'waiting') or '0', '^-?%d+$') then
  redis.call('HSET', KEYS[2], 'waiting', 0)  -- the reaper counts anew
end
local now, ttl = ARGV[1], ARGV[2]
local out, at, key = {}, 5, 5
while at <= #ARGV do
  local id, tenant, limit, n = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local job, queue = KEYS[key], KEYS[key + 1]
  local waits_until = string.format('%.3f', tonumber(now) + limit)
  local verdict = 1
  if redis.call('EXISTS', job) == 1 then
    verdict = 0
  elseif tonumber(redis.call('HGET', KEYS[2], 'waiting') or 0) >= tonumber(ARGV[3]) then
    verdict = -1
  elseif redis.call('ZCARD', queue) >= tonumber(ARGV[4]) then
    verdict = -2
  else
    redis.call('HSET', job, unpack(ARGV, at + 4, at + 3 + n))
    redis.call('HSET', job, 'state', 'queued', 'created_at', now, 'updated_at', now, 'waits_until', waits_until)
    redis.call('EXPIRE', job, ttl)
    if redis.call('ZCARD', queue) == 0 then redis.call('RPUSH', KEYS[1], tenant) end
    redis.call('ZADD', queue, now, id)
    redis.call('EXPIRE', queue, ttl)
    redis.call('HINCRBY', KEYS[2], 'waiting', 1)
    redis.call('ZADD', KEYS[3], waits_until, id)
    redis.call('ZADD', KEYS[4], now, id)
  end
  out[#out + 1] = verdict
  at, key = at + 4 + n, key + 2
end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', tonumber(now) - tonumber(ttl))
for i = 1, 4 do redis.call('EXPIRE', KEYS[i], ttl) end
return out
