package sumetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// Filter decides which frames of one connection pass. Each method has its own
// goroutine. After a request that did not pass, the server can read no other
// request of the connection.
type Filter interface {
	FromClient(c *Conn, f *Frame) (pass bool)
	FromServer(c *Conn, f *Frame) (pass bool)
}

// Conn is one connection of an H2 server.
type Conn struct {
	Number int // 1 for the first
	client net.Conn
	server net.Conn
	write  sync.Mutex
	begun  chan struct{} // closed when the server's first frame, its settings, was sent
	once   sync.Once
}

// Send sends a frame to the client, after the server's first one.
func (c *Conn) Send(f Frame) error {
	<-c.begun
	return c.pass(f)
}

func (c *Conn) pass(f Frame) error {
	c.write.Lock()
	defer c.write.Unlock()
	return f.writeTo(c.client)
}

// Drop closes the connection.
func (c *Conn) Drop() {
	_ = c.client.(*tls.Conn).NetConn().Close()
	_ = c.server.Close()
}

// H2 serves a handler over TLS and HTTP/2. A filter can simulate faults that a
// handler cannot.
type H2 struct {
	URL  string // https://127.0.0.1:PORT
	Pool *x509.CertPool
	PEM  []byte // the certificate

	back   *Server
	accept net.Listener
	filter func(*Conn) Filter
	all    sync.WaitGroup
	mu     sync.Mutex
	conns  map[*Conn]bool
	count  int
}

// ListenH2 starts a server, which the caller closes. streams, if above zero, is
// the limit of concurrent streams of a connection. filter may be nil.
func ListenH2(h http.Handler, streams int, filter func(*Conn) Filter) (*H2, error) {
	back, err := listen(h, func(s *http.Server) {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetUnencryptedHTTP2(true)
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	})
	if err != nil {
		return nil, err
	}
	s := &H2{back: back, filter: filter, conns: map[*Conn]bool{}}
	if err := s.listen(); err != nil {
		back.Close()
		return nil, err
	}
	s.all.Go(func() {
		for {
			client, err := s.accept.Accept()
			if err != nil {
				return
			}
			s.all.Go(func() { s.serve(client) })
		}
	})
	return s, nil
}

// listen makes an ECDSA certificate: with the RSA one of httptest, handshakes are
// too slow for tests that open hundreds of connections.
func (s *H2) listen() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	s.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.Pool = x509.NewCertPool()
	s.Pool.AppendCertsFromPEM(s.PEM)
	s.accept, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2"},
	})
	if err != nil {
		return err
	}
	s.URL = "https://" + s.accept.Addr().String()
	return nil
}

// Close stops the server and closes its connections.
func (s *H2) Close() {
	_ = s.accept.Close()
	s.Drop()
	s.back.Close()
	s.all.Wait()
}

// Drop closes all connections and returns their number.
func (s *H2) Drop() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Drop()
	}
	return len(s.conns)
}

// Conns returns the number of connections so far.
func (s *H2) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *H2) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", s.back.URL[len("http://"):])
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	c := &Conn{client: client, server: server, begun: make(chan struct{})}
	s.mu.Lock()
	s.count++
	c.Number = s.count
	s.conns[c] = true
	s.mu.Unlock()
	var filter Filter
	if s.filter != nil {
		filter = s.filter(c)
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		_ = frames(server, func(f *Frame) error {
			if filter != nil && !filter.FromServer(c, f) {
				return nil
			}
			err := c.pass(*f)
			c.once.Do(func() { close(c.begun) })
			return err
		})
		c.once.Do(func() { close(c.begun) })
		_ = client.Close()
	})
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err = io.ReadFull(client, preface); err == nil {
		_, err = server.Write(preface)
	}
	if err == nil {
		_ = frames(client, func(f *Frame) error {
			if filter != nil && !filter.FromClient(c, f) {
				return nil
			}
			return f.writeTo(server)
		})
	}
	_ = server.Close()
	answers.Wait()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}
