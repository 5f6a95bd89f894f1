-- Takes the next items of an ingest out of its line, as far as fewer than `most` are at workers: those of one ingest must
-- not fill the queue, in which all tenants' items stand. `open`: items that have not ended.
local function next_items(leaves, work, line, open, most, now)
  local handing = redis.call('HGET', leaves, '0') == 'open'
  local under_way = open - redis.call('LLEN', line) - (handing and 1 or 0)
  local out = {}
  while under_way < most do
    local item = redis.call('LPOP', line)
    if not item then break end
    redis.call('HSET', leaves, item, 'pending')
    redis.call('HSET', work, 'sent:' .. item, now)
    out[#out + 1], under_way = item, under_way + 1
  end
  return out
end
