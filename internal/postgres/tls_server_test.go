package postgres_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// authority signs the certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate, as sslrootcert takes it
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	a := authority{file: filepath.Join(t.TempDir(), "root.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test root"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	der, a.key = sign(t, template, authority{})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// server returns a certificate and key for a host, in PEM.
func (a authority) server(t testing.TB, host string, until time.Time) (cert, key []byte) {
	t.Helper()
	der, private := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
	}, a)
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

func sign(t testing.TB, template *x509.Certificate, by authority) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by.cert == nil {
		by.cert, by.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// tlsServer is a PostgreSQL server that accepts only TLS and passwords. It has the
// role poller and the database app.
type tlsServer struct {
	address string
	admin   string // URL of the superuser on a Unix socket
}

// startServer starts a server with a certificate for dbHost. It ends with the test.
func startServer(t testing.TB, ca authority) tlsServer {
	t.Helper()
	cert, key := ca.server(t, dbHost, time.Now().Add(time.Hour))
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	owner := serverUser(t)
	for name, content := range map[string][]byte{"server.crt": cert, "server.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		chown(t, filepath.Join(dir, name), owner)
	}
	chown(t, dir, owner)
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(serverBin(t), name), args...)
		cmd.Dir = dir
		if owner != nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
		}
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-U", "admin", "-A", "trust", "-N").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	hba := "local all admin trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	s := tlsServer{address: freeAddress(t)}
	_, port, _ := net.SplitHostPort(s.address)
	s.admin = "host=" + dir + " port=" + port + " user=admin dbname=postgres"
	logs := &strings.Builder{}
	server := command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "password_encryption=scram-sha-256", "-k", dir, "-F",
		"-c", "ssl=on", "-c", "ssl_cert_file="+filepath.Join(dir, "server.crt"), "-c", "ssl_key_file="+filepath.Join(dir, "server.key"))
	server.Stderr = logs
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = server.Wait(); close(ended) }()
	t.Cleanup(func() { _ = server.Process.Signal(syscall.SIGINT); <-ended })
	for {
		select {
		case <-ended:
			t.Fatalf("the server ended:\n%s", logs)
		case <-t.Context().Done():
			t.Fatal("the server does not come up")
		default:
		}
		if conn, err := pgx.Connect(t.Context(), s.admin); err == nil {
			_ = conn.Close(t.Context())
			break
		}
	}
	s.exec(t, `CREATE ROLE poller LOGIN`)
	s.exec(t, `CREATE DATABASE app OWNER poller`)
	return s
}

// exec runs a statement as the superuser.
func (s tlsServer) exec(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// setPassword gives poller a password.
func (s tlsServer) setPassword(t testing.TB, password string) {
	t.Helper()
	s.exec(t, `ALTER ROLE poller PASSWORD '`+strings.ReplaceAll(password, `'`, `''`)+`'`)
}

// serverBin is the directory of the server's programs: PG_BIN, or where PATH or
// Debian has them.
func serverBin(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("PG_BIN"); dir != "" {
		return dir
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			found = append([]string{real}, found...)
		}
	}
	for _, path := range found {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
			return filepath.Dir(path)
		}
	}
	t.Fatal("no PostgreSQL server to start: run `make test`, which brings one, or name the directory of initdb and postgres in PG_BIN")
	return ""
}

// serverUser is the user of the server: PostgreSQL refuses to run as root.
func serverUser(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("running as root, and there is no user nobody to run PostgreSQL as")
	return nil
}

func chown(t testing.TB, path string, to *syscall.Credential) {
	t.Helper()
	if to == nil {
		return
	}
	if err := os.Chown(path, int(to.Uid), int(to.Gid)); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns a port below those that systems assign: no other test gets it
// before the server listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+mathrand.IntN(10000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}
