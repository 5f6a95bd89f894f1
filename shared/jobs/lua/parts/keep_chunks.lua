-- Keeps the chunks that a blob names; they stand in the arguments behind it, each as name and blob. `start_searching` has
-- created the hash, with its TTL.
local function keep_chunks(key, first)
  if #ARGV >= first then redis.call('HSET', key, unpack(ARGV, first)) end
end
