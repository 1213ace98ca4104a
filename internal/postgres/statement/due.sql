-- A job whose time to be read has come. now() is the beginning of the
-- transaction: one statement sees one time.
state = 'pending' AND next_poll_at <= now()
