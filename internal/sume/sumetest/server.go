package sumetest

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server serves a handler on a free port of loopback.
type Server struct {
	URL  string // http://127.0.0.1:PORT
	http *http.Server
	busy sync.WaitGroup // its goroutines
}

// Listen starts a server. The caller closes it.
func Listen(h http.Handler) (*Server, error) {
	return listen(h, func(*http.Server) {})
}

func listen(h http.Handler, set func(*http.Server)) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + l.Addr().String()}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.busy.Add(1)
		defer s.busy.Done()
		h.ServeHTTP(w, r)
	})
	s.http = &http.Server{Handler: counted, ReadHeaderTimeout: 30 * time.Second}
	set(s.http)
	s.busy.Go(func() { _ = s.http.Serve(l) })
	return s, nil
}

// Close stops the server, closes its connections and waits for the handlers.
func (s *Server) Close() {
	_ = s.http.Close()
	s.busy.Wait()
}

// Handler serves both at one address: the API under /v1/, Secrets Manager
// everywhere else.
func Handler(a *API, s *Secrets) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			a.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(w, r)
	})
}
