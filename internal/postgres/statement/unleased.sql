-- A row without a lease, or whose lease has expired. A due row that is unleased
-- is claimable.
--
-- A lease that ends later than any lease can was written before a clock was set
-- back. That is compared with clock_timestamp(): while this transaction waits
-- for a lock its now() grows old, and another one may write the longest lease.
(leased_until < now() OR leased_until > clock_timestamp() + @longest_lease::bigint * interval '1 microsecond')
