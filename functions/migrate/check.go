package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
)

// check finds out whether the other functions will get at what they need, and
// returns one line for each thing that they will not.
func (h *handler) check(ctx context.Context, pool *pgxpool.Pool, roles []role) []error {
	var faults []error
	for _, r := range roles {
		if err := h.loginAs(ctx, pool, r); err != nil {
			faults = append(faults, fmt.Errorf("log in as role %s: %s: %s", r.name, oneLine(err), loginCure(r)))
		}
		if err := seesRows(ctx, pool, r); err != nil {
			faults = append(faults, err)
		}
	}
	if err := sumeAnswers(ctx, h.cfg.BaseURL); err != nil {
		faults = append(faults, err)
	}
	return faults
}

const hiddenSQL = `
SELECT c.relrowsecurity AND NOT r.rolbypassrls
       AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND (0::oid = ANY (p.polroles) OR r.oid = ANY (p.polroles)))
  FROM pg_class c, pg_roles r
 WHERE c.oid = to_regclass('video_jobs') AND r.rolname = $1`

// seesRows finds out whether an adopted table hides its rows from the role, in
// which case jobs would be forgotten without a word.
func seesRows(ctx context.Context, pool *pgxpool.Pool, r role) error {
	var hidden bool
	if err := pool.QueryRow(ctx, hiddenSQL, r.name).Scan(&hidden); err != nil {
		return fmt.Errorf("look at the policies of video_jobs: %w", plain(err))
	}
	if !hidden {
		return nil
	}
	name := pgx.Identifier{r.name}.Sanitize()
	return fmt.Errorf("row-level security hides video_jobs from role %s: CREATE POLICY %s ON video_jobs TO %s USING (true) WITH CHECK (true)", r.name, name, name)
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
