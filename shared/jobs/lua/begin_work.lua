-- A worker begins an item: a node, or a task of the whole job. Returns what the task must know of its job.
-- KEYS 1 job hash   2 leaves hash   3 work hash   4 nodes hash   5 candidates hash
-- ARGV 1 ttl (s)   2 item   3 attempt: begun at, worker, task   4 1: it goes on with what a search has left
-- Returns {attempt that had not ended, deaths so far, those of workers that were at nothing else, when it was sent,
-- how it is postponed, state of the node, the node as JSON, candidates (blob), fields...}; {} when the job is gone.
-- with job_fields
-- with states
local fields = redis.call('HMGET', KEYS[1], unpack(JOB_FIELDS))  -- the state first
local state = fields[1]
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
return {before or '', deaths or '0', alone or '0', sent or '', postponed or '', node or '',
  type(record) == 'string' and record or '', type(found) == 'string' and found or '', unpack(fields)}
