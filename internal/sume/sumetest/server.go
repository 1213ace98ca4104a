package sumetest

import (
	"net"
	"net/http"
	"time"
)

// Server serves a handler on a free port of loopback.
type Server struct {
	URL  string // http://127.0.0.1:PORT
	http *http.Server
	done chan struct{}
}

// Listen starts a server. The caller closes it.
func Listen(h http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL:  "http://" + l.Addr().String(),
		http: &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// Close ends the server and every connection to it.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.done
}

// Handler serves all parts under one address: the API under /v1/, the control
// endpoint under /_control/, Secrets Manager under everything else.
func Handler(a *API, s *Secrets) http.Handler {
	mux := http.NewServeMux()
	control := Control(a, s)
	mux.Handle("/_control/", control)
	mux.Handle("/", s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; len(path) >= 4 && path[:4] == "/v1/" { // the mux would clean an id's dots away
			a.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
