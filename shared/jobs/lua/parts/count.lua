-- Adds to a count in a hash; one that cannot be read starts anew at 0. Returns the sum.
local function add_to(key, field, by)
  local sum = (tonumber(string.match(redis.call('HGET', key, field) or '', '^-?%d+$')) or 0) + by
  redis.call('HSET', key, field, string.format('%.0f', sum))
  return sum
end

-- The same for several, {field = delta}. Returns {field = sum}.
local function add_all(key, deltas)
  local names, sums, pairs_of = {}, {}, {}
  for name in pairs(deltas) do names[#names + 1] = name end
  for i, value in ipairs(redis.call('HMGET', key, unpack(names))) do
    local name = names[i]
    sums[name] = (tonumber(string.match(value or '', '^-?%d+$')) or 0) + deltas[name]
    pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = name, string.format('%.0f', sums[name])
  end
  redis.call('HSET', key, unpack(pairs_of))
  return sums
end

-- The same for `open`, after the leaves were changed: where it cannot be read, they are counted.
local function add_to_open(job, leaves, by)
  if string.match(redis.call('HGET', job, 'open') or '', '^-?%d+$') then return add_to(job, 'open', by) end
  local open = 0
  for _, status in ipairs(redis.call('HVALS', leaves)) do
    if status ~= 'done' and status ~= 'failed' and status ~= 'grown' then open = open + 1 end
  end
  redis.call('HSET', job, 'open', open)
  return open
end
