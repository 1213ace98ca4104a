unnest((SELECT @ids::text[]), (SELECT @leases::text[]), (SELECT @states::text[]), (SELECT @delays::bigint[]),
       (SELECT @polled::boolean[]), (SELECT @statuses::text[]), (SELECT @errors::text[]), (SELECT @not_found::bigint[]), (SELECT @finals::text[]),
       (SELECT @refused::boolean[]))
    WITH ORDINALITY AS h (job_id, lease_id, state, delay, polled, status, error, not_found, final, refused, n)
