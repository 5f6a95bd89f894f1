-- Decides which items of a job the reaper may send again: those that are still as it has seen them. An older fencing
-- token than the last one is refused.
-- KEYS 1 job hash   2 leaves hash   3 work hash   4 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 fencing token   5 state seen   6 why   7... per item: name, state of the
--      node seen ('' for a task of the job), time of sending seen ('' for none), claim to be freed or '', item whose
--      wait for a server ends by this. Without a why (what has waited was not lost) there is no event and no count.
-- Returns the items that may be sent.
-- with count
-- with emit
-- with opened
local state, fence, created = unpack(redis.call('HMGET', KEYS[1], 'state', 'fence', 'created_at'))
if state ~= ARGV[5] or (tonumber(fence) or 0) > tonumber(ARGV[4]) then return {} end
local out = {}
for i = 7, #ARGV, 5 do
  local item, node = ARGV[i], ARGV[i + 1]
  local sent, mark = unpack(redis.call('HMGET', KEYS[3], 'sent:' .. item, 'busy:' .. item))
  local same = node == '' or redis.call('HGET', KEYS[2], item) == node
  if same and (mark or '') == '' and (sent or '') == ARGV[i + 2] then
    redis.call('HSET', KEYS[3], 'sent:' .. item, ARGV[1] .. ' again')
    if ARGV[i + 3] ~= '' then redis.call('HDEL', KEYS[1], 'claim:' .. ARGV[i + 3]) end
    redis.call('HDEL', KEYS[3], 'postponed:' .. item, 'postponed:' .. ARGV[i + 4])
    out[#out + 1] = item
  end
end
if #out > 0 then
  redis.call('HSET', KEYS[1], 'fence', ARGV[4])
  for _, key in ipairs({KEYS[1], KEYS[3]}) do redis.call('EXPIRE', key, ARGV[2]) end
end
if #out > 0 and ARGV[6] ~= '' then
  add_to(KEYS[1], 'redriven', #out)
  opened(KEYS[4], created)
  emit(KEYS[4], ARGV[3], 'type', 'redriven', 'items', cjson.encode(out), 'why', ARGV[6])
  redis.call('EXPIRE', KEYS[4], ARGV[2])
end
return out
