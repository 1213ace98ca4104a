package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
	"sumepoller/internal/submit"
	"sumepoller/internal/sume"
	"sumepoller/internal/telemetry"
)

// handler serves invocations, one at a time. Between them it holds no database
// connection.
type handler struct {
	cfg   config.Submit
	cache *secrets.Cache
	key   *secrets.APIKey
	api   *sume.Client
	log   *slog.Logger
}

func newHandler(cfg config.Submit, cache *secrets.Cache, stderr io.Writer) (*handler, error) {
	key := secrets.NewAPIKey(cache, cfg.Sume.APIKeySecretID)
	api, err := sume.NewClient(sume.Config{
		BaseURL: cfg.Sume.BaseURL, KeyHeader: cfg.Sume.KeyHeader(), Timeout: cfg.Sume.RequestTimeout,
	}, key)
	if err != nil {
		return nil, err
	}
	return &handler{cfg: cfg, cache: cache, key: key, api: api, log: telemetry.NewLogger(stderr, cfg.LogLevel)}, nil
}

var (
	errSecret   = errors.New("secret")
	errPanicked = errors.New("panic")
)

// Invoke serves one invocation. It implements lambda.Handler, since a typed
// handler would not get the payload's bytes, which are checked and kept verbatim.
func (h *handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	started := time.Now()
	result, err := submit.Result{}, errPanicked
	defer func() { h.report(ctx, result, err, time.Since(started)) }() // in a panic too
	if result, err = h.serve(ctx, payload); err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

func (h *handler) serve(ctx context.Context, payload []byte) (submit.Result, error) {
	request, err := submit.Parse(payload)
	if err != nil {
		return submit.Result{}, err
	}
	h.cache.Rearm()
	if _, err := h.key.Key(ctx); err != nil { // before the intent, so that no intent is stored that cannot be sent
		return submit.Result{}, fmt.Errorf("%w: %w; nothing was sent", errSecret, err)
	}
	store, disconnect, err := h.connect(ctx)
	if err != nil {
		return submit.Result{}, err
	}
	defer disconnect()
	defer h.api.CloseIdle()
	s := submit.Submitter{Store: store, Poster: h.api, Timeout: h.cfg.Sume.RequestTimeout}
	result, err := s.Submit(ctx, request)
	if kind(err) == "" && errors.As(err, new(*secrets.Error)) {
		err = fmt.Errorf("%w: %w", errSecret, err)
	}
	return result, err
}
