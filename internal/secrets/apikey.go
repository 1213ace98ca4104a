package secrets

import (
	"context"
	"encoding/json"
	"strings"
)

// Placeholder is what the stack puts into the secret that it makes.
const Placeholder = "REPLACE_ME"

// APIKey is the key of the Sume API in a secret: the key itself, or JSON with
// api_key. It is safe for concurrent use.
type APIKey struct {
	cache *Cache
	id    string
}

// NewAPIKey returns the key in the secret with this id or ARN.
func NewAPIKey(cache *Cache, id string) *APIKey { return &APIKey{cache: cache, id: id} }

// Key returns the key, from the cache if it is fresh. An error is an *Error.
func (k *APIKey) Key(ctx context.Context) (string, error) {
	raw, err := k.cache.Get(ctx, k.id)
	if err != nil {
		return "", err
	}
	return k.extract(raw)
}

// Renew returns the key after rejected was refused: the cached one if it differs,
// otherwise the one that a fetch brings, which can be the rejected one again.
func (k *APIKey) Renew(ctx context.Context, rejected string) (string, error) {
	raw, err := k.cache.renew(ctx, k.id, func(raw string) bool {
		key, problem := extract(raw)
		return problem != "" || key == rejected
	})
	if err != nil {
		return "", err
	}
	return k.extract(raw)
}

func (k *APIKey) extract(raw string) (string, error) {
	key, problem := extract(raw)
	if problem != "" {
		return "", &Error{ID: k.id, Reason: problem}
	}
	return key, nil
}

// extract returns the key in a secret's value, or the problem with it.
func extract(raw string) (key, problem string) {
	key = strings.TrimSpace(raw)
	if key != "" && strings.ContainsRune(`{["`, rune(key[0])) {
		if key, problem = member(key); problem != "" {
			return "", problem
		}
	}
	switch {
	case key == "":
		return "", "is empty; want the API key, or JSON with api_key"
	case key == Placeholder:
		return "", "still holds the placeholder " + Placeholder + "; put the API key into it"
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", "holds whitespace, control or non-ASCII characters inside the API key"
	}
	return key, ""
}

// member returns api_key of a JSON object. The name matches exactly.
func member(text string) (key, problem string) {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", "is neither a plain API key nor a JSON object with api_key"
	}
	raw, ok := object["api_key"]
	if !ok {
		return "", "is JSON without api_key"
	}
	var value *string
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return "", "is JSON whose api_key is not a string"
	}
	return strings.TrimSpace(*value), ""
}
