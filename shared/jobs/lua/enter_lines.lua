-- Enters the next lines of a batch in one step: creates their jobs, keeps a record of each line, and counts them. Entering
-- the same lines again changes nothing. A line whose job finds no room is rejected.
-- KEYS 1 active   2 recent   3 batch hash   4 members hash   5 lines hash   6 known hash   7... as in `create`
-- ARGV 1 now   2 ttl (s)   3 the jobs, as in `create`, and `lines`: of each that is not blank its number, its lane (0 or 1, 2:
--      rejected), and the end of its JSON; the jobs are those of the lines of a lane   4 lines read before   5 digest of
--      these   6 lines read with these   7 digest of all   8 how many are blank   9-12 why a line is rejected that finds no
--      room (end of its JSON): first lane, its tenant's share there, second lane, its tenant's share there   13 why one is
--      whose key is another request's
-- Returns 0 when there is no such batch, -1 when other lines were entered, -2 when it was cancelled before these were,
--      else a text with a 1 for each line whose job waits now and a 0 for each other one, and the records of these, as JSON.
-- with count
-- with create
-- with states
local wrong = check_keys(7)
for i = 3, 6 do wrong = wrong or check(KEYS[i], 'hash') end
if wrong then return wrong end
local read, digest, cancelled = unpack(redis.call('HMGET', KEYS[3], 'read', 'digest', 'cancelled_at'))
if not read then return 0 end
local again = read == ARGV[6] and digest == ARGV[7] and (read ~= ARGV[4] or digest ~= ARGV[5])
if not again and (read ~= ARGV[4] or digest ~= ARGV[5]) then return -1 end
if not again and cancelled then return -2 end

local simple, out, next_row, ttl, own, lines = {}, {''}, 1, ARGV[2], {}, {}
local counts = {lines = tonumber(ARGV[8]), blank = tonumber(ARGV[8])}
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

for _, line in ipairs(given.lines) do
  local number, lane, ending = unpack(line)
  local kind, id = 'rejected', nil
  if lane < 2 then
    if not again then
      local verdict
      verdict, id = create(7, given.jobs[next_row])
      if verdict == 1 then
        kind = 'enqueued'
        own[#own + 1], own[#own + 2], own[id] = id, '', true
        tally('open')
      elseif verdict == 0 then
        kind = name_known(id)
      else
        id, ending = nil, ending .. (verdict == -3 and ARGV[13] or ARGV[8 + 2 * lane - verdict])
      end
    end
    next_row = next_row + 1
  end
  simple[#simple + 1] = not again and kind == 'enqueued' and '1' or '0'
  if again then
    out[#out + 1] = redis.call('HGET', KEYS[5], number)
  else
    local job = id and ',"job_id":' .. cjson.encode(id) or ''
    -- `number` is what the release before reads; it goes with the next one.
    local numbers = '{"line":' .. number .. ',"number":' .. number
    local record = numbers .. ',"kind":"' .. kind .. '"' .. job .. ending .. '}'
    lines[#lines + 1], lines[#lines + 2] = number, record
    if kind ~= 'enqueued' then out[#out + 1] = record end
    tally('lines')
    tally(kind)
  end
end
out[1] = table.concat(simple)
if again then return out end
for key, pairs_of in pairs({[KEYS[4]] = own, [KEYS[5]] = lines}) do
  for from = 1, #pairs_of, 1000 do
    redis.call('HSET', key, unpack(pairs_of, from, math.min(from + 999, #pairs_of)))
  end
end
add_all(KEYS[3], counts)
redis.call('HSET', KEYS[3], 'read', ARGV[6], 'digest', ARGV[7])
for i = 3, 6 do redis.call('EXPIRE', KEYS[i], ttl) end
create_is_done()
return out
