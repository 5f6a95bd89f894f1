-- Reads an entry that was missing again, and where it is still missing takes the lock for computing it. Deletes what
-- can never be served: an entry of another type or one that the caller could not verify, a lock of another type or
-- without a TTL.
-- KEYS 1 entry   2 lock
-- ARGV 1 token   2 lease (ms)   3 sha1 of the entry that did not verify, or empty
-- Returns {status, entry, discarded}: status entry (with the entry), leader (compute it) or follower (wait for it);
-- discarded 1 when an entry was deleted.
local discarded = 0
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'string' then
  local entry = redis.call('GET', KEYS[1])
  if ARGV[3] == '' or redis.sha1hex(entry) ~= ARGV[3] then return {'entry', entry, 0} end
end
if kind ~= 'none' then
  redis.call('DEL', KEYS[1])
  discarded = 1
end
local lock = redis.call('TYPE', KEYS[2]).ok
if lock ~= 'none' and (lock ~= 'string' or redis.call('PTTL', KEYS[2]) < 0) then redis.call('DEL', KEYS[2]) end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {'leader', '', discarded} end
-- The client repeats a command whose reply was lost: its own lock is no reason to wait.
if redis.call('GET', KEYS[2]) == ARGV[1] then return {'leader', '', discarded} end
return {'follower', '', discarded}
