-- settle: ends leases with an outcome; and the ends that nobody asked for, by force or undelivered.
--
-- args: {items, shapes, dr, kn, claims}. An item: {f, s, c = claim (machine/reclaim), o = 'S' 'F' 'Z' 'R',
-- result, error, retry_in, last, for, until, reset, progress, next_in, resources = {{pool, id, word, for, until, reason}}, limits =
-- {{limit, pause, spent}}, push, kin = who of those waits for whom (ops/after)}. Or {runs, ordered, results}, where all simply succeeded: {f, s, how many have one
-- f and one s after the other, …}, and the results of some by their place; `ordered` as in machine/short_settle; `places`
-- has where each stands in the caller's order, if that is another, two characters each.
-- Replies one {ok, state, run_at, next_at, pushed} or {ok = false, code} each, or {all} if all of `runs` ended so. Only the
-- holder may settle, once: a late or foreign settle changes nothing, the same settle again is answered as the first
-- was. Works when the store is full, unless it pushes.

-- What a lease's name means now: 'live' (lease, job), 'past' (outcome, state, run_at, next_at) or 'lost'.
local function known(fence, seq)
  local lease, job = lib.lease(fence, seq)
  if lease then
    return 'live', lease, job
  end
  if seq == 0 then
    if db.get(RECORD.stub, text(fence)) == OUTCOME.released then
      return 'past', OUTCOME.released
    end
    return 'lost'
  end
  job = lib.job(seq)
  for _, past in ipairs(job and job.settles or {}) do
    if past[SETTLED_AT.fence] == fence then
      return 'past', past[SETTLED_AT.outcome], past[SETTLED_AT.state], past[SETTLED_AT.run_at] or nil,
        past[SETTLED_AT.next_at]
    end
  end
  return 'lost'
end

local WORDS = OUTCOME_WORDS

local function check_item(item, shapes, now)
  local what, lease, job = known(item.f, item.s)
  if what ~= 'live' then
    -- A lost lease is answered in its item, and what it says of its needs no longer matters.
    return
  end
  if lease.seq == 0 and item.o ~= OUTCOME.succeeded and item.o ~= OUTCOME.released then
    lib.refuse('settle_outcome_needs_job', { outcome = WORDS[item.o] }, '/outcome')
  end
  if item.o == OUTCOME.snoozed and item['until'] and item['until'] - now < BOUND.SNOOZE_US_MIN then
    lib.refuse('settle_snooze_too_near', { ['until'] = item['until'] }, '/until')
  end
  for n, verdict in ipairs(item.resources or {}) do
    local pool, id = verdict[VERDICT_AT.pool], verdict[VERDICT_AT.id]
    if not lib.held_resource(lease, pool, id) then
      lib.refuse('settle_resource_not_held', { pool = pool, resource = id },
        '/resources/' .. text(n - 1))
    end
  end
  for n, verdict in ipairs(item.limits or {}) do
    local limit = verdict[LIMIT_VERDICT_AT.limit]
    if not lib.held_limit(lease, limit) and (verdict[LIMIT_VERDICT_AT.spent] or not lib.setting_of(limit)) then
      lib.refuse('settle_limit_not_held', { limit = limit }, '/limits/' .. text(n - 1) .. '/limit')
    end
  end
  if item.push and #item.push > 0 then
    lib.check_follow_ups(item, shapes, lib.goes_with_its_end(job, item), lib.heir_of(job), now)
  end
end

local function ending_of(item, now)
  if item.o == OUTCOME.succeeded then
    return { kind = 'succeeded', result = item.result }
  elseif item.o == OUTCOME.failed then
    return { kind = 'failed', error = item.error or '', retry_in = item.retry_in, last = item.last }
  elseif item.o == OUTCOME.snoozed then
    return {
      kind = 'snoozed', at = item['until'] or now + item['for'], wait = item['for'] or 0, reset = item.reset,
    }
  end
  return { kind = 'released' }
end

