-- Sets the timeouts of this transaction: the defaults of the role may be meant
-- for the poller's short statements.
SELECT set_config('lock_timeout', @lock_timeout::text, true),
       set_config('statement_timeout', @statement_timeout::text, true),
       set_config('idle_in_transaction_session_timeout', @statement_timeout::text, true)
