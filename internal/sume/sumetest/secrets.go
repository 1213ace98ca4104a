package sumetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"sync"
	"time"
)

// Secrets answers GetSecretValue of AWS Secrets Manager, in its JSON 1.1
// protocol, for secrets in memory. It does not check credentials.
type Secrets struct {
	mu       sync.Mutex
	values   map[string]secret
	throttle int
	silent   bool
	fail     bool
	calls    int
}

type secret struct {
	value  string
	binary bool
}

// NewSecrets returns an empty Secrets.
func NewSecrets() *Secrets { return &Secrets{values: map[string]secret{}} }

// Set stores a secret, as a string or as binary data, in place of the one with
// the same id.
func (s *Secrets) Set(id, value string, binary bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[id] = secret{value, binary}
}

// Remove deletes a secret.
func (s *Secrets) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, id)
}

// Throttle answers the next n calls with ThrottlingException.
func (s *Secrets) Throttle(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttle = n
}

// Silence turns on or off that calls get no answer.
func (s *Secrets) Silence(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = on
}

// Fail turns on or off that calls get an internal error.
func (s *Secrets) Fail(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = on
}

// Calls returns the number of calls.
func (s *Secrets) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// ServeHTTP answers one call.
func (s *Secrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		SecretID string `json:"SecretId"`
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	s.calls++
	silent, throttled, failing := s.silent, s.throttle > 0, s.fail
	if throttled {
		s.throttle--
	}
	if err := json.Unmarshal(body, &in); err != nil {
		in.SecretID = ""
	}
	found, ok := s.values[in.SecretID]
	s.mu.Unlock()
	switch {
	case silent:
		<-r.Context().Done()
	case r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue":
		writeAWSError(w, http.StatusBadRequest, "UnknownOperationException", "no such operation here")
	case failing:
		writeAWSError(w, http.StatusInternalServerError, "InternalServiceError", "an internal error")
	case throttled:
		writeAWSError(w, http.StatusBadRequest, "ThrottlingException", "Rate exceeded")
	case !ok:
		writeAWSError(w, http.StatusBadRequest, "ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
	default:
		writeAWS(w, http.StatusOK, found.answer(in.SecretID))
	}
}

// answer returns the response to a call. VersionId changes with the value.
func (v secret) answer(id string) map[string]any {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, v.value)
	out := map[string]any{
		"ARN":           "arn:aws:secretsmanager:us-east-1:012345678912:secret:" + id,
		"Name":          id,
		"VersionId":     fmt.Sprintf("00000000-0000-0000-0000-%012x", hash.Sum64()&0xffffffffffff),
		"VersionStages": []string{"AWSCURRENT"},
		"CreatedDate":   float64(time.Now().Unix()),
	}
	if v.binary {
		out["SecretBinary"] = base64.StdEncoding.EncodeToString([]byte(v.value))
	} else {
		out["SecretString"] = v.value
	}
	return out
}

func writeAWSError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-Errortype", kind)
	writeAWS(w, status, map[string]any{"__type": kind, "message": message, "Message": message})
}

func writeAWS(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
