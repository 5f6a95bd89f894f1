-- True when one of `names`, 32 characters each and nothing between them, does not stand there: who has written it, or read
-- it, knew a Redis that has lost its last second since. One call for a thousand: each call of a script costs.
local function lost_chunk(key, names)
  for first = 1, #names, 32000 do
    local asked = {}
    for at = first, math.min(#names, first + 31999), 32 do asked[#asked + 1] = string.sub(names, at, at + 31) end
    local found = redis.pcall('HMGET', key, unpack(asked))
    if found.err then return false end  -- a key of another type: `keep_chunks` fails then, when the note is left
    for at = 1, #asked do
      if not found[at] then return true end
    end
  end
end

-- Keeps the chunks that a blob names; they stand in the arguments behind it, each as name and blob, a thousand values at
-- a time: Lua passes 8,000 at most. `start_searching` has created the hash, with its TTL.
local function keep_chunks(key, first)
  for from = first, #ARGV, 1000 do redis.call('HSET', key, unpack(ARGV, from, math.min(from + 999, #ARGV))) end
end
