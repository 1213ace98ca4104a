package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

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
	}
	if err := sumeAnswers(ctx, h.cfg.BaseURL); err != nil {
		faults = append(faults, err)
	}
	return faults
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
