package main

import (
	"io"
	"log/slog"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
	"sumepoller/internal/sume"
	"sumepoller/internal/telemetry"
)

// handler serves invocations, one at a time. Between them it holds no database
// connection.
type handler struct {
	cfg      config.Poller
	function string // its name
	cache    *secrets.Cache
	key      *secrets.APIKey
	api      *sume.Client
	poller   *poller.Poller
	log      *slog.Logger
	metrics  io.Writer
}

func newHandler(cfg config.Poller, function string, cache *secrets.Cache, stdout, stderr io.Writer) (*handler, error) {
	key := secrets.NewAPIKey(cache, cfg.Sume.APIKeySecretID)
	api, err := sume.NewClient(sume.Config{
		BaseURL: cfg.Sume.BaseURL, KeyHeader: cfg.Sume.KeyHeader(), Timeout: cfg.Sume.RequestTimeout,
	}, key)
	if err != nil {
		return nil, err
	}
	log := telemetry.NewLogger(stderr, cfg.LogLevel)
	return &handler{
		cfg: cfg, function: function, cache: cache, key: key, api: api, log: log, metrics: stdout,
		poller: poller.New(poller.Settings{
			Budget:          cfg.Poll.Budget,
			Concurrency:     cfg.Poll.Concurrency,
			Lease:           cfg.Poll.Lease,
			RequestTimeout:  cfg.Sume.RequestTimeout,
			DefaultInterval: cfg.Poll.DefaultInterval,
			MinInterval:     cfg.Poll.MinInterval,
			MaxInterval:     cfg.Poll.MaxInterval,
			BackoffMax:      cfg.Poll.BackoffMax,
			ReadsPerMinute:  cfg.Reads.PerMinute,
			ReadsPerDay:     cfg.Reads.PerDay,
		}, log),
	}, nil
}
