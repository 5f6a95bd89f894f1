-- A worker begins an item: a node, or a task of the whole job. Returns what the task must know of its job.
-- KEYS 1 job hash   2 leaves hash   3 work hash   4 nodes hash   5 candidates hash
-- ARGV 1 ttl (s)   2 item   3 attempt: begun at, worker, task   4 1: it goes on with what a search has left
--      5 name of the claim that it needs ('' for none)   6 state of the job in which it may have it   7 claimant
--      8 stale after (s)   9 now
-- A claim lets one task do what may cost money. The same claimant may claim again, another one when the claim is stale.
-- Returns {attempt that had not ended, deaths so far, those of workers that were at nothing else, when it was sent,
-- how it is postponed, state of the node, the node as JSON, 1 when it is claimed, candidates (blob), fields...}; {} when
-- the job is gone.
-- with job_fields
-- with states
local wanted = {unpack(JOB_FIELDS)}  -- the state first, the last change fourth
if ARGV[5] ~= '' then wanted[#wanted + 1] = 'claim:' .. ARGV[5] end
local fields = redis.call('HMGET', KEYS[1], unpack(wanted))
local holder = ARGV[5] ~= '' and table.remove(fields)
local state, changed = fields[1], fields[4]
if not state and redis.call('EXISTS', KEYS[1]) == 0 then return {} end
local item = ARGV[2]
local before, deaths, alone, sent, postponed = unpack(redis.call('HMGET', KEYS[3], 'busy:' .. item, 'dead:' .. item,
  'alone:' .. item, 'sent:' .. item, 'postponed:' .. item))
local node = string.match(item, '^%d') and redis.call('HGET', KEYS[2], item)
local record = node and redis.pcall('HGET', KEYS[4], item)
local found = node == 'searched' and ARGV[4] == '1' and redis.pcall('HGET', KEYS[5], item)
if not TERMINAL[state or ''] then
  redis.call('HSET', KEYS[3], 'busy:' .. item, ARGV[3])
  if state == 'queued' then redis.call('EXPIRE', KEYS[3], ARGV[1]) end  -- later the hash is there
end
local claimed = ARGV[5] ~= '' and state == ARGV[6]
  and not (holder and holder ~= ARGV[7] and tonumber(ARGV[9]) - (tonumber(changed) or 0) < tonumber(ARGV[8]))
if claimed then redis.call('HSET', KEYS[1], 'claim:' .. ARGV[5], ARGV[7], 'updated_at', ARGV[9]) end
return {before or '', deaths or '0', alone or '0', sent or '', postponed or '', node or '',
  type(record) == 'string' and record or '', claimed and '1' or '', type(found) == 'string' and found or '', unpack(fields)}
