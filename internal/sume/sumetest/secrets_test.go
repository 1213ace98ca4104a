package sumetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"

	"sumepoller/internal/sume/sumetest"
)

// manager returns Secrets and an AWS client of it without retries.
func manager(t *testing.T) (*sumetest.Secrets, *secretsmanager.Client) {
	t.Helper()
	s := sumetest.NewSecrets()
	url := listen(t, s)
	return s, secretsmanager.New(secretsmanager.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(url),
		Credentials:  credentials.NewStaticCredentialsProvider("id", "secret", ""),
		Retryer:      aws.NopRetryer{},
	})
}

func get(ctx context.Context, c *secretsmanager.Client, id string) (*secretsmanager.GetSecretValueOutput, error) {
	return c.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(id)})
}

func TestSecrets_SDK(t *testing.T) {
	t.Parallel()
	s, c := manager(t)
	s.Set("text", "one", false)
	s.Set("binary", "\x00\xff", true)
	text, err := get(t.Context(), c, "text")
	if err != nil || aws.ToString(text.SecretString) != "one" || aws.ToString(text.Name) != "text" {
		t.Errorf("got %+v, %v, want the string", text, err)
	}
	binary, err := get(t.Context(), c, "binary")
	if err != nil || string(binary.SecretBinary) != "\x00\xff" || binary.SecretString != nil {
		t.Errorf("got %+v, %v, want the bytes", binary, err)
	}
	s.Set("text", "two", false)
	rotated, err := get(t.Context(), c, "text")
	if err != nil || aws.ToString(rotated.SecretString) != "two" || aws.ToString(rotated.VersionId) == aws.ToString(text.VersionId) {
		t.Errorf("got %+v, %v, want the new version", rotated, err)
	}
	s.Remove("text")
	if _, err := get(t.Context(), c, "text"); !errors.As(err, new(*types.ResourceNotFoundException)) {
		t.Errorf("got %v, want not found", err)
	}
	if calls := s.Calls(); calls != 4 {
		t.Errorf("%d calls, want 4", calls)
	}
}

func TestSecrets_Faults(t *testing.T) {
	t.Parallel()
	code := func(err error) string {
		var api smithy.APIError
		if errors.As(err, &api) {
			return api.ErrorCode()
		}
		return ""
	}
	s, c := manager(t)
	s.Set("text", "one", false)
	s.Throttle(2)
	for _, want := range []string{"ThrottlingException", "ThrottlingException", ""} {
		if _, err := get(t.Context(), c, "text"); code(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	s.Fail(true)
	if _, err := get(t.Context(), c, "text"); code(err) != "InternalServiceError" {
		t.Errorf("got %v, want an internal error", err)
	}
	s.Fail(false)
	s.Silence(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, c, "text"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer in time", err)
	}
	s.Silence(false)
	if _, err := get(t.Context(), c, "text"); err != nil {
		t.Error(err)
	}
}
