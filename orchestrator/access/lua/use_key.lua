-- Lets one request of an API key through, or says why not. The rate is that of a token bucket as large as a minute's
-- requests (generic cell rate algorithm), by the time of this Redis: all server processes share it.
-- KEYS 1 key hash   2 rate: theoretical arrival time (ms)
-- ARGV 1 digest of the secret   2 1: the secret has been checked, as of a login   3 seconds between two notes of the use
-- Returns {verdict, ms to wait, digest, fields...}: unknown, revoked, expired, limited or taken; digest and fields of a
--      key that is there, the fields as HGETALL gives them. A request with a wrong secret takes nothing of the rate.
local fields = redis.call('HGETALL', KEYS[1])
local key = {}
for i = 1, #fields, 2 do key[fields[i]] = fields[i + 1] end
local seconds, micros = unpack(redis.call('TIME'))
local now = seconds * 1000 + math.floor(micros / 1000)
local function says(verdict, wait) return {verdict, wait or 0, key.digest or '', unpack(fields)} end

if not key.digest or (ARGV[2] ~= '1' and key.digest ~= ARGV[1]) then return says('unknown') end
if key.revoked_at then return says('revoked') end
if key.expires_at and tonumber(key.expires_at) * 1000 <= now then return says('expired') end

local each = 60000 / tonumber(key.requests_per_minute)
local arrival = math.max(tonumber(redis.call('GET', KEYS[2]) or '') or 0, now)
local wait = arrival + each - 60000 - now
if wait > 0 then return says('limited', math.ceil(wait)) end
redis.call('SET', KEYS[2], string.format('%.3f', arrival + each), 'PX', 120000)
if tonumber(key.used_at or '0') + tonumber(ARGV[3]) <= tonumber(seconds) then
  redis.call('HSET', KEYS[1], 'used_at', seconds)
end
return says('taken')
