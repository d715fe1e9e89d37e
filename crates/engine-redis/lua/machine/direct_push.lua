-- The direct way of one job that is pushed: ready and granted to a call that waits, or put behind others; or for later.
--
-- It may have a unique key that it holds until its end. All else of the direct way: machine/direct.

-- A job that came alone: {id, b, bytes, spec, content = what its row has behind its numbers, at | delay = when it is to
-- run, key = its unique key, is_item}. `is_item`: it came as one of a list, and is answered as such. Nil for more than
-- one, and for what is unusual otherwise.
local function came_alone(args, texts)
  local id, b, bytes, content = lib.pushed_alone(args.blocks, texts)
  if id then
    return { id = id, b = b, bytes = bytes, spec = args.spec, content = content }
  end
  local new = args.jobs and not args.jobs[2] and not args.kin and args.jobs[1]
  local more = new and new[NEW_JOB_AT.more]
  if not more or not (more.u or more.at or more.dl) or not lib.has_key_or_moment_alone(more) then
    return nil
  end
  local unique = more.u
  id, b = new[NEW_JOB_AT.id], new[NEW_JOB_AT.b]
  return {
    id = id, b = b, bytes = new[NEW_JOB_AT.bytes], spec = args.shapes[new[NEW_JOB_AT.shape]], key = unique,
    content = lib.row_text(id, b, unique, nil, nil, new[NEW_JOB_AT.body]), at = more.at, delay = more.dl,
    is_item = true,
  }
end

-- Whether a job of this id, or one that holds its key, may be there.
local function may_be_known(new, is_fresh)
  local unique = new.key
  return (new.is_item or not is_fresh) and lib.seq_of(new.id, new.b)
    or unique and (lib.key_holder(unique[UNIQUE_AT.key]) or lib.may_replace(unique) and db.get(RECORD.replacing, new.id))
end

-- The first call that waits for a queue, if it can be sent what it is granted: its name, and it.
local function first_taker(queue)
  local id = sets.first(lib.takers_of(queue))
  local taker = id and db.get(RECORD.waiting_call, id)
  if taker and lib.is_heard(taker.proc)
    and not (taker.request and db.get(RECORD.request, taker.request)) then
    return id, taker
  end
end

-- Grants the new row to a call that waits: its life.
local function grant_to(id, taker, name, row, number, queue, now)
  local asker, leases = { worker = taker.worker, ttl = taker.ttl, request = taker.request }, {}
  local life = lib.grant_directly(name, row, number, queue, asker, leases, now)
  lib.more_live(1, asker.ttl, now)
  lib.hold(asker.worker, 1, false)
  lib.send_parcel(id, taker, leases, asker, now)
  return life
end

-- Where a ready job of a shape goes: to the first call that waits (its name, and it), or into the lane, behind others
-- (false, and it). Nil if it is not so easy.
local function destination(queue, queue_record, shape)
  if not shape.lane then
    return nil
  elseif queue_record.takers then
    if lib.is_free_queue(queue_record) then
      return first_taker(queue)
    end
    return nil
  end
  local lane = db.get(RECORD.lane, shape.lane)
  if not (lane.line.n == 0 or lane.place or lines.is_full(lane.line)) then
    return false, lane
  end
end

-- The answer: of one of a list as ops/push has it, of one that came beside the arguments as its block.
local function reply_of(new, number, seq, state, row, life, unasked, whole, now)
  if not whole then
    return { n = 1, unasked = unasked }
  elseif new.is_item then
    local of_key = new.key and new.key[UNIQUE_AT.key]
    local is_later = state == STATE.scheduled
    return { {
      id = new.id, seq = is_later and seq or nil, key = is_later and of_key or nil, unasked = unasked,
      job = lib.show_stored(seq, state, row, life, number),
    } }
  end
  local stored = lib.show_stored_together(number, { seq }, now)
  stored.lives = life and { lib.blob(life) } or nil
  return { n = 1, unasked = unasked, stored = stored }
end

function lib.push_directly(args, argv)
  local new = came_alone(args, argv[2])
  local queue = new and lib.find_queue(new.spec.q)
  local queue_record = queue and db.get(RECORD.queue, queue)
  local settings = queue_record and lib.queue_settings(queue)
  if not queue_record or queue_record.hidden or settings.max_waiting then
    return nil
  end
  local wanted = lib.shape_of(new.spec, args.dr, settings)
  local number = not wanted.needs[1] and lib.find_shape(lib.shape_words(wanted), wanted.needs)
  local shape = number and db.get(RECORD.shape, number)
  local chunk, key, row_field, life_field = lib.job_home(db.space.seq + 1)
  if not shape or not db.see(RECORD.chunk, chunk) or may_be_known(new, args.fresh) then
    return nil
  end
  local clock = lib.clock()
  local moment = max(clock, db.space.last)
  local run_at = new.at or new.delay and moment + new.delay
  local taker_id, whom
  if not run_at then
    taker_id, whom = destination(queue, queue_record, shape)
  end
  if not (run_at and run_at > moment or whom) then
    return nil
  end

  local now = db.write_direct(clock)
  local seq = lib.new_row(new.id, new.b)
  lib.use_shape(shape, now)
  shape.rows = shape.rows + 1
  queue_record.used_at = max(queue_record.used_at, now)
  lib.pushed_event(new.spec.q, new.id, 1)
  if new.key then
    lib.take_key({ unique = new.key, seq = seq, id = new.id }, now)
  end
  key = db.prefix .. key
  local state, row, life = nil, nil, false
  if run_at then
    state, life = STATE.scheduled, lib.scheduled_life(number, run_at, new.bytes, new.key)
    row = lib.row_head(number, now, 0, new.bytes) .. new.content
    lib.timer_set('due', run_at, lib.pad(seq))
    queue_record.scheduled = queue_record.scheduled + 1
  else
    local arrival = lib.next_arrival()
    row = lib.row_head(number, now, arrival, new.bytes) .. new.content
    if taker_id then
      queue_record.running = queue_record.running + 1
      state, life = STATE.running,
        grant_to(taker_id, whom, lib.lease_id(lib.next_fence(now), seq), row, number, new.spec.q, now)
    else
      db.write_whole()
      lines.append(whom.line, lib.lane_line(shape.lane), arrival, seq, 1)
      lib.add_len(whom, 1)
      state = new.is_item and lib.state_in_line(number)
    end
  end
  if life then
    call('HSET', key, row_field, row, life_field, life)
  else
    call('HSET', key, row_field, row)
  end
  local unasked = lib.is_unasked(queue, now) or nil
  return reply_of(new, number, seq, state, row, life, unasked, args.whole, now)
end
