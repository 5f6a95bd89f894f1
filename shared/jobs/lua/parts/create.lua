-- (nothing) -> queued, in the admission queue of the job's tenant: a job that exists waits in its queue, and one that is
-- refused does not exist. A job that exists already, or whose idempotency key names one that does, is left as it is; the key
-- is kept with a digest of the first request, and refuses any other. Its
-- event stream is created when it stops waiting (see start_planning, stop, annotate): an empty stream takes 4 KB, more
-- than the job.
-- KEYS of the script begin with   1 active   2 recent; from `first_place` on, per admission queue that its jobs stand in:
--      queue, ring, counts
-- ARGV of the script begin with   1 now   2 ttl (s)   3 JSON: `places`, of each queue its tenant, how many jobs may wait in
--      its lane, and of the tenant, seconds that these jobs may wait, then field, value pairs of the hash of each; `jobs`, of
--      each the number of its place, id, key of its idempotency key (or empty), digest of its request, question, request,
--      then field, value pairs of its own; and more, as the script says
-- Returns 1: waits now, 0: was there before, -1: refused, the lane is full, -2: refused, the tenant's share is, -3: refused,
-- the key is another request's; and the id of the job, there of the one that has the key.
local befores = {}
local function job_key(like, id)
  local before = befores[like] or string.match(like, '^(.-{)')
  befores[like] = before
  return before .. id .. '}:job'
end

-- An error when a key is of another type: that is found before anything is written, so that nothing is left half made.
-- Out of memory, Redis refuses the first write of a script or none.
local function check(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', not a ' .. kind)
  end
end

local given = cjson.decode(ARGV[3])
for _, place in ipairs(given.places) do
  place.waits_until = string.format('%.3f', tonumber(ARGV[1]) + tonumber(place[4]))
  for _, value in ipairs({'state', 'queued', 'created_at', ARGV[1], 'updated_at', ARGV[1], 'waits_until', place.waits_until}) do
    place[#place + 1] = value
  end
end

-- A count of waiting jobs that cannot be read begins anew: the reaper counts.
local function check_keys(first_place)
  local wrong = check(KEYS[1], 'zset') or check(KEYS[2], 'zset')
  for key = first_place, #KEYS, 3 do
    for i, kind in ipairs({'zset', 'list', 'hash'}) do wrong = wrong or check(KEYS[key + i - 1], kind) end
  end
  for _, job in ipairs(given.jobs) do
    if job[3] ~= '' then wrong = wrong or check(job[3], 'string') end
  end
  return wrong
end

-- What is written once for all jobs of the script, behind the last of them: members of sorted sets, {key = {score, member...}};
-- how many jobs each queue and each count has with the new ones, and by how many the count grows.
local members, sizes, waiting, grown, rings = {}, {}, {}, {}, {}

local function put(key, score, id)
  local all = members[key] or {}
  members[key], all[#all + 1], all[#all + 2] = all, score, id
end

local function room(queue, counts, most, most_own)
  if not waiting[counts] then
    local found = redis.call('HGET', counts, 'waiting') or '0'
    local fine = string.match(found, '^-?%d+$')
    if not fine then redis.call('HSET', counts, 'waiting', 0) end
    waiting[counts], grown[counts] = fine and tonumber(found) or 0, 0
  end
  sizes[queue] = sizes[queue] or redis.call('ZCARD', queue)
  if waiting[counts] >= most then return -1 end
  return sizes[queue] >= most_own and -2 or 1
end

local function create(first_place, row)
  local now, ttl, place = ARGV[1], ARGV[2], given.places[row[1] + 1]
  local queue, ring, counts = unpack(KEYS, first_place + 3 * row[1], first_place + 3 * row[1] + 2)
  local tenant, most, most_own = place[1], place[2], place[3]
  local _, id, idempotency, digest, question, request = unpack(row, 1, 6)
  local job = job_key(queue, id)
  local kept = idempotency ~= '' and redis.call('GET', idempotency)
  if kept then
    local first, asked = string.match(kept, '^(%S+) ?(.*)$')
    if first and redis.call('EXISTS', job_key(queue, first)) == 1 then
      return (asked == '' or asked == digest) and 0 or -3, first -- a release before this one kept no digest
    end
  end
  if redis.call('EXISTS', job) == 1 then return 0, id end
  local verdict = room(queue, counts, most, most_own)
  if verdict < 0 then return verdict, id end
  if idempotency ~= '' then redis.call('SET', idempotency, id .. ' ' .. digest, 'EX', ttl) end
  redis.call('HSET', job, 'id', id, 'question', question, 'request', request, unpack(place, 5))
  if row[7] then redis.call('HSET', job, unpack(row, 7)) end
  redis.call('EXPIRE', job, ttl)
  if sizes[queue] == 0 then rings[#rings + 1] = {ring, tenant} end
  sizes[queue], waiting[counts], grown[counts] = sizes[queue] + 1, waiting[counts] + 1, grown[counts] + 1
  put(queue, now, id)
  put(KEYS[1], place.waits_until, id)
  put(KEYS[2], now, id)
  return 1, id
end

local function create_is_done()
  for key, all in pairs(members) do
    for from = 1, #all, 1000 do redis.call('ZADD', key, unpack(all, from, math.min(from + 999, #all))) end
    redis.call('EXPIRE', key, ARGV[2])
  end
  for _, turn in ipairs(rings) do
    redis.call('RPUSH', unpack(turn))
    redis.call('EXPIRE', turn[1], ARGV[2])
  end
  for counts, by in pairs(grown) do
    if by > 0 then redis.call('HINCRBY', counts, 'waiting', by) end
    redis.call('EXPIRE', counts, ARGV[2])
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', tonumber(ARGV[1]) - tonumber(ARGV[2]))
end
