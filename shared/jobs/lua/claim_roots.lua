-- An ingest claims its roots, so that no two of a tenant's namespace walk over the same files: the prune of one would remove
-- what the other has just put in. Claims of jobs that have ended, or never began, go.
-- KEYS 1 hash of the claims
-- ARGV 1 now   2 ttl (s)   3 job id   4 tenant and namespace   5, 6 what stands before and behind the id in the key of a
--      job's hash   7 seconds until the job must be there   8... roots
-- Returns '' when they are claimed, else the id of the job that has one of them, or a folder above or below it.
-- with states
local function below(one, other) return one == other or string.sub(one, 1, #other + 1) == other .. '/' or other == '/' end

local function held(claim)
  for i = 8, #ARGV do
    for _, root in ipairs(claim.roots) do
      if below(ARGV[i], root) or below(root, ARGV[i]) then return true end
    end
  end
  return false
end

local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local id, read, claim = flat[i], pcall(cjson.decode, flat[i + 1])
  local state = redis.call('HGET', ARGV[5] .. id .. ARGV[6], 'state')
  local fresh = read and tonumber(claim.at) and math.abs(tonumber(ARGV[1]) - claim.at) < tonumber(ARGV[7])
  if not read or type(claim.roots) ~= 'table' or TERMINAL[state or ''] or not state and not fresh then
    redis.call('HDEL', KEYS[1], id)
  elseif id ~= ARGV[3] and claim.of == ARGV[4] and held(claim) then
    return id
  end
end
redis.call('HSET', KEYS[1], ARGV[3], cjson.encode({at = tonumber(ARGV[1]), of = ARGV[4], roots = {unpack(ARGV, 8)}}))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return ''
