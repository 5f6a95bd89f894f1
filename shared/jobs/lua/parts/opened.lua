-- Creates the event stream of a job that has waited; its first entry is the submission. `created` is Unix seconds.
local function opened(events, created)
  if redis.call('EXISTS', events) == 1 then return end
  local made = math.max(1, math.floor(1000 * (tonumber(created) or 0)))
  redis.pcall('XADD', events, string.format('%.0f-0', made), 'type', 'state', 'state', 'queued')
end
