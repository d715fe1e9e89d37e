-- The ready order of a queue: priority, then fair share, then arrival.
--
-- A queue has priorities, a priority has groups, a group has bundles, a bundle has lanes, a lane has
-- jobs. Each level keeps its children in order by the key of their first; a change of a lane is
-- carried up as far as keys change. Nothing here decides whether a lane may go.
--
-- A place is nil (open: in the ready order), or {door, misfit}: parked at that door, or in its list
-- of what can never fit as the settings are.

local function group_key(queue, rank, name)
  return number_text(queue) .. ':' .. text(rank) .. ':' .. (name and NAMED.group .. name or '')
end

function lib.turns(queue, rank)
  return db.get(RECORD.queue, queue).priorities[rank]
end

-- The priorities of a queue, highest first.
local function ranks(queue)
  local all = {}
  for rank in pairs(db.see(RECORD.queue, queue).priorities) do
    all[#all + 1] = rank
  end
  sort(all)
  return all
end

-- Where the sets of an owner lie when they are large.
local function turns_open(queue, rank)
  return 'to:' .. number_text(queue) .. ':' .. number_text(rank)
end
local function turns_idle(queue, rank)
  return 'ti:' .. number_text(queue) .. ':' .. number_text(rank)
end
local function group_open(group)
  return 'go:' .. number_text(group)
end
local function bundle_open(bundle)
  return 'bo:' .. number_text(bundle)
end
local function bundle_outs(bundle)
  return 'bx:' .. number_text(bundle)
end
local function lane_line(lane)
  return 'n:' .. number_text(lane)
end
lib.turns_idle, lib.group_key = turns_idle, group_key
lib.bundle_open, lib.group_open, lib.turns_open, lib.lane_line = bundle_open, group_open, turns_open, lane_line

-- Plain needs (limits without a key, pools) park a whole bundle; others a lane.
function lib.is_plain(need)
  if need[NEED_AT.kind] == NEED.limit then
    return not find(need[NEED_AT.name], ':', 1, true)
  end
  return not need[NEED_AT.id]
end

local function bundle_key(group, plain, suspect)
  return text(group) .. (suspect and BUNDLE.suspect or BUNDLE.usual) .. cmsgpack.pack(plain)
end
lib.bundle_key = bundle_key

local function lanes_by_key(packed, needs)
  return 'lk:' .. shard_of_needs(needs, packed)
end
local function bundles_by_key(packed)
  return 'bk:' .. shard(packed)
end

local function new_bundle(queue, group, plain, suspect)
  local bundle = db.number()
  db.put(RECORD.bundle, bundle, {
    queue = queue, group = group, plain = plain, suspect = suspect, open = inner.new(), waiting = 0,
    parked_key = 0, head = 0, since = 0, outs = inner.new(), lanes = 0,
  })
  return bundle
end

-- The lane of this key, made if it is not there.
-- key: {queue, priority, group, needs, suspect}
function lib.lane_for(key)
  local packed = lib.lane_words(key)
  local known = maps.get(lanes_by_key(packed, key.needs), packed, db.is_new(key.queue))
  if known then
    return tonumber(known)
  end
  local group = lib.group_for(key)
  local plain = {}
  for _, need in ipairs(key.needs) do
    if lib.is_plain(need) then
      plain[#plain + 1] = need
    end
  end
  local sort_key = bundle_key(group, plain, key.suspect)
  local bundle = tonumber(maps.get(bundles_by_key(sort_key), sort_key, db.is_new(group)))
  if not bundle then
    bundle = new_bundle(key.queue, group, plain, key.suspect)
    maps.put(bundles_by_key(sort_key), sort_key, text(bundle))
    local group_record = db.get(RECORD.group, group)
    group_record.bundles = group_record.bundles + 1
  end
  local bundle_record = db.get(RECORD.bundle, bundle)
  bundle_record.lanes = bundle_record.lanes + 1
  local lane = db.number()
  db.put(RECORD.lane, lane, {
    words = packed, queue = key.queue, priority = key.priority, group = key.group, needs = key.needs,
    suspect = key.suspect, bundle = bundle, line = lines.new(), parked_key = 0, head = 0, since = 0,
    shapes = 0,
  })
  maps.put(lanes_by_key(packed, key.needs), packed, text(lane))
  return lane
end

-- A priority of a queue: V; the groups with an open lane, and those without any, by time; how many groups there
-- are; the highest finish that was ever booked; the jobs in its lanes, wherever these stand.
function lib.new_turns()
  return { v = 0, open = inner.new(), idle = inner.new(), groups = 0, top = 0, waiting = 0 }
end

function lib.group_for(key)
  local queue, rank = key.queue, -key.priority
  local queue_record = db.get(RECORD.queue, queue)
  local turns = queue_record.priorities[rank]
  if not turns then
    turns = lib.new_turns()
    queue_record.priorities[rank] = turns
  end
  local name = group_key(queue, rank, key.group)
  local known = maps.get('gn:' .. shard(name), name, db.is_new(queue))
  if known then
    local group = tonumber(known)
    if db.see(RECORD.group, group).idle then
      inner.rem(turns.idle, turns_idle(queue, rank), text(group))
      db.get(RECORD.group, group).idle = nil
    end
    return group
  end
  local group = db.number()
  db.put(RECORD.group, group, {
    queue = queue, priority = key.priority, name = key.group, own = turns.v, open = inner.new(),
    bundles = 0,
  })
  turns.groups = turns.groups + 1
  maps.put('gn:' .. shard(name), name, text(group))
  return group
end

-- Drops a lane that is empty and that no shape points to, and what it leaves empty above it.
function lib.drop_lane_if_idle(lane)
  local lane_record = db.get(RECORD.lane, lane)
  if lane_record.shapes > 0 or lane_record.line.n > 0 or lane_record.out or lane_record.place then
    return
  end
  maps.drop(lanes_by_key(lane_record.words, lane_record.needs), lane_record.words)
  db.drop(RECORD.lane, lane)
  local bundle_record = db.get(RECORD.bundle, lane_record.bundle)
  bundle_record.lanes = bundle_record.lanes - 1
  lib.drop_bundle_if_idle(lane_record.bundle)
end

function lib.drop_bundle_if_idle(bundle)
  local bundle_record = db.get(RECORD.bundle, bundle)
  if bundle_record.lanes > 0 then
    return
  end
  db.drop(RECORD.bundle, bundle)
  local group_record = db.get(RECORD.group, bundle_record.group)
  local sort_key = bundle_key(bundle_record.group, bundle_record.plain, bundle_record.suspect)
  if tonumber(maps.get(bundles_by_key(sort_key), sort_key)) == bundle then
    maps.drop(bundles_by_key(sort_key), sort_key)
    group_record.bundles = group_record.bundles - 1
  end
  if group_record.bundles == 0 then
    local rank = -group_record.priority
    local turns = lib.turns(group_record.queue, rank)
    if turns and not group_record.idle then
      inner.add(turns.idle, turns_idle(group_record.queue, rank), group_record.own, text(bundle_record.group))
      group_record.idle = true
    end
    lib.forget_idle_groups(group_record.queue, rank)
  end
end

-- A lane that reserves has a bundle of its own, since what is kept for it is kept from the others of
-- its bundle; one that does no more goes back.
function lib.own_bundle(lane)
  local shared = db.get(RECORD.lane, lane).bundle
  local bundle_record = db.get(RECORD.bundle, shared)
  local own = new_bundle(bundle_record.queue, bundle_record.group, bundle_record.plain, bundle_record.suspect)
  -- The shared one may be empty now, and must be there to go back to.
  bundle_record.lanes = bundle_record.lanes + 1
  lib.move_lane(lane, own)
end

function lib.shared_bundle(lane, now)
  local own = db.get(RECORD.bundle, db.see(RECORD.lane, lane).bundle)
  local sort_key = bundle_key(own.group, own.plain, own.suspect)
  local shared = tonumber(maps.get(bundles_by_key(sort_key), sort_key))
  if shared then
    lib.move_lane(lane, shared)
    local bundle_record = db.get(RECORD.bundle, shared)
    bundle_record.lanes = bundle_record.lanes - 1
    lib.bundle_changed(shared, now)
  end
end

function lib.move_lane(lane, to)
  local lane_record = db.get(RECORD.lane, lane)
  local from, queue, len = lane_record.bundle, lane_record.queue, lane_record.line.n
  local open = not lane_record.place
  if open then
    local bundle_record = db.get(RECORD.bundle, from)
    if lane_record.ordered then
      inner.rem(bundle_record.open, bundle_open(from), text(lane))
      lane_record.ordered = nil
      lib.order_bundle(from)
    end
    if lane_record.out then
      inner.rem(bundle_record.outs, bundle_outs(from), text(lane))
    end
    bundle_record.waiting = bundle_record.waiting - len
    lib.add_blocked(queue, bundle_record.place, -len)
  end
  lane_record.bundle = to
  local bundle_record = db.get(RECORD.bundle, to)
  bundle_record.lanes = bundle_record.lanes + 1
  local its_bundle = db.get(RECORD.bundle, from)
  its_bundle.lanes = its_bundle.lanes - 1
  if open then
    bundle_record.waiting = bundle_record.waiting + len
    lib.add_blocked(queue, bundle_record.place, len)
    lib.order_lane(lane)
    if lane_record.out then
      inner.add(bundle_record.outs, bundle_outs(to), lane, text(lane))
      if bundle_record.place then
        lib.clear_out(ENTRY.lane .. text(lane))
      end
    end
  end
  lib.drop_bundle_if_idle(from)
end

-- An idle group is forgotten once its time is not above the priority's.
function lib.forget_idle_groups(queue, rank)
  local queue_record = db.get(RECORD.queue, queue)
  local turns = queue_record.priorities[rank]
  if not turns then
    return
  end
  for _ = 1, BOUND.STEPS_MAX do
    local member, own = inner.first(turns.idle, turns_idle(queue, rank))
    if not member or own > turns.v then
      break
    end
    local group = tonumber(member)
    inner.rem(turns.idle, turns_idle(queue, rank), member)
    local name = group_key(queue, rank, db.see(RECORD.group, group).name)
    maps.drop('gn:' .. shard(name), name)
    db.drop(RECORD.group, group)
    turns.groups = turns.groups - 1
  end
  if turns.groups == 0 then
    queue_record.priorities[rank] = nil
    return
  end
  local member, own = inner.first(turns.idle, turns_idle(queue, rank))
  if member and own <= turns.v then
    lib.tidy_soon(TIDY.groups, queue)
  end
end

-- Nobody waits in a priority: V rises to the highest finish, which makes the times of all its idle groups
-- void. Otherwise a group that came once, with one job, would be remembered for as long as only such groups
-- come: each of them starts at V, so none moves V on.
function lib.void_turns(queue, rank)
  local turns = lib.turns(queue, rank)
  if turns then
    turns.v = max(turns.v, turns.top)
    lib.forget_idle_groups(queue, rank)
  end
end

-- Goes on forgetting idle groups of a queue, as far as one tick may.
function lib.forget_void_groups(queue)
  local left = floor(BOUND.TICK_MAX / BOUND.STEPS_MAX)
  for _, rank in ipairs(ranks(queue)) do
    local turns = lib.turns(queue, rank)
    local was
    while turns and left > 0 and was ~= turns.idle.n do
      was, left = turns.idle.n, left - 1
      lib.forget_idle_groups(queue, rank)
      turns = lib.turns(queue, rank)
    end
  end
  if left == 0 then
    lib.tidy_soon(TIDY.groups, queue)
  end
end

-- ---- A lane's jobs ----

-- Puts a job or a caller into a lane.
function lib.enter_lane(lane, arrival, slot, now)
  local lane_record = db.get(RECORD.lane, lane)
  lines.insert(lane_record.line, lane_line(lane), arrival, slot)
  if lane_record.told == arrival then
    -- It became ready again: what it lacks is told anew.
    lane_record.told, lane_record.told_need = nil, nil
  end
  lib.add_len(lane_record, 1)
  lib.lane_changed(lane, now)
end

-- Takes a job or a caller out of its lane.
function lib.leave_lane(lane, arrival, slot, now)
  local lane_record = db.get(RECORD.lane, lane)
  if lines.remove(lane_record.line, lane_line(lane), arrival, slot) then
    lib.add_len(lane_record, -1)
    lib.lane_changed(lane, now)
    lib.drop_lane_if_idle(lane)
  end
end

-- Adds to every sum that the lane's length is part of.
function lib.add_len(lane_record, delta)
  local queue_record = db.get(RECORD.queue, lane_record.queue)
  queue_record.waiting = queue_record.waiting + delta
  local turns = queue_record.priorities[-lane_record.priority]
  turns.waiting = turns.waiting + delta
  if lane_record.place then
    lib.add_blocked(lane_record.queue, lane_record.place, delta)
  else
    local bundle_record = db.get(RECORD.bundle, lane_record.bundle)
    bundle_record.waiting = bundle_record.waiting + delta
    lib.add_blocked(lane_record.queue, bundle_record.place, delta)
  end
  if turns.waiting == 0 then
    lib.void_turns(lane_record.queue, -lane_record.priority)
  end
end

function lib.add_blocked(queue, place, delta)
  if place then
    local queue_record = db.get(RECORD.queue, queue)
    queue_record.blocked = queue_record.blocked + delta
    local door = db.get(RECORD.door, place.door)
    door.waiting = door.waiting + delta
    lib.pool_waits(place.door, delta)
    local line = lib.door_line(place.door, queue)
    line.waiting = line.waiting + delta
  end
end

-- Moves a lane between open, parked and misfit; the sums go with it.
function lib.place_lane(lane, place)
  local lane_record = db.get(RECORD.lane, lane)
  local old, len = lane_record.place, lane_record.line.n
  lane_record.place = place
  local bundle_record = db.get(RECORD.bundle, lane_record.bundle)
  if not old and place then
    bundle_record.waiting = bundle_record.waiting - len
    lib.add_blocked(lane_record.queue, bundle_record.place, -len)
    lib.add_blocked(lane_record.queue, place, len)
  elseif old and not place then
    bundle_record.waiting = bundle_record.waiting + len
    lib.add_blocked(lane_record.queue, old, -len)
    lib.add_blocked(lane_record.queue, bundle_record.place, len)
  elseif old and place then
    lib.add_blocked(lane_record.queue, old, -len)
    lib.add_blocked(lane_record.queue, place, len)
  end
  lib.order_lane(lane)
end

-- Moves a bundle between open, parked and misfit; the sums go with it.
function lib.place_bundle(bundle, place)
  local bundle_record = db.get(RECORD.bundle, bundle)
  local old, len = bundle_record.place, bundle_record.waiting
  bundle_record.place = place
  lib.add_blocked(bundle_record.queue, old, -len)
  lib.add_blocked(bundle_record.queue, place, len)
  lib.order_bundle(bundle)
end

-- ---- Order ----

-- Carries a lane's head up into the order, if the lane is open.
function lib.order_lane(lane)
  local lane_record = db.get(RECORD.lane, lane)
  local key
  if not lane_record.place then
    key = lines.first(lane_record.line, lane_line(lane))
  end
  if lane_record.ordered == key then
    return
  end
  inner.place(db.get(RECORD.bundle, lane_record.bundle).open, bundle_open(lane_record.bundle), lane_record.ordered,
    key, number_text(lane))
  lane_record.ordered = key
  lib.order_bundle(lane_record.bundle)
end

function lib.order_bundle(bundle)
  local bundle_record = db.get(RECORD.bundle, bundle)
  local key
  if not bundle_record.place then
    local _, first = inner.first(bundle_record.open, bundle_open(bundle))
    key = first
  end
  if bundle_record.ordered == key then
    return
  end
  inner.place(db.get(RECORD.group, bundle_record.group).open, group_open(bundle_record.group), bundle_record.ordered,
    key, number_text(bundle))
  bundle_record.ordered = key
  lib.order_group(bundle_record.group)
end

-- A group's member in its priority's order: by time, then by the arrival of its head.
local function turn_member(arrival, group)
  return lib.pad(arrival) .. ':' .. number_text(group)
end
lib.turn_member = turn_member

function lib.order_group(group)
  local group_record = db.get(RECORD.group, group)
  local queue, rank = group_record.queue, -group_record.priority
  local turns = lib.turns(queue, rank)
  if not turns then
    return
  end
  local _, arrival = inner.first(group_record.open, group_open(group))
  if not group_record.ordered and arrival then
    -- It was idle or parked: it starts again at V, so that waiting earns no credit.
    group_record.own = max(group_record.own, turns.v)
  end
  if group_record.ordered == arrival and group_record.ordered_own == (arrival and group_record.own) then
    return
  end
  if group_record.ordered then
    inner.rem(turns.open, turns_open(queue, rank), turn_member(group_record.ordered, group))
  end
  group_record.ordered, group_record.ordered_own = arrival, arrival and group_record.own
  if arrival then
    inner.add(turns.open, turns_open(queue, rank), group_record.own, turn_member(arrival, group))
    db.touched[queue] = true
  end
end

-- How far a group's time goes by one grant.
function lib.turn_unit(queue, group_record)
  local settings = group_record.name and lib.queue_settings(queue)
  local shares = settings and settings.shares and settings.shares[group_record.name] or 1
  return floor(BOUND.SHARE_UNIT / max(shares, 1))
end

-- Books a grant of a group: start-time fair queuing.
function lib.book_turn(lane)
  lib.book_turns(lane, 1)
end

-- Books so many grants in a row of a group; more than one only if no other group has an open lane.
function lib.book_turns(lane, n)
  local group = db.get(RECORD.bundle, db.see(RECORD.lane, lane).bundle).group
  local group_record = db.get(RECORD.group, group)
  local queue, rank = group_record.queue, -group_record.priority
  local turns = lib.turns(queue, rank)
  if not turns then
    return
  end
  local unit = lib.turn_unit(queue, group_record)
  turns.v = max(group_record.own, turns.v) + (n - 1) * unit
  group_record.own = turns.v + unit
  turns.top = max(turns.top, group_record.own)
  -- Its key has changed, not its head.
  if group_record.ordered then
    local member = turn_member(group_record.ordered, group)
    inner.rem(turns.open, turns_open(queue, rank), member)
    inner.add(turns.open, turns_open(queue, rank), group_record.own, member)
    group_record.ordered_own = group_record.own
  end
  if turns.idle.n > 0 then
    lib.forget_idle_groups(queue, rank)
  end
end

-- After so many heads of an open lane were granted in a row: books their turns, and carries the next
-- head up.
function lib.heads_taken(lane, n, now)
  local lane_record = db.get(RECORD.lane, lane)
  if lane_record.out or lane_record.marked or not lib.stands_alone(lane_record.bundle) then
    lib.book_turns(lane, n)
    lib.lane_changed(lane, now)
    lib.drop_lane_if_idle(lane)
    return
  end
  local head = lines.first(lane_record.line, lane_line(lane))
  inner.place(db.get(RECORD.bundle, lane_record.bundle).open, bundle_open(lane_record.bundle), lane_record.ordered,
    head, number_text(lane))
  lane_record.ordered = head
  lib.alone_taken(lane_record.bundle, n)
  if not head then
    lib.drop_lane_if_idle(lane)
  end
end

-- Whether a bundle with an open lane is the only open one of the only group of its priority: then its place on the
-- levels above does not change when heads of its lanes are granted.
function lib.stands_alone(bundle)
  local bundle_record = db.see(RECORD.bundle, bundle)
  local group_record = db.see(RECORD.group, bundle_record.group)
  local turns = db.see(RECORD.queue, bundle_record.queue).priorities[-group_record.priority]
  return turns.open.n == 1 and turns.idle.n == 0 and group_record.open.n == 1
    and not (turns.open.z or group_record.open.z or bundle_record.out)
end

-- Books the turns of so many heads of the lanes of such a bundle, which are in their order again.
function lib.alone_taken(bundle, n)
  local bundle_record = db.get(RECORD.bundle, bundle)
  local group, queue = bundle_record.group, bundle_record.queue
  local group_record = db.get(RECORD.group, group)
  local turns = db.get(RECORD.queue, queue).priorities[-group_record.priority]
  local open, at, first = bundle_record.open, bundle_open(bundle), nil
  if open.n == 1 and not open.z then
    first = open[1]
  else
    local _, key = inner.first(open, at)
    first = key
  end
  -- Where nobody is left to wait, all times are void.
  if turns.waiting > 0 then
    turns.v = max(group_record.own, turns.v) + (n - 1) * lib.turn_unit(queue, group_record)
    group_record.own = turns.v + lib.turn_unit(queue, group_record)
    turns.top = max(turns.top, group_record.own)
  end
  bundle_record.ordered, group_record.ordered, group_record.ordered_own = first, first, first and group_record.own
  if first then
    group_record.open[1] = first
    turns.open[1], turns.open[2] = group_record.own, turn_member(first, group)
    db.touched[queue] = true
  else
    group_record.open, turns.open = inner.new(), inner.new()
  end
end

-- The lane that goes next, less the suspects of who may have none; or nil.
function lib.next_lane(queue, suspects)
  local looked = 0
  for _, rank in ipairs(ranks(queue)) do
    local turns = lib.turns(queue, rank)
    local first = suspects and inner.first(turns.open, turns_open(queue, rank))
    if first then
      local group = tonumber(sub(first, 18))
      local bundle = tonumber((inner.first(db.see(RECORD.group, group).open, group_open(group))))
      return tonumber((inner.first(db.see(RECORD.bundle, bundle).open, bundle_open(bundle))))
    end
    for turn in inner.each(turns.open, turns_open(queue, rank)) do
      local group = tonumber(sub(turn, 18))
      for bundle in inner.each(db.get(RECORD.group, group).open, group_open(group)) do
        local bundle_record = db.get(RECORD.bundle, tonumber(bundle))
        for lane in inner.each(bundle_record.open, bundle_open(tonumber(bundle))) do
          if suspects or not bundle_record.suspect then
            return tonumber(lane)
          end
          looked = looked + 1
          if looked >= BOUND.STEPS_MAX then
            return nil
          end
        end
      end
    end
  end
end

-- The head of a lane: its arrival and its slot; or nil.
function lib.head(lane)
  return lines.first(db.get(RECORD.lane, lane).line, lane_line(lane))
end

function lib.group_of(lane)
  return db.get(RECORD.bundle, db.see(RECORD.lane, lane).bundle).group
end

-- Whether a waiting job is blocked.
function lib.is_blocked(lane)
  local lane_record = db.get(RECORD.lane, lane)
  return (lane_record.place or db.see(RECORD.bundle, lane_record.bundle).place
    or db.see(RECORD.queue, lane_record.queue).place) ~= nil
end
