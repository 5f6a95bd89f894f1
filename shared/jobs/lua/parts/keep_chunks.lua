-- True when one of `names`, 32 characters each and nothing between them, does not stand there: who has written it, or read
-- it, knew a Redis that has lost its last second since.
local function lost_chunk(key, names)
  for at = 1, #names, 32 do
    if redis.call('HEXISTS', key, string.sub(names, at, at + 31)) == 0 then return true end
  end
end

-- Keeps the chunks that a blob names; they stand in the arguments behind it, each as name and blob, a thousand values at
-- a time: Lua passes 8,000 at most. `start_searching` has created the hash, with its TTL.
local function keep_chunks(key, first)
  for from = first, #ARGV, 1000 do redis.call('HSET', key, unpack(ARGV, from, math.min(from + 999, #ARGV))) end
end
