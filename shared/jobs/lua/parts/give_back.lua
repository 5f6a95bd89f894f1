-- Gives back the place of a job that was under way, or takes one that waits out of its queue, once. The difference between
-- the quantum that it was admitted with and its real number of leaves is booked on its tenant's deficit.
-- `keys`: ring, counts, held, deficit, under way, ends (see pace), queue of its tenant; `most`: ends that are kept.
-- Returns 1 when it waited, 2 when it was under way, 0 when neither.
-- with whole
local function give_back(keys, now, ttl, id, tenant, quantum, leaves, most)
  local ring, counts, held, deficits, under_way, ends, queue = unpack(keys)
  if redis.call('HDEL', under_way, id) == 0 then
    if redis.call('ZREM', queue, id) == 0 then return 0 end
    add(counts, 'waiting', -1)
    if redis.call('ZCARD', queue) == 0 then redis.call('LREM', ring, 0, tenant) end
    return 1
  end
  add(counts, 'held', -1)
  if add(held, tenant, -1) <= 0 then redis.call('HDEL', held, tenant) end
  local before = whole(deficits, tenant)
  local deficit = math.max(-10 * quantum, math.min(0, before + quantum - leaves))
  if deficit < 0 then
    redis.call('HSET', deficits, tenant, deficit)
    redis.call('EXPIRE', deficits, ttl)
  elseif before ~= 0 then
    redis.call('HDEL', deficits, tenant)
  end
  if redis.call('LPUSH', ends, now) > most then redis.call('LTRIM', ends, 0, most - 1) end
  return 2
end
