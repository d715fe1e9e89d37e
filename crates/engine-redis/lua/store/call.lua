-- One call: what it read, what it will write, what it answers.
--
-- A call reads through caches and writes nothing until it has come to its end; then `db.commit`
-- writes all of it. So a call that is refused, or that breaks, has changed nothing, and what a
-- function writes it has touched before: a slot that is on its way to another node is noticed while
-- there is still nothing to undo.
--
-- db      the store's functions           sets, maps, lines   those of this store; sets are ordered
-- inner   ordered sets inside a record
-- lib     the rules, a function each      BOUND               bounds, generated from core
-- The library is one chunk, and a chunk may have 200 locals: everything else hangs on these tables.

local db, sets, maps, lines, inner, lib = {}, {}, {}, {}, {}, {}
-- The queue of callers who wait for needs alone.
local CALLERS = 0

-- No function but those of registering is there while the library loads, and later a global name is
-- found by way of a metatable, at several times the cost of a local one: they are bound to locals of the
-- same names when the first call comes.
local function globals()
  return {
    cmsgpack = cmsgpack, struct = struct, ipairs = ipairs, pairs = pairs, tonumber = tonumber,
    unpack = unpack, error = error, pcall = pcall, type = type, next = next,
  }
end
local call, ipairs, pairs, next, tonumber, unpack, error, pcall, type, cmsgpack, struct
local floor, abs, max, min, format, sub, byte, char, rep, find, insert, remove, concat, sort

local function bind()
  local all = globals()
  call, cmsgpack, struct = redis.call, all.cmsgpack, all.struct
  ipairs, pairs, tonumber, unpack = all.ipairs, all.pairs, all.tonumber, all.unpack
  error, pcall, type, next = all.error, all.pcall, all.type, all.next
  floor, abs, max, min = math.floor, math.abs, math.max, math.min
  format, sub, byte, find = string.format, string.sub, string.byte, string.find
  char, rep = string.char, string.rep
  insert, remove, concat, sort = table.insert, table.remove, table.concat, table.sort
end

-- A whole number as text, exact below 2^53. (`%d` takes a third of the time of `%.0f`.)
local function text(n)
  return format('%d', n)
end

local NUMBERS, numbers_known = {}, 0
local NUMBERS_MAX = 20000

-- The same for the numbers of records, which come again and again: each is written once.
local function number_text(n)
  local known = NUMBERS[n]
  if not known then
    if numbers_known >= NUMBERS_MAX then
      NUMBERS, numbers_known = {}, 0
    end
    known = format('%d', n)
    NUMBERS[n], numbers_known = known, numbers_known + 1
  end
  return known
end

-- Parts of a kind. So many that a hundred thousand names still lie in short hashes, which take a third of the memory.
local PARTS = 256

-- Which part of a kind a name lies in: no key holds more than a share of what is there.
local function shard(name)
  local n = #name
  local a, b, c, d = byte(name, n > 3 and n - 3 or 1, n)
  return ((a or 0) * 131 + (b or 0) * 31 + (c or 0) * 7 + (d or 0) + n) % PARTS
end

-- The same for what has needs: the first says where. Of a keyed limit the beginning and the end of the key
-- count, since keys have either in common (a site, a number).
local function shard_of_needs(needs, words)
  local first = needs[1] and needs[1][2]
  if not first then
    return shard(words)
  end
  local from, n = find(first, ':', 1, true) or 0, #first
  local a, b, c = byte(first, from + 1, from + 3)
  local y, z = byte(first, n - 1, n)
  return ((a or 0) * 131 + (b or 0) * 31 + (c or 0) * 17 + (y or 0) * 7 + (z or 0) + n) % PARTS
end

-- The records that the call knows, kind -> id -> entry, and those it may have changed; which call it is.
local records, used, this_call = {}, {}, 0

-- What one call knows. Made anew at its start: a call that broke must leave nothing behind.
local function fresh(prefix)
  db.prefix = prefix
  records, used, this_call = {}, {}, this_call + 1
  db.seen = {}
  db.changed = {}
  db.held = 0
  db.zsets = {}
  db.heads = {}
  db.maps = {}
  db.loose_maps = {}
  db.lists = {}
  db.jobs = {}
  db.space = nil
  db.want = 4
  db.touched = {}
  db.opened, db.left, db.steps = nil, nil, 0
  db.units = {}
  db.signalled = nil
  db.sooner = nil
  db.said = {}
  db.listens = {}
  db.pushed = {}
  db.blobs = nil
  db.laters = {}
  db.all_done = false
  db.leaving = false
  db.nothing = false
  db.shown = nil
  db.rows = {}
  db.found = {}
  db.ahead = nil
  db.denied = nil
  db.texts = {}
  db.direct = false
  db.firing = false
  db.lets_go = BOUND.TOLD_AT_ONCE
  db.flows, db.ended_flows = {}, {}
  db.events, db.happened, db.forgets_events, db.copying = {}, 0, false, false
end

-- A refusal: nothing that the call did so far is kept. `case` is the name of a case of `tenure_core::sentences`,
-- `told` has its parameters; the sentence is made of them where the answer is read. `pointer` says where in the
-- request it is.
function lib.refuse(case, told, pointer)
  local why = told or {}
  why.case = case
  error({ no = { why = why, pointer = pointer } }, 0)
end
