package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxy is between a sandbox and a server. It can be stopped and started, and
// disturb the traffic.
type proxy struct{ *toxiproxy.Proxy }

func newProxy(t *testing.T, server string) proxy {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := proxy{toxiproxy.NewProxy(api, t.Name(), "127.0.0.1:0", server)}
	p.up(t)
	t.Cleanup(p.Stop)
	return p
}

// up starts the proxy, at the same address as before.
func (p proxy) up(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Error(err)
	}
}

// silence drops what the server sends from now on. Connections stay open.
func (p proxy) silence(t *testing.T) {
	t.Helper()
	const toxic = `{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		t.Error(err)
	}
}

// cutEvery cuts all connections at this interval, until stop is called. stop
// returns how often it did.
func (p proxy) cutEvery(t *testing.T, every time.Duration) (stop func() (cuts int)) {
	t.Helper()
	quit, ended, n := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				p.Stop()
				p.up(t)
				n++
			}
		}
	}()
	return func() int {
		close(quit)
		<-ended
		return n
	}
}
