-- script.lua - serves a request of a fleet's member, atomically, inside Redis. It is the twin of
-- lib/fleet/protocol/bucket.c: the same steps in the same order, the same numbers to the digit. The model is in
-- lib/fleet/protocol/bucket.h, the arguments and the reply are in lib/fleet/script.h.
--
-- Lua's numbers are exact integers up to 2^53, and every product here stays below that. One GET, one SET at the end: an
-- error leaves the key unchanged. The numbers are parsed by one pattern, formatted by one format and kept in locals:
-- most of a script's cost in Redis is its calls.
local floor, min, max, tonumber = math.floor, math.min, math.max, tonumber
local MILLI, DAY, COUNT, MEMBERS = 268435455, 86400000, 9007199254740991, 1000000000

-- Parses integers from a text with a space after each, 0 to limits[i]; returns nil if any is something else.
local function parse(text, limits)
    local numbers = {text:match('^' .. ('(%d+) '):rep(#limits) .. '$')}
    for i = 1, #limits do
        local number = tonumber(numbers[i])
        if not number or number > limits[i] then
            return
        end
        numbers[i] = number
    end
    return numbers
end

-- ---- the request: LEASE_REQUEST_FIELDS ----

local REQUEST_LIMITS = {MILLI, MILLI, MILLI, MILLI, MILLI, MILLI, COUNT, COUNT, COUNT, COUNT, 1, 1}
if #KEYS ~= 1 or #ARGV ~= #REQUEST_LIMITS then
    return {err = ('BIDE needs 1 key and %d numbers, got %d and %d'):format(#REQUEST_LIMITS, #KEYS, #ARGV)}
end
local request = parse(table.concat(ARGV, ' ') .. ' ', REQUEST_LIMITS)
if not request then
    for i = 1, #REQUEST_LIMITS do
        if not parse(ARGV[i] .. ' ', {REQUEST_LIMITS[i]}) then
            local shown = ARGV[i]:sub(1, 24):gsub('[^%w.+-]', '?') -- a newline would end the error reply
            return {err = ('BIDE argument %d is "%s": must be an integer, 0 to %.0f'):format(i, shown,
                REQUEST_LIMITS[i])}
        end
    end
end
local capacity, per_minute, unit, returned, earned, wanted, request_firsts, request_successes, request_spent,
    seen_serial, leaving, was_wanting = unpack(request)

-- ---- the stored bucket: LEASE_BUCKET_FIELDS ----

local stored = redis.call('GET', KEYS[1])
local bucket = parse(stored or ('0 '):rep(18), {COUNT, MILLI, 59999, COUNT, MILLI, COUNT, COUNT, COUNT, MEMBERS,
    MEMBERS, MEMBERS, MEMBERS, COUNT, COUNT, COUNT, COUNT, MILLI, MILLI})
if not bucket then
    return {err = 'BIDE this key does not hold a fleet bucket (18 integers in range, a space after each): delete it'}
end
-- Members counted in this window (0) and in the last window (1): all, wanting tokens.
local serial, level, refill_rest, refilled_at, initial, window_began, window_serial, last_window_serial, all0, wanting0,
    all1, wanting1, firsts, successes, spent, granted_total = unpack(bucket)

if redis.replicate_commands then
    redis.replicate_commands() -- before Redis 7: replicate the writes, not the script, because it reads the time
end
local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- ---- time: refill and windows ----

local elapsed = now - refilled_at
if serial == 0 or elapsed < -600000 then
    refilled_at = now
elseif elapsed > 0 then
    local sum = min(elapsed, 3600000) * per_minute + refill_rest
    refilled_at, level, refill_rest = now, level + floor(sum / 60000), sum % 60000
end

local function restart_counting()
    window_began, window_serial, last_window_serial = now, serial, serial
    all0, wanting0, all1, wanting1 = 0, 0, 0, 0
end

local length = 2 * min(max(10000, all0 + all1), 60000)
elapsed = now - window_began
if serial == 0 or elapsed >= 2 * length then
    restart_counting()
elseif elapsed < 0 then
    window_began = now
elseif elapsed >= length then
    window_began, window_serial, last_window_serial = now, serial, window_serial
    all0, wanting0, all1, wanting1 = 0, 0, all0, wanting0
end

-- ---- tokens ----

if seen_serial > serial then -- Redis lost writes and went back to an earlier state: empty the bucket
    serial, level, refill_rest, initial = min(seen_serial + 1000000, COUNT), 0, 0, capacity
    restart_counting()
end
level = min(level + returned + earned, capacity)

-- ---- counting members ----

local is_new, in_this_window = seen_serial <= last_window_serial, seen_serial > window_serial
serial = min(serial + 1, COUNT)

-- Moves a member's count from the window in which it was counted last to this window.
local function count(this, last, was_counted, is_counted)
    if was_counted and in_this_window then
        this = max(this - 1, 0)
    elseif was_counted then
        last = max(last - 1, 0)
    end
    return is_counted and min(this + 1, MEMBERS) or this, last
end

local stays = leaving == 0
local wants = stays and wanted > 0
all0, all1 = count(all0, all1, not is_new, stays)
wanting0, wanting1 = count(wanting0, wanting1, not is_new and was_wanting == 1, wants)
local members, wanting = max(all0 + all1, 1), max(wanting0 + wanting1, 1)

-- ---- initial tokens, and the grant ----

local granted = 0
unit = max(unit, 1)
if is_new and stays then
    local added = max(min(unit, capacity - initial), 0)
    initial, level = initial + added, min(level + added, capacity)
end
if wants and level >= unit then
    local quota = floor(level / wanting)
    granted = min(wanted, max(quota - quota % unit, unit))
    level = level - granted
end

-- ---- intervals ----

local is_busy = returned > 0 or earned > 0 or wanted > 0 or request_firsts > 0 or request_successes > 0 or
    request_spent > 0
local next_ms = min(max(is_busy and 1000 or 10000, members), 60000)
if is_new then -- spread new members: multiples of 619 modulo 1000 visit all thousand steps evenly
    next_ms = min(floor(next_ms * (500 + serial % 1000 * 619 % 1000) / 1000), 60000)
end
local earliest_ms = min(max(250, floor(wanting * 1000 / (level >= unit and 5000 or 1000))), next_ms)

-- ---- the only write ----

redis.call('SET', KEYS[1], ('%.0f '):rep(18):format(serial, level, refill_rest, refilled_at, initial, window_began,
    window_serial, last_window_serial, all0, wanting0, all1, wanting1, min(firsts + request_firsts, COUNT),
    min(successes + request_successes, COUNT), min(spent + request_spent, COUNT), min(granted_total + granted, COUNT),
    capacity, per_minute), 'PX', DAY)

-- ---- the reply: LEASE_REPLY_FIELDS ----

return {1, serial, granted, floor(level / 2 / members), next_ms, earliest_ms, members, level}
