-- The TTL of all that is kept of a job that has just ended.
local function expire_kept(job, ttl, names)
  local of_job = string.match(job, '^(.*)job$')
  for _, name in ipairs(names) do
    redis.call('EXPIRE', of_job .. name, ttl)
  end
end