local function settle_one(item, shapes, default_retry, now)
  local what, lease, job, run_at, past_next_at = known(item.f, item.s)
  if what == 'lost' then
    return { ok = false, code = 'lease_lost' }
  elseif what == 'past' then
    local before, state = lease, job
    -- Without a job both endings mean the same.
    if before == item.o or not state and item.o == OUTCOME.succeeded then
      return {
        ok = true, state = state, run_at = run_at, next_at = past_next_at, pushed = lib.pushed_before(item.push, now),
      }
    end
    return { ok = false, code = 'already_settled' }
  end
  local follow_ups
  if item.push and #item.push > 0 then
    local goes = lib.goes_with_its_end(job, item)
    follow_ups = lib.push_before_end(item, shapes, goes, lib.heir_of(job), default_retry, now)
    if not follow_ups then
      return { ok = false, code = 'queue_full' }
    end
  end
  lib.hear_worker(lease.holder, now)
  for _, verdict in ipairs(item.resources or {}) do
    lib.judge(lib.resource(verdict[VERDICT_AT.pool], verdict[VERDICT_AT.id]), verdict, now)
  end
  for _, verdict in ipairs(item.limits or {}) do
    local limit, spent = verdict[LIMIT_VERDICT_AT.limit], verdict[LIMIT_VERDICT_AT.spent]
    local held = lib.held_limit(lease, limit)
    if spent and held then
      lib.correct_cost(limit, held[PERMIT_AT.cost], spent, now)
    end
    if verdict[LIMIT_VERDICT_AT.pause] then
      lib.pause_limit_until(limit, now + verdict[LIMIT_VERDICT_AT.pause], now)
    end
  end
  if job and item.progress then
    lib.set_job_part(job, PART.progress, item.progress)
  end
  local next_at
  if job and job.origin and item.next_in then
    next_at = lib.move_schedule(job.origin, job.id, item.next_in, now)
    job.next_at = next_at
  end
  local became = lib.end_lease(lease, job, ending_of(item, now), now)
  local pushed = follow_ups and lib.push_after_end(item, follow_ups, shapes, job, default_retry, now)
  return {
    ok = true, state = became and became[1], run_at = became and became[2], next_at = next_at, pushed = pushed,
  }
end

local SUCCEEDED = { ok = true, state = STATE.succeeded }

