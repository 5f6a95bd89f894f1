-- Elects the reaper that leads. Each leader gets a fencing token, larger than any before: an older leader is refused.
-- Tokens are at least Redis' time in seconds: else a lost counter would start below the tokens that jobs have seen.
-- A lock that lasts longer than a leader's, or for good, is none, nor is a counter that is no number: we write no such.
-- KEYS 1 lock   2 token counter
-- ARGV 1 who   2 milliseconds   3 ttl of the counter (s)
-- Returns the token, 0 while another one leads.
local held = redis.call('PTTL', KEYS[1])
if held > 0 and held <= tonumber(ARGV[2]) then return 0 end
local counted = redis.call('GET', KEYS[2]) or ''
local last = string.match(counted, '^%d+$') and #counted <= 15 and tonumber(counted) or 0
local seconds = tonumber(redis.call('TIME')[1])
local token = math.max(last + 1, seconds)
redis.call('SET', KEYS[2], string.format('%.0f', token), 'EX', ARGV[3])
redis.call('SET', KEYS[1], string.format('%.0f', token) .. ' ' .. ARGV[1], 'PX', ARGV[2])
return token
