-- {column} as microseconds since 1970, which no setting of the server formats.
-- NULL outside the years 1 to 9999, for which JSON has no time.
CASE WHEN extract(epoch FROM {column}) BETWEEN -62135596800 AND 253402300799 THEN (extract(epoch FROM {column}) * 1000000)::bigint END
