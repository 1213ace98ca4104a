-- A row that this claim has leased already.
(lease_id = @lease::text::uuid AND leased_until > '-infinity')
