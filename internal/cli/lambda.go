package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"sumepoller/infra/settings"
)

const identityTimeout = time.Minute

// invoke invokes a function of the settings' stack, once, and returns its
// answer or the description of its error. It sends nothing with credentials of
// another account than the settings'.
func invoke(ctx context.Context, s settings.Settings, path, function string, payload []byte, stderr io.Writer) ([]byte, error) {
	place := s.Place()
	cfg, account, err := login(ctx, place.Region)
	if err != nil {
		return nil, notSent{err}
	}
	switch place.Account {
	case account:
	case "":
		fmt.Fprintf(stderr, "%s names no account: using the credentials' account %s, region %s\n", path, account, cfg.Region)
	default:
		return nil, notSent{fmt.Errorf("the AWS credentials are of account %s, but the stack of %s is in account %s: set AWS_PROFILE to one of that account", account, path, place.Account)}
	}
	connected := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	client := lambda.NewFromConfig(cfg, func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	out, err := client.Invoke(traced, &lambda.InvokeInput{FunctionName: &function, Payload: payload})
	if err != nil {
		// With a 4xx status Lambda did not start the function.
		var response *smithyhttp.ResponseError
		rejected := errors.As(err, &response) && response.HTTPStatusCode()/100 == 4
		err = explainAWS(err, fmt.Sprintf("invoke %s in account %s, region %s", function, account, cfg.Region))
		if rejected || !connected {
			err = notSent{err}
		}
		return nil, err
	}
	if out.FunctionError != nil && parseFailedInvocation(out.Payload) == nil {
		return nil, fmt.Errorf("the function failed (%s) and gave no error message: see its log", *out.FunctionError)
	}
	return out.Payload, nil
}

// login returns the configuration for a region, or for the user's where that
// is empty, and the account of the credentials.
func login(ctx context.Context, region string) (aws.Config, string, error) {
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return cfg, "", fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region = cmp.Or(region, cfg.Region); cfg.Region == "" {
		return cfg, "", errors.New("which AWS region? The settings name none: set AWS_REGION")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if expired(err) || ctx.Err() != nil {
			return cfg, "", explainAWS(err, "get AWS credentials")
		}
		return cfg, "", fmt.Errorf("no AWS credentials: set AWS_PROFILE, or log in (aws sso login), or set FUNCTION_URL: %w", err)
	}
	identity, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, nil)
	if err != nil {
		return cfg, "", explainAWS(err, "read the account of the AWS credentials")
	}
	return cfg, aws.ToString(identity.Account), nil
}

func expired(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "ExpiredToken", "ExpiredTokenException", "RequestExpired":
			return true
		}
	}
	return errors.As(err, new(*ssocreds.InvalidTokenError))
}

// explainAWS says in one line why a call failed, and what to do. attempt says
// what was attempted.
func explainAWS(err error, attempt string) error {
	var api smithy.APIError
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer in time", attempt)
	case expired(err):
		return fmt.Errorf("%s: the AWS credentials have expired: log in again (aws sso login)", attempt)
	case !errors.As(err, &api):
		return fmt.Errorf("%s: %s", attempt, oneLine(err.Error()))
	}
	cure := oneLine(api.ErrorMessage())
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		cure = "no such function: deploy the stack (make deploy), or check the settings' name"
	case "TooManyRequestsException":
		cure = "Lambda accepts no more requests at the moment: run it again"
	case "AccessDenied", "AccessDeniedException":
		cure = "the credentials may not do this: allow lambda:InvokeFunction"
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException":
		cure = "AWS does not accept the credentials: check AWS_PROFILE or AWS_ACCESS_KEY_ID, and this machine's clock"
	}
	return fmt.Errorf("%s: %s: %s", attempt, api.ErrorCode(), cure)
}
