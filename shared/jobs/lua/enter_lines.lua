-- Enters the next lines of a batch in one step: creates their jobs, keeps a record of each line, and counts them. Entering
-- the same lines again changes nothing. A line whose job finds no room is rejected.
-- KEYS 1 active   2 recent   3 batch hash   4 members hash   5 lines hash   6 known hash   7... per line with a job as in
--      `create`
-- ARGV 1 now   2 ttl (s)   3 lines read before   4 digest of these   5 lines read with these   6 digest of all   7 how
--      many are blank   8-11 why a line is rejected that finds no room (end of its JSON): first lane, its tenant's share
--      there, second lane, its tenant's share there   12... per line that is not blank: number, its lane (0 or 1, 2:
--      rejected), end of its JSON, and with a job as in `create`
-- Returns 0 when there is no such batch, -1 when other lines were entered, -2 when it was cancelled before these were,
--      else the record of each line, as JSON.
-- with count
-- with create
-- with states
local wrong = check_keys(7)
for i = 3, 6 do wrong = wrong or check(KEYS[i], 'hash') end
if wrong then return wrong end
local read, digest, cancelled = unpack(redis.call('HMGET', KEYS[3], 'read', 'digest', 'cancelled_at'))
if not read then return 0 end
local again = read == ARGV[5] and digest == ARGV[6] and (read ~= ARGV[3] or digest ~= ARGV[4])
if not again and (read ~= ARGV[3] or digest ~= ARGV[4]) then return -1 end
if not again and cancelled then return -2 end

local out, at, key, ttl, own, lines = {}, 12, 7, ARGV[2], {}, {}
local counts = {lines = tonumber(ARGV[7]), blank = tonumber(ARGV[7])}
local function tally(name) counts[name] = (counts[name] or 0) + 1 end

-- A job from before: its end is counted by who ends it, unless that has been.
local function name_known(id)
  if own[id] or redis.call('HEXISTS', KEYS[4], id) == 1 or redis.call('HEXISTS', KEYS[6], id) == 1 then return 'duplicate' end
  local job = job_key(KEYS[3], id)
  local outcome = outcome_of(unpack(redis.call('HMGET', job, 'state', 'partial', 'degraded')))
  redis.call('HSET', KEYS[6], id, outcome or '')
  if not outcome then
    local named_by = string.gsub(job, 'job$', 'named_by')
    redis.call('SADD', named_by, string.match(KEYS[3], '{(.*)}'))
    redis.call('EXPIRE', named_by, ttl)
    tally('known_open')
  end
  return 'known'
end

while at <= #ARGV do
  local number, lane, ending = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local kind, id = 'rejected', nil
  at = at + 3
  if lane < 2 then
    if not again then
      local verdict
      verdict, id = create(key, at)
      if verdict == 1 then
        kind = 'enqueued'
        own[#own + 1], own[#own + 2], own[id] = id, '', true
        tally('open')
      elseif verdict == 0 then
        kind = name_known(id)
      else
        id, ending = nil, ending .. ARGV[7 + 2 * lane - verdict]
      end
    end
    at, key = at + 6 + ARGV[at + 5], key + 5
  end
  if again then
    out[#out + 1] = redis.call('HGET', KEYS[5], number)
  else
    local job = id and ',"job_id":' .. cjson.encode(id) or ''
    out[#out + 1] = '{"number":' .. number .. ',"kind":"' .. kind .. '"' .. job .. ending .. '}'
    lines[#lines + 1], lines[#lines + 2] = number, out[#out]
    tally('lines')
    tally(kind)
  end
end
if again then return out end
for key, pairs_of in pairs({[KEYS[4]] = own, [KEYS[5]] = lines}) do
  for from = 1, #pairs_of, 1000 do
    redis.call('HSET', key, unpack(pairs_of, from, math.min(from + 999, #pairs_of)))
  end
end
add_all(KEYS[3], counts)
redis.call('HSET', KEYS[3], 'read', ARGV[5], 'digest', ARGV[6])
for i = 3, 6 do redis.call('EXPIRE', KEYS[i], ttl) end
create_is_done()
return out
