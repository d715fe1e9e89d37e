-- The start and the end of a call. Above `write_all` a call only reads, in it it only writes.

-- The arguments of one command at most, so that no unpack is large.
local CHUNK = 1000

local function many(command, key, items)
  local n = #items
  if n <= CHUNK then
    call(command, key, unpack(items))
    return
  end
  for from = 1, n, CHUNK do
    call(command, key, unpack(items, from, min(from + CHUNK - 1, n)))
  end
end

local function many_keys(command, keys)
  for from = 1, #keys, CHUNK do
    call(command, unpack(keys, from, min(from + CHUNK - 1, #keys)))
  end
end

-- While a slot is on its way to another node, a part of a namespace lies here and the rest there. The node
-- that gives it away refuses every command for a key that it has not, so a call there is done if all that it
-- needs is there, and else finds that out above the line. The node that takes it in answers for a key that has
-- not come yet as if there were none, so nothing is done there. A command for two keys, one of them nowhere, is
-- refused by both for just as long; for one key, nowhere, only by the one that gives away.

-- Whether the slot of a namespace is on its way, as far as the namespace's own key can tell.
function db.slot_moves(meta, prefix)
  local seen = redis.pcall('EXISTS', meta, prefix .. 'nowhere')
  return type(seen) == 'table' and seen.err ~= nil
end

function db.look_at_slot(meta)
  if db.clustered == nil then
    db.clustered = find(call('INFO', 'cluster'), 'cluster_enabled:1', 1, true) ~= nil
  end
  if db.clustered and db.slot_moves(meta, db.prefix) then
    local seen = redis.pcall('EXISTS', db.prefix .. 'nowhere')
    db.leaving = type(seen) == 'table' and seen.err ~= nil
    if not db.leaving then
      db.refuse_moving()
    end
  end
end

function db.refuse_moving()
  error({ err = 'TENURE_MOVING' }, 0)
end

-- A key that is emptied is gone, and a node that gives its slot away does not let it be made again: below the
-- line that would tear the call apart. So what empties a key before it fills it is not done there.
local function look_at_emptied(order)
  for _, writes in ipairs(order) do
    local key = writes.key
    if writes.gone and (writes.texts or writes.puts or writes.zadd or writes.push)
      or writes.dels and writes.puts and call('HLEN', key) <= #writes.dels
      or writes.zrem and writes.zadd and call('ZCARD', key) <= #writes.zrem
      or writes.push and writes.pop and writes.pop > 0 and call('LLEN', key) <= writes.pop then
      db.refuse_moving()
    end
  end
end

-- Starts a call on the namespace whose key `m` this is; `head`: what that says of the namespace.
function db.begin(meta, head, writes, copies)
  fresh(sub(meta, 1, -2))
  local raw, layout, frozen, kid, born, unsaid = unpack(head)
  if layout and layout ~= LAYOUT then
    error({ err = concat({ 'TENURE_LAYOUT', layout, LAYOUT }, ' ') }, 0)
  end
  if frozen and not copies then
    error({ err = concat({ 'TENURE_FROZEN', lib.frozen_for(frozen) }, ' ') }, 0)
  end
  db.look_at_slot(meta)
  db.raw, db.kid, db.born, db.unsaid_at = raw, kid or nil, born or nil, tonumber(unsaid or '')
  if not (writes and db.take_kept(raw)) then
    db.space = raw and db.decode(RECORD.space, raw) or lib.new_space()
  end
  db.numbered = db.space.number
  db.clock = lib.clock()
  db.copying = copies
end

-- A field of a hash that is to be written, or to go.
function db.write(out, key, field, value)
  local writes = out(key)
  local puts = writes.puts
  if not puts then
    writes.puts = { field, value }
    return
  end
  local n = #puts
  puts[n + 1], puts[n + 2] = field, value
end

function db.erase(out, key, field)
  local writes = out(key)
  if not writes.dels then
    writes.dels = {}
  end
  writes.dels[#writes.dels + 1] = field
end

-- Notifications that could not be published are remembered for so long.
local UNSAID_US = 10000000

-- Whether notifications of this namespace were denied lately: then who waits here looks for itself.
local function is_unsaid()
  local at = db.unsaid_at
  return at and abs(db.space.last - at) < UNSAID_US
end

-- On a cluster a channel lies in the slot of its namespace, as every key of it does: it is published, heard and counted
-- at the node that owns the slot. An ordinary channel is heard at every node there, and no node can count who listens.
-- Processes make the same choice (src/link/channels).

local function publish(channel, message)
  return redis.pcall(db.clustered and 'SPUBLISH' or 'PUBLISH', channel, message)
end

-- Whether somebody listens to a channel.
function db.is_heard(channel)
  local heard = redis.pcall('PUBSUB', db.clustered and 'SHARDNUMSUB' or 'NUMSUB', channel)
  return type(heard) == 'table' and not heard.err and heard[2] > 0
end

-- Notifications are hints, and all is written by now: one that an ACL denies must not fail the call. Processes
-- that wait for it hear of it by their next answer.
local function publish_all()
  for _, said in ipairs(db.said) do
    local channel, message = unpack(said)
    local done = publish(channel, message)
    if type(done) == 'table' and done.err then
      db.denied = channel
    end
  end
  if db.denied and not (is_unsaid() and db.space.last - db.unsaid_at < BOUND.SECOND_US) then
    db.unsaid_at = db.space.last
    call('HSET', db.prefix .. KEY.meta, 'unsaid', text(db.unsaid_at))
  end
end

-- Writes what a call changes of one key.
function db.write_key(its_writes)
  local whole = its_writes.key
  if its_writes.gone then
    call('UNLINK', whole)
  end
  if its_writes.texts then
    call('SET', whole, its_writes.texts)
  end
  if its_writes.dels then
    many('HDEL', whole, its_writes.dels)
  end
  if its_writes.puts then
    many('HSET', whole, its_writes.puts)
  end
  if its_writes.zrem then
    many('ZREM', whole, its_writes.zrem)
  end
  if its_writes.zadd then
    many('ZADD', whole, its_writes.zadd)
  end
  if its_writes.pop and its_writes.pop > 0 then
    call('LTRIM', whole, its_writes.pop, -1)
  end
  if its_writes.push then
    many('RPUSH', whole, its_writes.push)
  end
  if its_writes.entry then
    call('XADD', whole, unpack(its_writes.entry))
  end
  if its_writes.trim then
    call('XTRIM', whole, 'MINID', its_writes.trim)
  end
end

-- Writes what the call changed. Every key that is written and was not read is looked at first: in a
-- slot that is being moved a key that is not here fails, and it must fail before the first write. Only a
-- cluster moves slots.
function db.commit()
  local writes, order = {}, {}
  local function out(key)
    local w = writes[key]
    if not w then
      w = { key = db.prefix .. key }
      writes[key] = w
      order[#order + 1] = w
    end
    return w
  end
  db.write_jobs(out)
  db.write_texts(out)
  db.write_rows(out)
  db.write_records(out)
  db.write_maps(out)
  db.write_zsets(out)
  db.write_lists(out)
  lib.write_events(out)
  if db.clustered then
    local keys = {}
    for i, its_writes in ipairs(order) do
      keys[i] = its_writes.key
    end
    many_keys('EXISTS', keys)
    if db.leaving then
      look_at_emptied(order)
    end
  end
  db.space.version = db.space.version + 1
  local space = db.encode(RECORD.space, db.space)
  -- From here on it only writes, and nothing below can fail by type or argument.
  if db.raw then
    call('HSET', db.prefix .. KEY.meta, META.space, space)
  else
    call('HSET', db.prefix .. KEY.meta, META.space, space, 'layout', LAYOUT)
  end
  for i = 1, #order do
    db.write_key(order[i])
  end
  publish_all()
  db.keep(space)
end

-- ---- Operations ----

lib.ops = {}

-- An operation: its name, its flags, what it does with its arguments at a moment. `how.copies`: it is of a copy,
-- so it works on a frozen namespace, and serves nobody. `how.ticks`: it does what is due, and says itself what is
-- due next. `how.directly`: its direct way; its reply, or nil where that way cannot be gone.
function lib.op(name, flags, act, how)
  local writes = flags[1] == 'write'
  lib.ops[#lib.ops + 1] = {
    name = name, flags = writes and { flags[2] } or flags, act = act, writes = writes,
    copies = how and how.copies, ticks = how and how.ticks, directly = how and how.directly,
  }
end

-- Does something with the reply once all is served. (A direct call serves nobody else.)
function lib.later(act)
  if db.direct then
    return act()
  end
  db.laters[#db.laters + 1] = act
end

-- The parts of an answer with what `show` replies, apart from the answer of the call itself.
function lib.aside(show, now)
  local blobs, shown = db.blobs, db.shown
  db.blobs, db.shown = nil, nil
  local header = { t = now, r = show(), k = db.kid, l = lib.learns(now) }
  header.sh = db.shown and db.shown.all
  local parts = { cmsgpack.pack(header), unpack(db.blobs or {}) }
  db.blobs, db.shown = blobs, shown
  return parts
end

-- A call that wrote says when the next tick is due.
local function say_what_comes(header, now)
  if lib.keeps_too_much() then
    -- Not at once: a namespace that is full would tick after every settle.
    lib.sooner(now + BOUND.SECOND_US)
  end
  header.d = db.sooner
  lib.tell_sooner(db.sooner)
end

-- The answer of a call: {header, blobs…, nonce}.
local function answer_of(header, argv)
  header.u, header.x, header.sh = is_unsaid() or nil, db.denied, db.shown and db.shown.all
  local answer = { cmsgpack.pack(header) }
  for i, blob in ipairs(db.blobs or {}) do
    answer[i + 1] = blob
  end
  answer[#answer + 1] = argv[#argv]
  return answer
end

-- The answer of a call that could go the direct way; or nil.
local function directly(op, meta, head, args, argv)
  local raw, layout, frozen, kid, born, unsaid = unpack(head)
  if layout ~= LAYOUT or frozen or #argv > 2 and argv[#argv - 1] ~= ''
    or not db.begin_direct(sub(meta, 1, -2), raw, kid, born, unsaid) then
    return nil
  end
  local reply = lib.is_calm() and op.directly(args, argv)
  if not reply then
    db.leave_direct()
    return nil
  end
  local now = db.space.last
  local header = { t = now, r = reply, k = db.kid }
  say_what_comes(header, now)
  db.end_direct()
  publish_all()
  return answer_of(header, argv)
end

-- One call of an operation. The last argument is the nonce of the call: by it the caller knows that an answer is its
-- own, and that all of it came.
function lib.run(op, keys, argv)
  if not floor then
    bind()
  end
  local head = call('HMGET', keys[1], META.space, 'layout', 'frozen', 'kid', 'born', 'unsaid')
  local args = cmsgpack.unpack(argv[1])
  local done = op.directly and directly(op, keys[1], head, args, argv)
  if done then
    return done
  end
  db.begin(keys[1], head, op.writes, op.copies)
  local header = {}
  local ok, result = pcall(function()
    db.beside = argv
    local now = lib.advance()
    if op.writes and not op.copies then
      header.s = lib.hear_settings(#argv > 2 and argv[#argv - 1] or '')
    end
    if op.writes and not db.born then
      lib.be_born(now)
    end
    local reply = op.act(args, now)
    now = db.space.last
    if op.writes and not op.copies and not db.nothing then
      lib.serve(now)
    end
    header.t, header.r = now, reply
    header.k, header.l = db.kid, lib.learns(now)
    db.all_done = true
    for _, later in ipairs(db.laters) do
      later(header)
    end
    if op.writes and not op.ticks then
      say_what_comes(header, now)
    end
  end)
  if not ok then
    if type(result) == 'table' and result.no then
      return { cmsgpack.pack({ t = db.space.last, no = result.no }), argv[#argv] }
    end
    error(result, 0)
  end
  if op.writes and not db.nothing then
    db.commit()
  end
  if db.nothing then
    -- What was said to a namespace that is not there is not known to it.
    header.s = nil
  end
  return answer_of(header, argv)
end
