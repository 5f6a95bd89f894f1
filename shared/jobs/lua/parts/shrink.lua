-- A stream allocates 4 KB at a time; restored from its dump it takes only what it needs. It has no TTL then.
local function shrink(stream)
  local dump = redis.pcall('DUMP', stream)
  if type(dump) == 'string' then redis.pcall('RESTORE', stream, 0, dump, 'REPLACE') end
end
