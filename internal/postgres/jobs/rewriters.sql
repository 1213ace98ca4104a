-- Names what can change or drop an UPDATE without an error: rules, and BEFORE
-- UPDATE triggers for each row (bits 1, 2 and 16 of the type).
SELECT coalesce(string_agg(kind || ' ' || name, ', ' ORDER BY kind, name), '')
FROM (SELECT 'trigger' AS kind, tgname::text AS name
      FROM pg_trigger
      WHERE tgrelid = 'video_jobs'::regclass AND NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 19 = 19
      UNION ALL
      SELECT 'rule', rulename::text FROM pg_rewrite WHERE ev_class = 'video_jobs'::regclass AND ev_type = '2'
     ) AS rewriters
