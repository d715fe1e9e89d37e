-- Writes fields of a store beside its id. With '1' existing fields stay. KEYS: store. ARGV: '1' or '', field, value, …
if redis.call('HEXISTS', KEYS[1], 'id') == 0 then return 'moved' end
for i = 2, #ARGV, 2 do
  if ARGV[1] ~= '1' or redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 'done'
