-- An unfinished submission that needs attention.
(state = 'unrecorded' OR created_at < now() - interval '10 minutes')