-- Settles those of the items that may go the short way; the places of the others, and what is to be told of these, with
-- the place that each item had there.
local function settle_some(items, now)
  local runs, results, at, left, named = {}, {}, {}, {}, {}
  for index, item in ipairs(items) do
    -- A follow-up, and a lease that is named twice, see what was done before them in this call.
    if item.push or named[item.s] then
      return lib.places(#items)
    end
    named[item.s] = item.s > 0
    if item.o == OUTCOME.succeeded and item.s > 0
      and not (item.resources or item.limits or item.progress or item.next_in) then
      local n = #at + 1
      runs[n * 3 - 2], runs[n * 3 - 1], runs[n * 3] = item.f, item.s, 1
      results[n], at[n] = item.result, index
    else
      left[#left + 1] = index
    end
  end
  local left_of_runs, _, told = lib.settle_short(runs, results, true, now)
  for _, n in ipairs(left_of_runs) do
    left[#left + 1] = at[n]
  end
  sort(left)
  local place_of = {}
  for n, index in ipairs(at) do
    place_of[index] = n
  end
  return left, told, place_of
end

-- All of so many in the caller's order: events are in that order, and so others are told of these ends.
local function in_callers_order(many, places)
  local all, place_of = lib.places(many), {}
  if not places then
    return all
  end
  for at = 1, many do
    local high, low = byte(places, at * 2 - 1, at * 2)
    place_of[at] = high * 256 + low
  end
  sort(all, function(one, other)
    return place_of[one] < place_of[other]
  end)
  return all
end

-- Goes through these in their order: `settle_at` settles what is left, of the others it is told that they were settled.
-- `place_of`: where those have another place in `told`.
local function go_through(order, left, told, place_of, settle_at)
  local is_left, from, to = {}, nil, nil
  for _, index in ipairs(left) do
    is_left[index] = true
  end
  local function tell()
    if from and told then
      lib.tell_settled(told, from, to)
    end
    from = nil
  end
  for _, index in ipairs(order) do
    local place = place_of and place_of[index] or index
    if is_left[index] then
      tell()
      settle_at(index)
    elseif from and place == to + 1 then
      to = place
    else
      tell()
      from, to = place, place
    end
  end
  tell()
end

local function items_of(runs, results)
  local items = {}
  for i = 1, #runs, 3 do
    for n = 0, runs[i + 2] - 1 do
      local place = #items + 1
      items[place] = {
        f = runs[i] + n, s = runs[i + 1] + n, o = OUTCOME.succeeded, result = results and results[place] or nil,
      }
    end
  end
  return items
end

-- `long`: none goes the short way, so that what comes after in the same call can read what became of them.
local function settle(args, long, now)
  local items, left, told, place_of, many = args.items, nil, nil, nil, nil
  if args.claims then
    -- What is claimed may end what others hold: nothing goes the short way then.
    left = lib.places(#items)
    for _, item in ipairs(items) do
      lib.reclaim(item.f, item.s, item.c, now)
    end
  elseif long then
    items = items or items_of(args.runs, args.results)
    left = lib.places(#items)
  elseif args.runs then
    left, many, told = lib.settle_short(args.runs, args.results, args.ordered, now)
    if told and args.places then
      lib.tell_apart(told)
    end
    if #left == 0 then
      if told and args.places then
        go_through(in_callers_order(many, args.places), left, told)
      elseif told then
        lib.tell_settled(told, 1, many)
      end
      return { all = many }
    end
    items = items_of(args.runs, args.results)
  else
    left, told, place_of = settle_some(items, now)
  end
  local seqs, answers = {}, {}
  for index in ipairs(items) do
    answers[index] = SUCCEEDED
  end
  for _, index in ipairs(left) do
    local item = items[index]
    answers[index] = false
    if item.s > 0 then
      seqs[#seqs + 1] = item.s
    end
  end
  lib.load_jobs(seqs)
  for _, index in ipairs(left) do
    local ok, no = pcall(check_item, items[index], args.shapes, now)
    if not ok then
      if type(no) == 'table' and no.no then
        no.no.pointer = '/settle/' .. text(index - 1) .. (no.no.pointer or '')
        no.no.index = index - 1
      end
      error(no, 0)
    end
  end
  go_through(in_callers_order(#items, args.places), left, told, place_of, function(index)
    answers[index] = settle_one(items[index], args.shapes, args.dr, now)
  end)
  lib.later(function()
    for _, answer in ipairs(answers) do
      for _, one in ipairs(answer.pushed or {}) do
        lib.show_pushed(one)
      end
    end
  end)
  return answers
end

lib.op('settle', { 'write', 'allow-oom' }, function(args, now)
  lib.look_at_run(args.kn, now)
  return settle(args, false, now)
end, { directly = lib.settle_directly })

-- settle_and_lease: {settle, lease, kn}, the arguments of both. Settles, and then does as a lease call that comes next,
-- except that one which may wait leaves to others what they were just signalled for. Replies {settled, leased}.
lib.op('settle_and_lease', { 'write' }, function(args, now)
  lib.look_at_run(args.kn, now)
  -- A repeat is answered the leases of its request, which may be among those that it settles.
  local request = args.lease.rq
  local settled = settle(args.settle, request and db.get(RECORD.request, request), now)
  lib.leave_spans()
  lib.serve(now)
  db.units = {}
  return { settled = settled, leased = lib.lease_call(args.lease, now) }
end, { directly = lib.settle_and_lease_directly })

-- force_lease: {f, s, id}. As a reap, but counted nowhere.
lib.op('force_lease', { 'write', 'allow-oom' }, function(args, now)
  local lease, job = lib.lease(args.f, args.s)
  if not lease then
    lib.refuse('lease_not_found', { lease = args.id })
  end
  lib.end_lease(lease, job, { kind = 'forced' }, now)
  return true
end)

-- The callers of these were gone when they were granted: {{fence, seq}}. They are undone, and count nowhere. A lease
-- that was extended since, or answered to a repeat of its call, is left alone: the first answer was lost, but somebody
-- holds it, and two must not.
function lib.undo(leases, now)
  local undone = {}
  for _, item in ipairs(leases) do
    local lease, job = lib.lease(item[RUN_AT.fence], item[RUN_AT.seq])
    if lease and not lease.extended and not lease.again then
      if lease.request then
        local names = undone[lease.request] or {}
        undone[lease.request] = names
        names[lib.lease_id(item[RUN_AT.fence], item[RUN_AT.seq])] = true
      end
      lib.end_lease(lease, job, { kind = 'undelivered' }, now)
    end
  end
  for request, names in pairs(undone) do
    local past, others = db.get(RECORD.request, request), {}
    for _, name in ipairs(past and lib.leases_of_request(past) or {}) do
      if not names[name] then
        others[#others + 1] = name
      end
    end
    if past and others[1] then
      past.leases, past.runs = concat(others), nil
    elseif past then
      db.drop(RECORD.request, request)
      lib.timer_clear('rqe', request)
    end
  end
end

-- undo: {leases = {{fence, seq}}}.
lib.op('undo', { 'write', 'allow-oom' }, function(args, now)
  lib.undo(args.leases, now)
  return true
end)
