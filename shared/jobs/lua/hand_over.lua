-- A client hands over the next item of an ingest, or closes the hand-over: from then on the job ends when all are done.
-- Repeating it changes nothing. Each call tells that the client is there.
-- KEYS 1 job hash   2 leaves hash   3 inbox hash   4 work hash   5 line
-- ARGV 1 now   2 ttl (s)   3 max events   4 most items at workers   5 most that have not ended   6 files in it
--      7 item ('': nothing but that the client is there; 0: the hand-over is closed)   8 blob
-- Returns {1, open items, items that are to be sent...}; {0} where too many have not ended; {-1} when the job takes none.
-- with count
-- with next_items
local state, open, handed = unpack(redis.call('HMGET', KEYS[1], 'state', 'open', 'ingest:handed'))
local item, handing = ARGV[7], redis.call('HGET', KEYS[2], '0') == 'open'
if state ~= 'indexing' or not handing and item ~= '0' then return {-1} end
open = tonumber(open) or 0
local number = tonumber(string.match(item, '^0%.(%d+)$'))
if handing then redis.call('HSET', KEYS[4], 'sent:0', ARGV[1]) end
if number and number > (tonumber(handed) or 0) then
  if open - 1 >= tonumber(ARGV[5]) then return {0} end
  redis.call('HSET', KEYS[3], item, ARGV[8])
  redis.call('HSET', KEYS[2], item, 'waiting')
  redis.call('RPUSH', KEYS[5], item)
  for i = 3, 5, 2 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
  open = add_to_open(KEYS[1], KEYS[2], 1)
  add_to(KEYS[1], 'leaves_total', 1)
  add_to(KEYS[1], 'ingest:files', tonumber(ARGV[6]))
  redis.call('HSET', KEYS[1], 'ingest:handed', number)
elseif item == '0' and handing then
  redis.call('HDEL', KEYS[2], '0')
  redis.call('HDEL', KEYS[4], 'sent:0')
  open = add_to_open(KEYS[1], KEYS[2], -1)
  add_to(KEYS[1], 'leaves_done', 1)
else
  return {1, item == '0' and open or -1}
end
redis.call('HSET', KEYS[1], 'updated_at', ARGV[1])
return {1, open, unpack(next_items(KEYS[2], KEYS[4], KEYS[5], open, tonumber(ARGV[4]), ARGV[1]))}
