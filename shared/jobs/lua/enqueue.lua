-- (nothing) -> queued, several jobs in one step.
-- KEYS 1 active   2 recent   3... as in `create`
-- ARGV 1 now   2 ttl (s)   3 the jobs, as in `create`
-- Returns per job what `create` does, or an error as in `check_keys`.
-- with create
local wrong = check_keys(3)
if wrong then return wrong end
local out = {}
for _, row in ipairs(given.jobs) do
  local verdict, id = create(3, row)
  out[#out + 1], out[#out + 2] = verdict, id
end
create_is_done()
return out
