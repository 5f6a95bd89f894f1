-- The whole number in a field of a hash, 0 where there is none. Anything else was not written by us, and goes: HINCRBY
-- would fail at it each time.
local function whole(key, field)
  local value = redis.call('HGET', key, field)
  if not value then return 0 end
  if #value <= 15 and string.match(value, '^-?%d+$') then return tonumber(value) end
  redis.call('HDEL', key, field)
  return 0
end

-- Adds to it; returns the sum.
local function add(key, field, by)
  local sum = redis.pcall('HINCRBY', key, field, by)
  if type(sum) == 'number' and math.abs(sum) < 1e15 then return sum end
  whole(key, field)
  return redis.call('HINCRBY', key, field, by)
end
