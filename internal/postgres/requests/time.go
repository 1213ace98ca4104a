package requests

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// timeField scans microseconds since 1970, or NULL, into a time in UTC.
type timeField struct{ to **time.Time }

// ScanInt64 implements pgtype.Int64Scanner.
func (f timeField) ScanInt64(v pgtype.Int8) error {
	*f.to = nil
	if v.Valid {
		t := time.UnixMicro(v.Int64).UTC()
		*f.to = &t
	}
	return nil
}

// unixMicro returns microseconds since 1970, or nil.
func unixMicro(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	v := t.UnixMicro()
	return &v
}
