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

// check checks that the other functions can log in, write to the table and reach
// the Sume API. It returns one error for each thing that they cannot do, and one
// warning for each that it could not check.
func (h *handler) check(ctx context.Context, pool *pgxpool.Pool, roles []role) (problems []error, warnings []string) {
	for _, r := range roles {
		as, err := h.loginAs(ctx, pool, r)
		if err != nil {
			problems = append(problems, fmt.Errorf("log in as role %s: %s: %s", r.name, oneLine(err), loginCure(r)))
			continue
		}
		lacks, doubts, err := access(ctx, pool, as, r)
		postgres.Close(as, closeLimit)
		if err != nil {
			problems = append(problems, fmt.Errorf("role %s: %w", r.name, err))
		}
		problems, warnings = append(problems, lacks...), append(warnings, doubts...)
	}
	if err := sumeAnswers(ctx, h.cfg.BaseURL); err != nil {
		problems = append(problems, err)
	}
	return problems, warnings
}

// warn logs how many pending rows will never be due because their next_poll_at is
// NULL, which an adopted table may allow.
func (h *handler) warn(ctx context.Context, pool *pgxpool.Pool) {
	var n int
	err := pool.QueryRow(ctx, `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND next_poll_at IS NULL`).Scan(&n)
	if err == nil && n > 0 {
		h.log.WarnContext(ctx, "pending rows without a next_poll_at are never due: UPDATE video_jobs SET next_poll_at = now() WHERE state = 'pending' AND next_poll_at IS NULL", "rows", n)
	}
}

func loginCure(r role) string {
	if r.auth == config.RoleAuthIAM {
		return "turn on IAM authentication of the database, and allow the functions' roles rds-db:connect for that user and the resource id of the settings"
	}
	return "allow scram-sha-256 passwords for that role in pg_hba.conf, or in the parameter group"
}

// sumeAnswers checks that the Sume API answers, with any HTTP status: it sends no key.
func sumeAnswers(ctx context.Context, baseURL string) error {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, baseURL, nil)
	if err != nil {
		return fmt.Errorf("%s: not an address", config.APIBaseURL)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the Sume API at %s does not answer from here: give the functions' subnets a route to the internet (a NAT gateway), and allow port 443 in their security group", request.URL.Host)
	}
	return answer.Body.Close()
}

// oneLine returns an error's text on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
