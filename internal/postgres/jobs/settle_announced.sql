-- Sends one completion event for each finished job, in the transaction that finishes it.
SELECT n, coalesce(state, ''), coalesce(kept, false),
       CASE WHEN @announce::boolean AND kept AND state <> 'pending'
            THEN {announce}::text END
FROM written
