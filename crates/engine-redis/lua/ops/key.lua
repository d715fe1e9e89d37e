-- key: the key that the ids of the namespace's leases are signed with, made on first use.
--
-- args: {key, kid, kn}: a candidate and its name, and what the caller knows (lib.look_at_run). What is there
-- wins. Replies {key, kid}. Only engines ask for it: nothing shows it to who calls them. Works when the
-- store is full.

lib.op('key', { 'write', 'allow-oom' }, function(args, now)
  lib.look_at_run(args.kn, now)
  local key, kid = maps.get(KEY.meta, 'key'), maps.get(KEY.meta, 'kid')
  if not key then
    key, kid = args.key, args.kid
    maps.put(KEY.meta, 'key', key)
    maps.put(KEY.meta, 'kid', kid)
    db.kid = kid
  end
  return { key = key, kid = kid }
end)
