package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/postgres"
)

// check finds out whether the other functions will get at what they need, and
// returns one line for each thing that they will not, and one for each that
// cannot be found out.
func (h *handler) check(ctx context.Context, pool *pgxpool.Pool, roles []role) (faults []error, warnings []string) {
	for _, r := range roles {
		as, err := h.loginAs(ctx, pool, r)
		if err != nil {
			faults = append(faults, fmt.Errorf("log in as role %s: %s: %s", r.name, oneLine(err), loginCure(r)))
			continue
		}
		lacks, doubts, err := access(ctx, pool, as, r)
		postgres.Close(as, closeLimit)
		if err != nil {
			faults = append(faults, fmt.Errorf("role %s: %w", r.name, err))
		}
		faults, warnings = append(faults, lacks...), append(warnings, doubts...)
	}
	if err := sumeAnswers(ctx, h.cfg.BaseURL); err != nil {
		faults = append(faults, err)
	}
	return faults, warnings
}

// warn tells of rows that will never be due, although they look pending: a
// column that an adopted table lets be NULL stays so.
func (h *handler) warn(ctx context.Context, pool *pgxpool.Pool) {
	var n int
	err := pool.QueryRow(ctx, `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND next_poll_at IS NULL`).Scan(&n)
	if err == nil && n > 0 {
		h.log.WarnContext(ctx, "pending rows without a next_poll_at are never due: UPDATE video_jobs SET next_poll_at = now() WHERE state = 'pending' AND next_poll_at IS NULL", "rows", n)
	}
}

func loginCure(r role) string {
	if r.auth == config.RoleAuthIAM {
		return "turn IAM authentication on at the database, and let the functions' roles rds-db:connect as that user of the resource id in the settings"
	}
	return "let pg_hba.conf, or the parameter group, allow that role a password by scram-sha-256"
}

// sumeAnswers takes any HTTP answer as a sign of life: no key is sent.
func sumeAnswers(ctx context.Context, baseURL string) error {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, baseURL, nil)
	if err != nil {
		return fmt.Errorf("%s: no address", config.APIBaseURL)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the Sume API at %s does not answer from here: give the functions' subnets a way out (a NAT gateway), and their security group port 443", request.URL.Host)
	}
	return answer.Body.Close()
}

// oneLine returns an error's text on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
