-- The leader gives up the lock, if it still holds it.
-- KEYS 1 lock
-- ARGV 1 token
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^%d+') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
