-- What a task leaves with a change that it makes: its costs, its warnings, and the reasons for what it went without, in any
-- state. With `attempt` the task is at its item no more: its mark goes with the change, so that no script of its own has to
-- end it. A warning that is in the list already is not added again, nor is a reason. A job that has ended gets no more
-- reasons: its batch has counted them.
-- A script reads its own fields of the job hash with what the note needs of it, and writes them together.
-- `note`: empty, or JSON: item, cost {name: delta}, warnings, most_warnings, reasons, attempt.
-- with emit
-- with opened
-- with states
-- A count that cannot be read starts anew at 0.
local function add_costs(said, names, known)
  for i, field in ipairs(names) do
    local name = string.match(field, '([^:]*)$')
    local sum = (tonumber(string.match(known[i] or '', '^-?%d+$')) or 0) + said.cost[name]
    said.changed[#said.changed + 1], said.changed[#said.changed + 2] = field, string.format('%.0f', sum)
  end
end

local function cost_fields(said)
  local names = {}
  for name in pairs(said.cost) do
    names[#names + 1] = 'cost:' .. name
    if said.item ~= '' then names[#names + 1] = 'paid:' .. said.item .. ':' .. name end
  end
  return names
end

-- `known`: state, all reasons, those of the item.
local function add_reasons(said, known)
  if not known[1] or TERMINAL[known[1]] then return {} end
  local added = {}
  for i, field in ipairs({'degraded', 'degraded:' .. said.item}) do
    local all, there = {}, {}
    for one in string.gmatch(known[i + 1] or '', '[^,]+') do all[#all + 1], there[one] = one, true end
    local before = #all
    for _, reason in ipairs(said.reasons) do
      if not there[reason] then
        all[#all + 1] = reason
        if i == 2 then added[#added + 1] = reason end
      end
    end
    table.sort(all)
    if #all > before then
      said.changed[#said.changed + 1], said.changed[#said.changed + 2] = field, table.concat(all, ',')
    end
  end
  return added
end

local function add_warnings(key, warnings, most)
  local there, added = redis.pcall('LRANGE', key, 0, -1), {}
  if there.err then
    redis.call('DEL', key)
    there = {}
  end
  local known, count = {}, #there
  for _, warning in ipairs(there) do known[warning] = true end
  for _, warning in ipairs(warnings) do
    if not known[warning] and count < most then
      redis.call('RPUSH', key, warning)
      added[#added + 1], known[warning], count = warning, true, count + 1
    end
  end
  return added
end

-- Writes what has changed of the job hash, with more of the script's own.
local function write_job(job, said, ...)
  local fields = {...}
  for _, value in ipairs(said.changed) do fields[#fields + 1] = value end
  if #fields > 0 then redis.call('HSET', job, unpack(fields)) end
end

-- The task is at its item no more: its mark goes, if it is still its own.
local function drop_mark(job, said)
  local work, mark = string.gsub(job, 'job$', 'work'), 'busy:' .. (said.item or '')
  if said.attempt and redis.pcall('HGET', work, mark) == said.attempt then redis.call('HDEL', work, mark) end
end

-- Returns the note, for `write_job` and `drop_mark`, and the values of the fields that are named behind it.
local function leave_note(job, ttl, most_events, note, ...)
  local own = {...}
  if note == '' then return {changed = {}}, unpack(redis.call('HMGET', job, ...)) end
  local said, of_job = cjson.decode(note), string.match(job, '^(.*)job$')
  said.changed = {}
  local costs, wanted, events, warnings, reasons = cost_fields(said), {...}, of_job .. 'events', {}, {}
  for _, field in ipairs(costs) do wanted[#wanted + 1] = field end
  for _, field in ipairs({'created_at', 'state', 'degraded', 'degraded:' .. said.item}) do wanted[#wanted + 1] = field end
  local found = redis.call('HMGET', job, unpack(wanted))
  if found[#own + #costs + 2] then add_costs(said, costs, {unpack(found, #own + 1, #own + #costs)}) end  -- else it is gone
  local created, rest = found[#own + #costs + 1], {unpack(found, #own + #costs + 2, #found)}
  if #said.reasons > 0 then reasons = add_reasons(said, rest) end
  if #said.warnings > 0 then warnings = add_warnings(of_job .. 'warnings', said.warnings, said.most_warnings) end
  if #reasons + #warnings > 0 then
    opened(events, created)
    for _, reason in ipairs(reasons) do emit(events, most_events, 'type', 'degraded', 'item', said.item, 'reason', reason) end
    for _, text in ipairs(warnings) do emit(events, most_events, 'type', 'warning', 'text', text, 'item', said.item) end
    redis.call('EXPIRE', events, ttl)
    if #warnings > 0 then redis.call('EXPIRE', of_job .. 'warnings', ttl) end
  end
  return said, unpack(found, 1, #own)
end
