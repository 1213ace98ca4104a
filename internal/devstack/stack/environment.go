package stack

import (
	"maps"

	"sumepoller/internal/config"
)

// environment is what the functions see. Those that need less ignore the rest.
func (s *stack) environment(extra map[string]string) map[string]string {
	env := map[string]string{
		config.APIKeySecretID: secretID,
		config.APIBaseURL:     s.address + "/v1",
		config.DatabaseURL:    s.db.url,
		config.PollBudget:     runBudget.String(),
		config.ReadsPerMinute: "0",
		config.ReadsPerDay:    "0",
		config.FunctionMemory: "256",

		"AWS_REGION":                       "us-east-1",
		"AWS_ACCESS_KEY_ID":                "simulated",
		"AWS_SECRET_ACCESS_KEY":            "simulated",
		"AWS_EC2_METADATA_DISABLED":        "true",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": s.address,
	}
	maps.Copy(env, extra)
	return env
}
