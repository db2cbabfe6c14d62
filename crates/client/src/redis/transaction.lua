-- One transaction of micro-operations. KEYS has one key for each step; ARGV has three words for each: what is done, and
-- its two arguments. Answers with the word `committed` and what each step found, or with `refused`, the step (from 0) and
-- the reason, or with an error of Redis' own. A step that fails takes back what the steps before it did: nobody has seen it, since nothing else runs
-- while a script does.
--
-- Numbers stay text throughout. Lua's numbers are floating-point and lose whole numbers above 2^53.

local undo, found = {}, { 'committed' }

-- The sorted set that names every key of a folder, so that a scan need not look at all keys of the database.
local function index_of(key)
  return 'keys-of:' .. (key:match('^(.*/)') or '')
end

local function held(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return false end
  if kind == 'string' then return redis.call('GET', key) end
  if kind == 'list' then return '[' .. table.concat(redis.call('LRANGE', key, 0, -1), ',') .. ']' end
  return kind
end

local function put(key, text)
  if text:sub(1, 1) ~= '[' then
    redis.call('SET', key, text)
    return
  end
  redis.call('DEL', key)
  for element in text:gmatch('-?%d+') do redis.call('RPUSH', key, element) end
end

-- Called before the first write to a key that is not there.
local function enter(key)
  redis.call('ZADD', index_of(key), 0, key)
  undo[#undo + 1] = function()
    redis.call('DEL', key)
    redis.call('ZREM', index_of(key), key)
  end
end

local function change(key, before, text)
  if before then
    undo[#undo + 1] = function() put(key, before) end
  else
    enter(key)
  end
  put(key, text)
end

-- Whether one whole number is less than another, both as text.
local function is_less(a, b)
  local a_is_negative, b_is_negative = a:sub(1, 1) == '-', b:sub(1, 1) == '-'
  if a_is_negative ~= b_is_negative then return a_is_negative end
  if #a ~= #b then return (#a < #b) ~= a_is_negative end
  if a_is_negative then return a > b end
  return a < b
end

local steps = {}

steps['read'] = function(key) return held(key) end

steps['write'] = function(key, text)
  change(key, held(key), text)
  return 'done'
end

steps['insert'] = function(key, text)
  if redis.call('EXISTS', key) == 1 then return nil, 'something is there already' end
  change(key, false, text)
  return 'done'
end

-- `expected` is empty where nothing may be there.
steps['exchange'] = function(key, expected, text)
  local before = held(key)
  if (before or '') ~= expected then return nil, 'another value is there' end
  change(key, before, text)
  return 'done'
end

steps['append'] = function(key, element)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then
    enter(key)
  elseif kind == 'list' then
    undo[#undo + 1] = function() redis.call('RPOP', key) end
  else
    return nil, 'no list is there'
  end
  redis.call('RPUSH', key, element)
  return 'done'
end

-- `floor` is empty where there is none.
steps['add'] = function(key, amount, floor)
  local before = held(key)
  if before and not before:find('^-?%d+$') then return nil, 'no number is there' end
  if before then
    undo[#undo + 1] = function() redis.call('SET', key, before) end
  else
    enter(key)
  end
  local sum = redis.pcall('INCRBY', key, amount)
  local failed = type(sum) == 'table' and sum.err
  if failed and not failed:find('overflow') then return sum end
  if failed or (floor ~= '' and is_less(redis.call('GET', key), floor)) then
    return nil, 'the sum would be out of bounds'
  end
  return 'done'
end

-- The key is what the keys of one folder begin with; `after` is empty from the beginning on. No byte of UTF-8 is 255.
steps['scan'] = function(prefix, after, limit)
  local first = after == '' and '[' .. prefix or '(' .. after
  local entries, wanted = {}, 2 * tonumber(limit)
  repeat
    local more = (wanted - #entries) / 2
    local keys = redis.call('ZRANGEBYLEX', index_of(prefix), first, '(' .. prefix .. '\255', 'LIMIT', 0, string.format('%d', more))
    for _, key in ipairs(keys) do
      local text = held(key)
      -- Somebody else may have taken it away.
      if text then
        entries[#entries + 1] = key
        entries[#entries + 1] = text
      end
      first = '(' .. key
    end
  until #keys < more or #entries >= wanted
  return entries
end

for step, key in ipairs(KEYS) do
  local at = (step - 1) * 3
  local answer, reason = steps[ARGV[at + 1]](key, ARGV[at + 2], ARGV[at + 3])
  local failed = type(answer) == 'table' and answer.err
  if reason or failed then
    for place = #undo, 1, -1 do undo[place]() end
    if failed then return answer end
    return { 'refused', tostring(step - 1), reason }
  end
  found[#found + 1] = answer
end
return found
