package sumetest

import (
	"encoding/json"
	"net/http"
)

// Secret is a secret in a control request; see Secrets.Set.
type Secret struct {
	Value  string `json:"value"`
	Binary bool   `json:"binary"`
	Gone   bool   `json:"gone"` // it is taken away
}

// SecretsMode is how the secrets' manager behaves from now on.
type SecretsMode struct {
	Throttle int  `json:"throttle"`
	Silent   bool `json:"silent"`
	Fail     bool `json:"fail"`
}

// Control steers an API and its secrets from another process: the methods of
// both as JSON under /_control/. Spans of time are in nanoseconds.
func Control(a *API, s *Secrets) http.Handler {
	mux := http.NewServeMux()
	put(mux, "jobs", func(jobs map[string]Plan) {
		for id, plan := range jobs {
			a.AddJob(id, plan)
		}
	})
	put(mux, "faults", func(faults map[string][]Fault) {
		for id, f := range faults {
			a.SetFault(id, f...)
		}
	})
	put(mux, "post-faults", func(faults []Fault) { a.SetPostFault(faults...) })
	put(mux, "options", a.SetOptions)
	put(mux, "keys", func(keys []string) { a.SetKeys(keys...) })
	put(mux, "reset", func(struct{}) { a.Reset() })
	put(mux, "secrets", func(secrets map[string]Secret) {
		for id, v := range secrets {
			if v.Gone {
				s.Remove(id)
				continue
			}
			s.Set(id, v.Value, v.Binary)
		}
	})
	put(mux, "secrets-mode", func(m SecretsMode) {
		s.Throttle(m.Throttle)
		s.Silence(m.Silent)
		s.Fail(m.Fail)
	})
	get(mux, "stats", func() any { return a.Stats() })
	get(mux, "times", func() any { return a.Times() })
	get(mux, "secret-calls", func() any { return s.Calls() })
	return mux
}

func put[T any](mux *http.ServeMux, name string, apply func(T)) {
	mux.HandleFunc("PUT /_control/"+name, func(w http.ResponseWriter, r *http.Request) {
		var in T
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		apply(in)
		w.WriteHeader(http.StatusNoContent)
	})
}

func get(mux *http.ServeMux, name string, value func() any) {
	mux.HandleFunc("GET /_control/"+name, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value())
	})
}
