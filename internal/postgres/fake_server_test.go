package postgres_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"sumepoller/internal/config"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres"
)

// fakeServer implements the server's side of a login: it answers a request for TLS
// and asks for the password in clear text, as RDS does for IAM. It executes nothing.
type fakeServer struct {
	address string
	tls     *tls.Config // nil: it has none
	refuse  int         // logins refused before one is let in

	mu        sync.Mutex
	passwords []string
	dialled   atomic.Int32
}

func (s *fakeServer) start(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.dialled.Add(1)
			wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
}

func (s *fakeServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	backend := pgproto3.NewBackend(conn, conn)
	for {
		message, err := backend.ReceiveStartupMessage()
		if err != nil {
			return
		}
		if _, ok := message.(*pgproto3.SSLRequest); !ok {
			break
		}
		if s.tls == nil {
			_, _ = conn.Write([]byte("N"))
			continue
		}
		_, _ = conn.Write([]byte("S"))
		encrypted := tls.Server(conn, s.tls)
		conn, backend = encrypted, pgproto3.NewBackend(encrypted, encrypted)
	}
	backend.Send(&pgproto3.AuthenticationCleartextPassword{})
	if backend.Flush() != nil || backend.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
		return
	}
	message, err := backend.Receive()
	if err != nil {
		return
	}
	if s.note(message.(*pgproto3.PasswordMessage).Password) {
		backend.Send(&pgproto3.AuthenticationOk{})
		backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	} else {
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28000", Message: "PAM authentication failed"})
	}
	_ = backend.Flush()
	_, _ = backend.Receive() // until the client goes
}

// note records the password and reports whether the login is accepted.
func (s *fakeServer) note(password string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passwords = append(s.passwords, password)
	return len(s.passwords) > s.refuse
}

func TestConnect_IAM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuse, tries int }{"let in": {0, 1}, "let in at the second": {1, 2}, "refused": {9, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeServer{refuse: c.refuse}
			s.start(t)
			cfg := config.Database{Auth: "iam", Host: "127.0.0.1", Port: portOf(t, s.address), Name: "app", User: "poller", MaxConns: 1}
			pool, err := postgres.ConnectTo(t.Context(), s.address, cfg, nil)
			if err == nil {
				postgres.Close(pool, time.Minute)
			}
			if (err != nil) != (c.refuse > 1) || err != nil && postgres.SQLState(err) != "28000" {
				t.Errorf("error %v", err)
			}
			if len(s.passwords) != c.tries {
				t.Errorf("%d logins, want %d", len(s.passwords), c.tries)
			}
			for _, token := range s.passwords {
				u, err := url.Parse("https://" + token)
				if err != nil {
					t.Fatal("the token is no address")
				}
				q := u.Query()
				if u.Host != s.address || q.Get("Action") != "connect" || q.Get("DBUser") != "poller" || q.Get("X-Amz-Signature") == "" ||
					!strings.Contains(q.Get("X-Amz-Credential"), "/eu-central-1/rds-db/") {
					t.Errorf("the token is for %s, %s, %s", u.Host, q.Get("DBUser"), q.Get("X-Amz-Credential"))
				}
			}
		})
	}
}

func TestConnect_IAMEndpoint(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"db.abc.eu-central-1.rds.amazonaws.com":             "refused TLS",
		"db.proxy-abc.us-gov-west-1.rds.amazonaws.com":      "refused TLS",
		"db.cluster-ro-abc.cn-north-1.rds.amazonaws.com.cn": "refused TLS",
		"db.mine.example": "no endpoint of RDS",
		"https://db.abc.eu-central-1.rds.amazonaws.com":            "no endpoint of RDS",
		"db.abc.eu-central-1.rds.amazonaws.com:5432":               "no endpoint of RDS",
		"db.abc.eu-central-1.rds.amazonaws.com.evil.example":       "no endpoint of RDS",
		"x' sslmode='disable' host='db.abc.eu-1.rds.amazonaws.com": "no endpoint of RDS",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			var s fakeServer
			s.start(t)
			cfg := config.Database{Auth: "iam", Host: host, Port: 5432, Name: "app", User: "poller"}
			_, err := postgres.ConnectTo(t.Context(), s.address, cfg, nil)
			check(t, err, want)
			if len(s.passwords) > 0 {
				t.Error("a token was sent in plain text")
			}
		})
	}
}

// Without valid TLS no password is sent.
func TestConnect_NoValidTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.server(t, dbHost, time.Now().Add(-time.Minute))
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	expired, plain := fakeServer{tls: &tls.Config{Certificates: []tls.Certificate{pair}}}, fakeServer{}
	expired.start(t)
	plain.start(t)
	cfg := config.Database{URL: "postgres://poller:hunter2@" + dbHost + "/app?sslrootcert=" + url.QueryEscape(ca.file)}
	for want, address := range map[string]string{
		"expired":                expired.address,
		"refused TLS":            plain.address,
		"refused TLS connection": serverOf(t),
	} {
		_, err := postgres.ConnectTo(t.Context(), address, cfg, nil)
		check(t, err, want)
	}
	if n, m := expired.dialled.Load(), plain.dialled.Load(); n != 1 || m != 1 {
		t.Errorf("%d and %d connections, want 1 each: what cannot succeed is not tried again", n, m)
	}
	if n := len(expired.passwords) + len(plain.passwords); n > 0 {
		t.Errorf("%d passwords were sent", n)
	}
}

// serverOf is the address of the tests' server, which has no TLS.
func serverOf(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestRDSRoots(t *testing.T) {
	t.Parallel()
	rest, err := os.ReadFile("roots/rds.pem")
	if err != nil {
		t.Fatal(err)
	}
	regions := map[string]int{}
	for block, more := pem.Decode(rest); block != nil; block, more = pem.Decode(more) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !cert.IsCA || cert.CheckSignatureFrom(cert) != nil || cert.NotAfter.Year() < 2040 {
			t.Errorf("%s is no root that lasts", cert.Subject.CommonName)
		}
		regions[strings.Fields(cert.Subject.CommonName)[2]]++
	}
	if len(regions) != 27 || regions["eu-central-1"] != 3 {
		t.Errorf("roots of %d regions, %v; want three of each of 27", len(regions), regions)
	}
}

func TestClose_HangingConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool := pgtest.Pool(t, db.URL)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	postgres.Close(pool, 50*time.Millisecond) // returns, although the connection is never released
}
