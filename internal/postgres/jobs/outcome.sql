-- The outcome of the rows that a settle or a release did not return, seen with a
-- later snapshot.
SELECT h.n, coalesce(j.state, ''),
       CASE
           WHEN j.job_id IS NULL THEN 'gone'
           WHEN j.lease_id IS DISTINCT FROM h.lease_id::uuid THEN 'lost'
           -- Another program has locked the row, or changed it between the
           -- statement's snapshot and its lock, or a trigger drops the write.
           WHEN {held} THEN 'again'
           -- An earlier attempt, whose answer was lost, wrote it.
           WHEN j.leased_until = '-infinity' AND j.state = h.state THEN 'written'
           -- The same, and a trigger turned the finish back into pending.
           WHEN j.leased_until = '-infinity' AND j.state = 'pending' THEN 'refused'
           ELSE 'lost'
       END
FROM unnest((SELECT @ids::text[]), (SELECT @leases::text[]), (SELECT @states::text[]), (SELECT @refused::boolean[]))
     WITH ORDINALITY AS h (job_id, lease_id, state, refused, n)
LEFT JOIN video_jobs AS j ON j.job_id = h.job_id
