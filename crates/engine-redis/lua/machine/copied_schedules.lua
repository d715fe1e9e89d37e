-- Schedules in a copy: what is shown of one, and one that is put. Plans are made anew, and so is the count of its
-- unfinished jobs, which come before it.

-- What is copied of the record as it is.
local COPIED = {
  'owner', 'timing', 'overlap', 'catch_up', 'catch_up_max', 'version', 'era', 'cursor', 'decided', 'moved',
  'paused_until', 'last_made', 'last_at', 'last_job', 'ended_job', 'ended_state', 'ended_at', 'succeeded_at', 'fired',
  'skipped', 'missed', 'created_at', 'changed_at',
}

-- A schedule, and about how long it is. The caller cannot read one without the job that it makes, and says so.
function lib.show_copied_schedule(id)
  local schedule_record, packed = db.get(RECORD.schedule, id), maps.get(lib.scheduled_job_home(id)) or ''
  if not schedule_record then
    return nil
  end
  local shown = { id = id, job = lib.blob(packed) }
  for _, field in ipairs(COPIED) do
    shown[field] = schedule_record[field]
  end
  return shown, #packed
end

-- Its jobs have made a shell of it, if it has some that have not ended.
function lib.put_copied_schedule(new, now)
  local id = new.id
  local schedule_record = lib.schedule_or_shell(id)
  for _, field in ipairs(COPIED) do
    schedule_record[field] = new[field]
  end
  schedule_record.shell, schedule_record.last_made_b, schedule_record.revision = nil, new.last_made_b, 1
  lib.begin_after(schedule_record, new.cursor)
  maps.put(lib.scheduled_job_home(id), id, cmsgpack.pack(new.job))
  sets.add('sl', 0, id)
  if new.owner then
    sets.add('so:' .. new.owner, 0, id)
  end
  lib.order_schedule(id, schedule_record, nil, now)
end
