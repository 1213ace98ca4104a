package sume_test

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

// Not parallel: it looks at the memory of the whole process.
func TestMemory_LargeAnswers(t *testing.T) {
	large := append(bytes.Repeat([]byte(" "), sume.MaxBody-40), `{"terminal":true,"status":"completed"}`...)
	var arrived sync.WaitGroup
	arrived.Add(64)
	url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Done()
		arrived.Wait() // all 64 are in flight before the first byte
		w.Header().Set("Content-Length", strconv.Itoa(len(large)))
		_, _ = w.Write(large)
	}))
	c := connect(t, url)
	before := heap()
	var all sync.WaitGroup
	bodies := make([][]byte, 64)
	for i := range bodies {
		all.Go(func() {
			answer, err := c.Status(t.Context(), "job_1")
			if err != nil {
				t.Error(err)
			}
			bodies[i] = answer.Body
		})
	}
	all.Wait()
	if grown := heap() - before; grown > 100<<20 {
		t.Errorf("the heap grew by %d MiB, want less than 100", grown>>20)
	}
	runtime.KeepAlive(bodies)
}

// Not parallel: it looks at the memory of the whole process.
func TestMemory_CompressedBombs(t *testing.T) {
	a, c := api(t, sumetest.Options{})
	a.SetFault("job_1", sumetest.Fault{Size: 1 << 30, Gzip: true})
	before := heap()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, err := c.Status(t.Context(), "job_1")
			if f := fault(t, err); f.Reason != "too large" {
				t.Errorf("got %+v, want too large", *f)
			}
		})
	}
	all.Wait()
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB, want less than 64", grown>>20)
	}
}

// heap returns what the heap has taken from the system: it never shrinks, so a
// difference bounds the most that was in use between.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys)
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"data":{"job_id":"job_1","request_id":"job_1","status":"PROCESSING","sume_status":"processing","terminal":false,` +
		`"result_ready":false,"next_poll_after_seconds":15,"job":{"id":"job_1","type":"video_generation","status":"processing"}},"request_id":"req_1"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := sume.Decode(body, "job_1"); err != nil {
			b.Fatal(err)
		}
	}
}

// One read with everything but the network, 64 at once.
func BenchmarkStatus(b *testing.B) {
	body := `{"data":{"job_id":"job_1","status":"PROCESSING","sume_status":"processing","terminal":false,"next_poll_after_seconds":15}}`
	c := connect(b, listen(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	})))
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Status(b.Context(), "job_1"); err != nil {
				b.Error(err)
			}
		}
	})
}
