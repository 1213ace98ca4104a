package requests

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Times cross to and from SQL as microseconds, never as text: what a formatted
// time or interval looks like depends on DateStyle, IntervalStyle and TimeZone,
// and the driver reads one form only.

// shownTime is a column's time in microseconds since 1970. It is NULL where
// the time is infinite or outside of the years 1 to 9999, which JSON cannot hold.
func shownTime(column string) string {
	return `CASE WHEN extract(epoch FROM ` + column + `) BETWEEN -62135596800 AND 253402300799
             THEN (extract(epoch FROM ` + column + `) * 1000000)::bigint END`
}

// elapsedSince is how long ago a column's time was, in microseconds: 0 where
// it is still to come, a century at most, since an infinite time cannot be
// subtracted, and a century for NULL.
func elapsedSince(column string) string {
	return `(extract(epoch FROM statement_timestamp()
                 - least(greatest(` + column + `, statement_timestamp() - interval '100 years'), statement_timestamp())) * 1000000)::bigint`
}

// givenTime is a parameter of microseconds since 1970 as a time; NULL stays.
func givenTime(parameter string) string {
	return `(timestamptz '1970-01-01 00:00:00+00' + ` + parameter + `::bigint * interval '1 microsecond')`
}

// instant scans microseconds since 1970, or NULL, into a time in UTC.
type instant struct{ to **time.Time }

// ScanInt64 implements pgtype.Int64Scanner.
func (i instant) ScanInt64(micros pgtype.Int8) error {
	*i.to = nil
	if micros.Valid {
		t := time.UnixMicro(micros.Int64).UTC()
		*i.to = &t
	}
	return nil
}

// instantOf is the way back, for givenTime.
func instantOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	micros := t.UnixMicro()
	return &micros
}
