-- Keeps the chunks that a blob names; they stand in the arguments behind it, each as name and blob, a thousand values at
-- a time: Lua passes 8,000 at most. `start_searching` has created the hash, with its TTL.
local function keep_chunks(key, first)
  for from = first, #ARGV, 1000 do redis.call('HSET', key, unpack(ARGV, from, math.min(from + 999, #ARGV))) end
end
