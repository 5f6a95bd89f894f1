-- Keeps the chunks that a blob names; they stand in the arguments behind it, each as name and blob.
local function keep_chunks(key, first, ttl)
  if #ARGV < first then return end
  redis.call('HSET', key, unpack(ARGV, first))
  redis.call('EXPIRE', key, ttl)
end
