package config

import "time"

// Ages from which a row counts as a problem: in the metrics, in the answer of
// inspect, and in the alarms. The database's statements and internal/operator
// repeat them, and tests compare.
const (
	FailingAfter = 30 * time.Minute // a job whose reads have failed for so long
	LongRunning  = 24 * time.Hour   // a job that has been pending for so long
	StuckAfter   = 10 * time.Minute // a submission that has had no answer for so long
)
