-- (nothing) -> queued, several jobs in one step.
-- KEYS 1 active   2 recent   3... per job as in `create`
-- ARGV 1 now   2 ttl (s)   3... per job as in `create`
-- Returns per job what `create` does, or an error as in `check_keys`.
-- with create
local wrong = check_keys(3)
if wrong then return wrong end
local out, at, key = {}, 3, 3
while at <= #ARGV do
  local verdict, id = create(key, at)
  out[#out + 1], out[#out + 2] = verdict, id
  at, key = at + 6 + ARGV[at + 5], key + 5
end
create_is_done()
return out
