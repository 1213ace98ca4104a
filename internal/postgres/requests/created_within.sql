-- The row v was created within the request's window.
(@created_after::bigint IS NULL OR v.created_at >= timestamptz 'epoch' + @created_after::bigint * interval '1 microsecond')
       AND (@created_before::bigint IS NULL OR v.created_at < timestamptz 'epoch' + @created_before::bigint * interval '1 microsecond')
