package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"sumepoller/internal/secrets"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	m := manager(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if target := r.Header.Get("X-Amz-Target"); target != "secretsmanager.GetSecretValue" || string(body) != `{"SecretId":"sume/key"}` {
			t.Errorf("asked %s %s", target, body)
		}
		answer(w, 200, `{"SecretString": "sk_1\n"}`)
	})
	if got, err := m.Fetch(t.Context(), "sume/key"); got != "sk_1\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFetch_Throttled(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	m := manager(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= 2 {
			answer(w, 400, `{"__type": "ThrottlingException", "message": "Rate exceeded"}`)
			return
		}
		answer(w, 200, `{"SecretString": "sk_1"}`)
	})
	if got, err := secrets.NewCache(m).Get(t.Context(), "sume/key"); got != "sk_1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFetch_Errors(t *testing.T) {
	t.Parallel()
	failing := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { answer(w, status, body) }
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"missing":        {failing(400, `{"__type": "ResourceNotFoundException", "Message": "can't find"}`), "not found"},
		"not allowed":    {failing(400, `{"__type": "AccessDeniedException", "Message": "User is not authorized"}`), "secretsmanager:GetSecretValue"},
		"key not usable": {failing(400, `{"__type": "DecryptionFailure"}`), "kms:Decrypt"},
		"throttled":      {failing(400, `{"__type": "ThrottlingException"}`), "throttled"},
		"broken":         {failing(500, `{"__type": "InternalServiceError"}`), "InternalServiceError"},
		"binary":         {failing(200, `{"SecretBinary": "c2tfMQ=="}`), "binary"},
		"cut off":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "VPC endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := secrets.NewCache(manager(t, test.handler)).Get(t.Context(), "sume/key")
			line(t, err, test.want)
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// The VPC has no endpoint for Secrets Manager.
func TestFetch_NoAnswer(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	m := manager(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	})
	defer close(gone)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // the cache's own bound is tested beside it
	defer cancel()
	_, err := m.Fetch(ctx, "sume/key")
	line(t, err, "no answer")
	line(t, err, "VPC endpoint")
}

func TestFetch_ConnectionRefused(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1"
	_, err := managerAt(address).Fetch(t.Context(), "sume/key")
	line(t, err, "connection refused")
	if strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("%v holds an address", err)
	}
}

// line wants an *Error of one line that names the secret and holds want.
func line(t *testing.T, err error, want string) {
	t.Helper()
	var secret *secrets.Error
	if !errors.As(err, &secret) {
		t.Fatalf("error %v, want a *secrets.Error", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "sume/key: ") || !strings.Contains(text, want) || strings.Contains(text, "\n") {
		t.Errorf("error %q, want one line that begins with the id and holds %q", text, want)
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body)
}

func manager(t *testing.T, h http.HandlerFunc) *secrets.Manager {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return managerAt(server.URL)
}

func managerAt(url string) *secrets.Manager {
	return secrets.NewManagerFrom(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}
