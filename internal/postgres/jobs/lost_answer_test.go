package jobs_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// proxy is between a client and the server. Once armed, it passes the next request
// on, waits for the server's answer, and closes the connection instead of passing
// the answer back.
type proxy struct {
	armed atomic.Bool
	cuts  atomic.Int64
}

// through returns the URL through the proxy.
func (c *proxy) through(t testing.TB, db string) string {
	t.Helper()
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	server := u.Host
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() { c.serve(t, client, server) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	u.Host = l.Addr().String()
	return u.String()
}

func (c *proxy) serve(t testing.TB, client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = server.Close() }()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && c.armed.CompareAndSwap(true, false) {
			c.cuts.Add(1)
			break
		}
		if _, e := client.Write(buf[:n]); e != nil || err != nil {
			break
		}
	}
	_, _ = client.Close(), server.Close()
	wg.Wait()
}

// The server executed a statement and its answer was lost: repeating it counts
// nothing twice.
func TestRetry_LostAnswer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(40)
			listener := db.Connect()
			if _, err := listener.Exec(t.Context(), `LISTEN video_jobs_finished`); err != nil {
				t.Fatal(err)
			}
			var cut proxy
			s := jobs.New(pgtest.Pool(t, cut.through(t, db.URL)+"?default_query_exec_mode="+mode))
			warm := counted(10, 1000) // so that the statements are prepared
			day := claim(t, s, warm).Day
			settle(t, s, reschedule("job_40", warm.Lease, time.Minute))
			release(t, s, day.Date, poller.Release{JobID: "job_39", Lease: warm.Lease, Unread: true})

			cut.armed.Store(true)
			r := counted(10, 1000)
			got := claim(t, s, r)
			if len(got.Jobs) != 10 || got.Day.Reads != 19 {
				t.Errorf("claimed %d rows, %d reads, want 10 and 19", len(got.Jobs), got.Day.Reads)
			}
			if n := db.Number(`SELECT count(*) FROM video_jobs WHERE lease_id = $1::text::uuid`, jobs.LeaseText(r.Lease)); n != 10 {
				t.Errorf("%d rows under the lease, want 10", n)
			}
			cut.armed.Store(true)
			first, second := got.Jobs[0].ID, got.Jobs[1].ID
			if o := settle(t, s, finish(first, r.Lease)); o[0] != poller.Written {
				t.Errorf("settle: %v", o)
			}
			cut.armed.Store(true)
			if o := release(t, s, got.Day.Date, poller.Release{JobID: second, Lease: r.Lease, Unread: true}); o[0] != poller.Written {
				t.Errorf("release: %v", o)
			}
			if row := readRow(db, first); row.Polls != 1 || row.State != "completed" {
				t.Errorf("row: %+v", row)
			}
			if n := db.Number(readsToday); n != 18 || cut.cuts.Load() != 3 {
				t.Errorf("%d reads after %d cuts, want 18 after 3", n, cut.cuts.Load())
			}
			db.Exec(`SELECT pg_notify('video_jobs_finished', 'end')`)
			if diff := cmp.Diff([]string{`{"job_id" : "` + first + `", "state" : "completed"}`}, announcements(t, listener)); diff != "" {
				t.Errorf("announcements (-want +got):\n%s", diff)
			}
		})
	}
}

// announcements collects what is announced until "end" comes.
func announcements(t testing.TB, listener *pgx.Conn) (got []string) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		n, err := listener.WaitForNotification(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if n.Payload == "end" {
			return got
		}
		got = append(got, n.Payload)
	}
}
