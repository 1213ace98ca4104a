package secrets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
)

// Manager fetches secrets from AWS Secrets Manager.
type Manager struct{ client *secretsmanager.Client }

// NewManager reads the SDK's own configuration (region, credentials, endpoint)
// and opens no connection.
func NewManager(ctx context.Context) (*Manager, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	return NewManagerFrom(cfg), nil
}

// NewManagerFrom returns a manager over a given configuration of the SDK.
// It retries throttled calls and broken connections within the time of a fetch.
func NewManagerFrom(cfg aws.Config) *Manager {
	// A fetch happens once in minutes. A connection that is kept while the sandbox
	// is frozen would be dead.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	return &Manager{client: secretsmanager.NewFromConfig(cfg, func(o *secretsmanager.Options) {
		o.HTTPClient = client
		o.Logger = logging.Nop{} // the SDK's own writes to standard error
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 5
			o.MaxBackoff = 500 * time.Millisecond
		})
	})}
}

// Fetch returns the secret string of the current version.
func (m *Manager) Fetch(ctx context.Context, id string) (string, error) {
	out, err := m.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	if err != nil {
		return "", &Error{ID: id, Reason: reason(ctx, err), err: err}
	}
	if out.SecretString == nil {
		return "", &Error{ID: id, Reason: "holds binary data; want text"}
	}
	return *out.SecretString, nil
}

// Error is a secret that cannot be read or used. It is one line and holds no
// value.
type Error struct {
	ID     string // the secret's id or ARN
	Reason string
	err    error
}

// Error returns the id and the reason.
func (e *Error) Error() string { return e.ID + ": " + e.Reason }

// Unwrap returns the error beneath, which may be nil.
func (e *Error) Unwrap() error { return e.err }

// reason says in one line why a fetch did not succeed, and what to look at.
func reason(ctx context.Context, err error) string {
	const noRoute = "; is there a VPC endpoint for Secrets Manager or a NAT gateway, and is port 443 open?"
	var missing *types.ResourceNotFoundException
	var api smithy.APIError
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &missing):
		return "not found in Secrets Manager of this region, or without a value"
	case errors.As(err, &api):
		return apiReason(api.ErrorCode())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "no answer from Secrets Manager in time" + noRoute
	case errors.Is(ctx.Err(), context.Canceled):
		return "the fetch was cut short"
	case errors.As(err, &dns):
		return "the name of Secrets Manager's endpoint does not resolve" + noRoute
	case errors.As(err, &network):
		return "Secrets Manager cannot be reached (" + root(err) + ")" + noRoute
	}
	return "cannot be read from Secrets Manager (" + root(err) + ")"
}

func apiReason(code string) string {
	hint := ""
	switch code {
	case "AccessDeniedException", "AccessDenied":
		hint = "; may the function's role call secretsmanager:GetSecretValue on it, and kms:Decrypt on its key?"
	case "DecryptionFailure":
		hint = "; may the function's role call kms:Decrypt on its key?"
	case "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded", "Throttling":
		hint = "; throttled, and retried in vain"
	}
	return fmt.Sprintf("Secrets Manager answers %.64q%s", code, hint)
}

// root returns the message of the innermost error, which holds no address.
func root(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
