package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

// maxPayload is Lambda's limit, in bytes.
const maxPayload = 6 << 20

// keep goes on until ctx ends, and prints how to send requests meanwhile.
func (s *stack) keep(ctx context.Context) error {
	manual, err := s.function(ctx, "poller")
	if err != nil {
		return err
	}
	poller, err := s.serve(manual)
	if err != nil {
		return err
	}
	submit, err := s.serve(s.buyer.function)
	if err != nil {
		return err
	}
	psql, err := s.psql()
	if err != nil {
		return err
	}
	s.clock.start()
	s.say("\nKEEP=1: this goes on until Ctrl-C. From another terminal:\n")
	s.say("  FUNCTION_URL=%s make status", poller)
	s.say("  FUNCTION_URL=%s make submit FILE=functions/submit/testdata/payloads/order.json", submit)
	s.say("  %s", psql)
	<-ctx.Done()
	return nil
}

// serve returns an address of the function. Requests at the same time wait for
// each other; the emulator itself would fail.
func (s *stack) serve(f *devstack.Function) (string, error) {
	server, err := sumetest.Listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		result, err := f.Invoke(r.Context(), payload)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(result.Body())
	}))
	if err != nil {
		return "", fmt.Errorf("serve the function: %w", err)
	}
	s.onClose(server.Close)
	return server.URL, nil
}

// psql returns the command that opens the database. The password is in a file,
// not in the command.
func (s *stack) psql() (string, error) {
	if s.db.server == nil {
		return "database " + s.db.name + " on the server of DEV_DATABASE_URL", nil
	}
	u, err := url.Parse(s.db.url)
	if err != nil {
		return "", errors.New("the database's connection string is not a URL")
	}
	dir, err := os.MkdirTemp("", "sumepoller-run-")
	if err != nil {
		return "", err
	}
	s.onClose(func() { _ = os.RemoveAll(dir) })
	password, _ := u.User.Password()
	file := filepath.Join(dir, "pgpass")
	line := strings.Join([]string{u.Hostname(), u.Port(), "*", u.User.Username(), password}, ":")
	u.User, u.RawQuery = url.User(u.User.Username()), url.Values{"passfile": {file}}.Encode()
	return "psql '" + u.String() + "'", os.WriteFile(file, []byte(line+"\n"), 0o600)
}
