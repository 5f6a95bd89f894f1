-- What became of an item of an ingest is recorded once: counts, report, and the items that it was split into, in one step.
-- The next items are taken out of the line, and are the recorder's to send. Of those that ended well nothing is kept.
-- KEYS 1 job hash   2 leaves hash   3 events stream   4 work hash   5 inbox hash   6 line   7 outcomes stream
--      8 failures list   9 seen hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 note of the task   5 item   6 status (done|failed|grown)   7 most items at workers
--      8 report (blob) or ''   9 most reports kept   10 most failures kept   11 what was seen (blob) or ''
--      12 number of the following   12+... counts: name, by   then the number of failures, and each   then the items that
--      it was split into: item, blob
-- Returns {1, open items, items that are to be sent...}; {0} when it was recorded before, or the job is not indexing: of one
-- that has ended meanwhile, but not well, what the item did is counted, since it is in the store, and nothing follows.
-- with count
-- with next_items
-- with note
local said, state = leave_note(KEYS[1], ARGV[2], ARGV[3], ARGV[4], 'state')
local item = ARGV[5]
write_job(KEYS[1], said, 'updated_at', ARGV[1])
drop_mark(KEYS[1], said)
local over = state == 'cancelled' or state == 'failed' or state == 'expired'
if (state ~= 'indexing' and not over) or redis.call('HGET', KEYS[2], item) ~= 'pending' then return {0} end
local at = 13 + 2 * ARGV[12]
for i = 13, at - 1, 2 do add_to(KEYS[1], 'ingest:' .. ARGV[i], tonumber(ARGV[i + 1])) end
local failures = tonumber(ARGV[at])
if failures > 0 and redis.call('LLEN', KEYS[8]) < tonumber(ARGV[10]) then
  for i = at + 1, at + failures do redis.call('RPUSH', KEYS[8], ARGV[i]) end
  redis.call('LTRIM', KEYS[8], 0, ARGV[10] - 1)
  redis.call('EXPIRE', KEYS[8], ARGV[2])
end
if ARGV[8] ~= '' then
  redis.call('XADD', KEYS[7], 'MAXLEN', '~', ARGV[9], '*', 'report', ARGV[8])
  redis.call('EXPIRE', KEYS[7], ARGV[2])
end
if ARGV[11] ~= '' then
  redis.call('HSET', KEYS[9], item, ARGV[11])
  redis.call('EXPIRE', KEYS[9], ARGV[2])
end
if over then
  redis.call('HDEL', KEYS[2], item)
  return {0}
end
local made = 0
for i = #ARGV - 1, at + failures + 1, -2 do  -- in front of the line, in their order: an ingest goes on where it is
  redis.call('HSET', KEYS[5], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i], 'waiting')
  redis.call('LPUSH', KEYS[6], ARGV[i])
  made = made + 1
end
if made > 0 then
  redis.call('EXPIRE', KEYS[5], ARGV[2])
  redis.call('EXPIRE', KEYS[6], ARGV[2])
  add_to(KEYS[1], 'leaves_total', made)
end
if ARGV[6] == 'failed' then redis.call('HSET', KEYS[2], item, ARGV[6]) else redis.call('HDEL', KEYS[2], item) end
redis.call('HDEL', KEYS[5], item)
redis.call('HDEL', KEYS[4], 'sent:' .. item)
add_to(KEYS[1], ARGV[6] == 'failed' and 'leaves_failed' or 'leaves_done', 1)
local open = add_to_open(KEYS[1], KEYS[2], made - 1)
local read, files = unpack(redis.call('HMGET', KEYS[1], 'ingest:read', 'ingest:files'))
emit(KEYS[3], ARGV[3], 'type', 'indexed', 'item', item, 'status', ARGV[6], 'read', read or '0', 'files', files or '0')
return {1, open, unpack(next_items(KEYS[2], KEYS[4], KEYS[6], open, tonumber(ARGV[7]), ARGV[1]))}
