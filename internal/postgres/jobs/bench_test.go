package jobs_test

import (
	"testing"
	"time"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// BenchmarkRead is what one read costs the database's client: its share of a
// claim of 64 rows and of a settle of 192, over a table that is never at rest.
func BenchmarkRead(b *testing.B) {
	for name, ceiling := range map[string]int{"uncounted": -1, "counted": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			db := pgtest.New(b)
			db.InsertDue(20_000)
			s := jobs.New(db.Pool)
			var batch []poller.Settlement
			var claiming, settling time.Duration
			for n := 0; n < b.N; {
				r, start := counted(64, ceiling), time.Now()
				jobs := claim(b, s, r).Jobs
				claiming += time.Since(start)
				for _, j := range jobs {
					batch = append(batch, reschedule(j.ID, r.Lease, 0))
				}
				if n += len(jobs); len(batch) >= 192 {
					start = time.Now()
					settle(b, s, batch...)
					settling += time.Since(start)
					batch = batch[:0]
				}
			}
			b.ReportMetric(float64(claiming.Microseconds())/float64(b.N), "µs-claim/op")
			b.ReportMetric(float64(settling.Microseconds())/float64(b.N), "µs-settle/op")
		})
	}
}
