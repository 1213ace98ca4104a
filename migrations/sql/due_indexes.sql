-- The indexes that serve the claim as due_index.sql does, whatever their names:
-- on next_poll_at alone, of pending rows only. While another session builds an
-- index of the table, invalid ones are left out: it may be that one.
SELECT format('%I.%I', n.nspname, c.relname) AS name, i.indisvalid AS valid
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'next_poll_at'
 WHERE i.indrelid = 'video_jobs'::regclass
   AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
   AND pg_get_expr(i.indpred, i.indrelid) IN ('(state = ''pending''::text)', '((state)::text = ''pending''::text)')
   AND (i.indisvalid OR NOT EXISTS ({{builders}}))
 ORDER BY i.indexrelid
