-- script.lua - one exchange with a fleet's bank, inside Redis: the same as src/lease/bank.c, to the digit and in the
-- same order. The model is told in src/lease/bank.h, the arguments and the reply in src/fleet/script.h.
--
-- Lua's numbers are whole up to 2^53, and every product here stays below that. One read, one write at the end: an error
-- leaves everything as it was. Numbers are read by one pattern and written by one format, and stay in locals: most of
-- what a script costs Redis is its calls.
local floor, min, max, tonumber = math.floor, math.min, math.max, tonumber
local MILLI, DAY, COUNT, COUNTED = 268435455, 86400000, 9007199254740991, 1000000000

-- Whole numbers from a text that has one before each space, 0 to most each; or nothing.
local function read(text, most)
    local numbers = {text:match('^' .. ('(%d+) '):rep(#most) .. '$')}
    for i = 1, #most do
        local number = tonumber(numbers[i])
        if not number or number > most[i] then
            return
        end
        numbers[i] = number
    end
    return numbers
end

-- ---- what is said ----

local MOST = {MILLI, MILLI, MILLI, MILLI, MILLI, MILLI, COUNT, COUNT, COUNT, DAY, COUNT, 2, 1000, COUNT, 1, 7}
if #KEYS ~= 1 or #ARGV ~= #MOST then
    return {err = ('BIDE want 1 key and %d numbers, not %d and %d'):format(#MOST, #KEYS, #ARGV)}
end
local ask = read(table.concat(ARGV, ' ') .. ' ', MOST)
if not ask then
    for i = 1, #MOST do
        if not read(ARGV[i] .. ' ', {MOST[i]}) then
            local shown = ARGV[i]:sub(1, 24):gsub('[^%w.+-]', '?') -- a line's end would end the error, too
            return {err = ('BIDE argument %d is "%s": want a whole number, 0 to %.0f'):format(i, shown, MOST[i])}
        end
    end
end
local ask_capacity, ask_per_minute, unit, give, earned, want, ask_firsts, ask_successes, ask_spent, ask_quiet,
    quiet_over, breaker, permille, seen, leaving, mark = unpack(ask)

-- ---- what is stored ----

local stored = redis.call('GET', KEYS[1])
local bank = read(stored or ('0 '):rep(26), {COUNT, MILLI, 59999, COUNT, COUNT, COUNT, COUNT, COUNT, COUNTED, COUNTED,
    COUNTED, COUNTED, COUNTED, COUNTED, COUNTED, COUNTED, COUNT, COUNT, COUNT, 1, COUNT, COUNT, COUNT, COUNT, MILLI,
    MILLI})
if not bank then
    return {err = 'BIDE this key holds no bank of ours (26 whole numbers in range, a space after each): delete it'}
end
local serial, level, rest, stamp, turned_at, turned, turned_before, began_at, a0, w0, v0, o0, a1, w1, v1, o1,
    quiet_until, quiet_number, opening, is_open, firsts, successes, spent, granted_so_far = unpack(bank)

if redis.replicate_commands then
    redis.replicate_commands() -- before 7: what is written goes to replicas, not the script, for it asks the time
end
local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- ---- time ----

local passed = now - stamp
if serial == 0 or passed < -600000 then
    stamp, quiet_until = now, 0
elseif passed > 0 then
    local sum = min(passed, 3600000) * ask_per_minute + rest
    stamp, level, rest = now, level + floor(sum / 60000), sum % 60000
end

local function begin_counting()
    turned_at, began_at, turned, turned_before = now, now, serial, serial
    a0, w0, v0, o0, a1, w1, v1, o1 = 0, 0, 0, 0, 0, 0, 0, 0
end

local length = 2 * min(max(10000, a0 + a1), 60000)
passed = now - turned_at
if serial == 0 or passed >= 2 * length then
    begin_counting()
elseif passed < 0 then
    turned_at, began_at = now, min(began_at, now)
elseif passed >= length then
    turned_at, turned, turned_before = now, serial, turned
    a0, w0, v0, o0, a1, w1, v1, o1 = 0, 0, 0, 0, a0, w0, v0, o0
end

-- ---- the bucket ----

if seen > serial then -- we were put back to an earlier state
    serial, level, rest = min(seen + 1000000, COUNT), 0, 0
    begin_counting()
end
level = min(level + give + earned, ask_capacity)

-- ---- counting ----

local is_new, in_this = seen <= turned_before, seen > turned
serial = min(serial + 1, COUNT)

-- In this window and in the last; from where it was to here.
local function count(this, last, was, is)
    if was and in_this then
        this = max(this - 1, 0)
    elseif was then
        last = max(last - 1, 0)
    end
    return is and min(this + 1, COUNTED) or this, last
end

local here = leaving == 0
local wants, votes, opens = here and want > 0, here and breaker > 0, here and breaker == 2
a0, a1 = count(a0, a1, not is_new, here)
w0, w1 = count(w0, w1, not is_new and mark % 2 >= 1, wants)
v0, v1 = count(v0, v1, not is_new and mark % 4 >= 2, votes)
o0, o1 = count(o0, o1, not is_new and mark >= 4, opens)
local instances, wanting, voting, open = max(a0 + a1, 1), max(w0 + w1, 1), v0 + v1, o0 + o1

-- ---- how much ----

local granted = 0
unit = max(unit, 1)
if wants and level >= unit then
    local quota = floor(level / wanting)
    granted = min(want, max(quota - quota % unit, unit))
    level = level - granted
end

-- ---- quiet and opinion ----

if quiet_over > 0 and quiet_over == quiet_number then
    quiet_until = 0
end
if ask_quiet > 0 and now + ask_quiet >= quiet_until + (quiet_until > now and 1000 or 0) then
    quiet_until, quiet_number = now + ask_quiet, serial
end

if permille > 0 and now - began_at >= 2000 then
    if is_open == 0 and voting >= 3 and open * 1000 >= permille * voting then
        is_open, opening = 1, serial
    elseif open == 0 or open * 2000 < permille * voting then
        is_open = 0
    end
end

-- ---- when to come again ----

local is_busy = give > 0 or earned > 0 or want > 0 or ask_firsts > 0 or ask_successes > 0 or ask_spent > 0 or
    ask_quiet > 0 or quiet_over > 0 or breaker == 2
local next_ms = min(max(is_busy and 1000 or 10000, instances), 60000)
if is_new then -- spread: steps of 619 through a thousand places visit all of them evenly
    next_ms = min(floor(next_ms * (500 + serial % 1000 * 619 % 1000) / 1000), 60000)
end
local soon_ms = min(max(250, floor(wanting * 1000 / (level >= unit and 5000 or 1000))), next_ms)

-- ---- the only write ----

redis.call('SET', KEYS[1], ('%.0f '):rep(26):format(serial, level, rest, stamp, turned_at, turned, turned_before,
    began_at, a0, w0, v0, o0, a1, w1, v1, o1, quiet_until, quiet_number, opening, is_open,
    min(firsts + ask_firsts, COUNT), min(successes + ask_successes, COUNT), min(spent + ask_spent, COUNT),
    min(granted_so_far + granted, COUNT), ask_capacity, ask_per_minute), 'PX', DAY)

return {1, serial, granted, floor(level / 2 / instances), next_ms, soon_ms, min(max(quiet_until - now, 0), DAY),
    quiet_number, opening, permille > 0 and is_open or 0, instances, level,
    (wants and 1 or 0) + (votes and 2 or 0) + (opens and 4 or 0)}
