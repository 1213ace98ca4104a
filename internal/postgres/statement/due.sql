-- A pending row whose due time has passed. now() is the beginning of the
-- transaction, so one statement sees one time.
state = 'pending' AND next_poll_at <= now()
