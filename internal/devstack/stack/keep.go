package stack

import (
	"context"
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

// largestPayload is Lambda's limit, in bytes.
const largestPayload = 6 << 20

// keep lets everything go on, says how to reach it, and waits for ctx.
func (s *stack) keep(ctx context.Context) error {
	byHand, err := s.function(ctx, "poller", nil)
	if err != nil {
		return err
	}
	poller, err := s.door(byHand)
	if err != nil {
		return err
	}
	submitter, err := s.door(s.buyer.function)
	if err != nil {
		return err
	}
	s.clock.start()
	s.screen.say("\nKEEP=1: it goes on until Ctrl-C. By hand, from another terminal:\n")
	s.screen.say("  FUNCTION_URL=%s make status", poller)
	s.screen.say("  FUNCTION_URL=%s make submit FILE=functions/submit/testdata/payloads/order.json", submitter)
	how, err := s.connecting()
	if err != nil {
		return err
	}
	s.screen.say("  %s", how)
	<-ctx.Done()
	return nil
}

// door serves a function under an address, one invocation at a time however
// many are asked for.
func (s *stack) door(f *devstack.Function) (string, error) {
	server, err := sumetest.Listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestPayload))
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

// connecting returns the command that opens the database. The password stands
// in a file, not in the command.
func (s *stack) connecting() (string, error) {
	if s.db.server == nil {
		return "database " + s.db.name + " on the server of DEV_DATABASE_URL", nil
	}
	u, err := url.Parse(s.db.url)
	if err != nil {
		return "", fmt.Errorf("the database's connection string is no URL")
	}
	dir, err := os.MkdirTemp("", "sumepoller-run-")
	if err != nil {
		return "", err
	}
	s.onClose(func() { _ = os.RemoveAll(dir) })
	password, _ := u.User.Password()
	file := filepath.Join(dir, "pgpass")
	line := strings.Join([]string{u.Hostname(), u.Port(), "*", u.User.Username(), password}, ":")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf("PGPASSFILE=%s psql -h %s -p %s -U %s %s", file, u.Hostname(), u.Port(), u.User.Username(), s.db.name), nil
}
