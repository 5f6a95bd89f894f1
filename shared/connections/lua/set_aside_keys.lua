-- Renames each key that holds another type than its own, so that a new one can take its place.
-- KEYS  pairs: a key, the name that it gets
-- ARGV 1 ttl of what is renamed (s)   2 bytes of a string that are returned   3... the type of each key
-- Returns four values for each renamed key: its name, the type that it had, its length, the beginning of a string.
local LENGTH = {string = 'STRLEN', list = 'LLEN', set = 'SCARD', zset = 'ZCARD', hash = 'HLEN', stream = 'XLEN'}
local found = {}
for i = 1, #KEYS, 2 do
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind ~= 'none' and kind ~= ARGV[2 + (i + 1) / 2] then
    local length = LENGTH[kind] and redis.call(LENGTH[kind], KEYS[i]) or 0
    local head = kind == 'string' and redis.call('GETRANGE', KEYS[i], 0, ARGV[2] - 1) or ''
    redis.call('UNLINK', KEYS[i + 1])
    redis.call('RENAME', KEYS[i], KEYS[i + 1])
    redis.call('EXPIRE', KEYS[i + 1], ARGV[1])
    for _, value in ipairs({KEYS[i], kind, length, head}) do found[#found + 1] = value end
  end
end
return found
