package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

const (
	account = "111122223333"
	secret  = "arn:aws:secretsmanager:eu-central-1:" + account + ":secret:db-AbCdEf"
)

// settingsFile returns the settings of a stack beside an existing database.
func settingsFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../infra/examples/existing.json")
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	s["name"] = "shop"
	delete(s, "kms_key_arn")
	delete(s, "sume_api_key_secret_arn")
	s["database"].(map[string]any)["admin_secret_arn"] = secret
	delete(s["database"].(map[string]any), "kms_key_arn")
	if text, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	return file(t, string(text))
}

// cloud answers as AWS's STS and Lambda do. Its program must have ended before a
// field is read.
type cloud struct {
	identity response // of STS; the zero value: the account of the credentials
	invoke   response // of Lambda
	account  string   // of the credentials; empty: the settings'

	invokes       int
	path, payload string // of the last invocation
	region        string // that its signature names
}

type response struct {
	status       int
	header, body string
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	answer := c.invoke
	if r.URL.Path == "/" {
		if answer = c.identity; answer.status == 0 {
			id := c.account
			if id == "" {
				id = account
			}
			answer = response{200, "", `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>` + id + `</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`}
		}
	} else {
		c.invokes++
		c.path, c.payload = r.URL.Path, string(body)
		_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		if parts := strings.Split(scope, "/"); len(parts) > 2 {
			c.region = parts[2]
		}
	}
	if name, value, ok := strings.Cut(answer.header, ": "); ok {
		w.Header().Set(name, value)
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write([]byte(answer.body))
}

// environment returns the variables with which the program finds the cloud.
func (c *cloud) environment(t *testing.T, more ...string) []string {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return append([]string{
		"AWS_ENDPOINT_URL=" + server.URL, "AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=us-west-2",
		"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=SECRET", "SETTINGS=" + settingsFile(t), "FILE=" + order,
	}, more...)
}

func lambdaError(status int, code string) response {
	return response{status, "X-Amzn-Errortype: " + code, `{"Message": "said\nby AWS"}`}
}

func stsError(status int, code string) response {
	return response{status, "", fmt.Sprintf(`<ErrorResponse><Error><Code>%s</Code><Message>said by AWS</Message></Error></ErrorResponse>`, code)}
}

func TestLambda_Invoke(t *testing.T) {
	t.Parallel()
	payload, err := os.ReadFile("../../" + order)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, answer, path, payload string
		env                         []string
	}{
		{"submit", submitted, "/2015-03-31/functions/shop-submit/invocations", string(payload), nil},
		{"stop", `{"mode": "stop"}`, "/2015-03-31/functions/shop-poller/invocations", `{"stop":{"job_ids":["job_1"]}}`, []string{"JOB=job_1"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			aws := &cloud{invoke: response{200, "", c.answer}}
			code, out, errs := run(t, aws.environment(t, c.env...), "", c.kind)
			if code != 0 || errs != "" || !strings.HasPrefix(out, "{\n") {
				t.Errorf("exit code %d, error %q, output %q; want 0 and the answer", code, errs, out)
			}
			if n := aws.invokes; n != 1 || aws.path != c.path || aws.payload != c.payload || aws.region != "eu-central-1" {
				t.Errorf("%d invocations, path %s, region %s, payload %q; want one of %s with %q", n, aws.path, aws.region, aws.payload, c.path, c.payload)
			}
		})
	}
}

// Settings with a new database name no account and no region.
func TestLambda_NewDatabase(t *testing.T) {
	t.Parallel()
	path := file(t, `{"name": "shop", "database": {"new": true}}`)
	aws := &cloud{account: "444455556666", invoke: response{200, "", submitted}}
	code, _, errs := run(t, aws.environment(t, "SETTINGS="+path), "", "submit")
	want := path + " names no account: using the credentials' account 444455556666, region us-west-2\n"
	if code != 0 || errs != want || aws.region != "us-west-2" {
		t.Errorf("exit code %d, region %s, error %q; want %q", code, aws.region, errs, want)
	}
	code, _, errs = run(t, aws.environment(t, "SETTINGS="+path, "AWS_REGION="), "", "submit")
	if code != 1 || errs != "make submit: which AWS region? The settings name none: set AWS_REGION\n" {
		t.Errorf("exit code %d, error %q; want one that names AWS_REGION", code, errs)
	}
}

// None of these reaches a function.
func TestLambda_NotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cloud cloud
		env   []string
		want  string
	}{
		"other account": {
			cloud: cloud{account: "444455556666"},
			want:  "the AWS credentials are of account 444455556666, but the stack of ",
		},
		"no settings":    {env: []string{"SETTINGS=none.json"}, want: "none.json: no such file"},
		"bad settings":   {env: []string{"SETTINGS=" + file(t, `{"name": "shop", "database": {"new": true}, "extra": 1}`)}, want: ": extra: unknown field"},
		"no credentials": {env: []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="}, want: "no AWS credentials: set AWS_PROFILE"},
		"no profile":     {env: []string{"AWS_PROFILE=none"}, want: "read the AWS configuration: "},
		"expired":        {cloud: cloud{identity: stsError(403, "ExpiredToken")}, want: "the AWS credentials have expired: log in again"},
		"unknown key":    {cloud: cloud{identity: stsError(403, "InvalidClientTokenId")}, want: "AWS does not accept the credentials"},
		"not allowed":    {cloud: cloud{identity: stsError(403, "AccessDenied")}, want: "AccessDenied"},
		"unreachable":    {env: []string{"AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_MAX_ATTEMPTS=1"}, want: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, c.cloud.environment(t, c.env...), "", "submit")
			checkError(t, code, out, errs, c.want, false)
			if n := c.cloud.invokes; n != 0 {
				t.Errorf("%d invocations, want none", n)
			}
		})
	}
}

func TestLambda_Errors(t *testing.T) {
	t.Parallel()
	const message = `"errorMessage": "database: no route"`
	for name, c := range map[string]struct {
		response response
		want     string
		unknown  bool // whether the order was sent
	}{
		"no function":     {lambdaError(404, "ResourceNotFoundException"), "shop-submit in account 111122223333, region eu-central-1: ResourceNotFoundException: no such function: deploy", false},
		"throttled":       {lambdaError(429, "TooManyRequestsException"), "Lambda accepts no more requests at the moment", false},
		"not allowed":     {lambdaError(403, "AccessDeniedException"), "allow lambda:InvokeFunction", false},
		"expired":         {lambdaError(403, "ExpiredTokenException"), "the AWS credentials have expired", false},
		"other 4xx":       {lambdaError(409, "ResourceConflictException"), "ResourceConflictException: said by AWS", false},
		"other 5xx":       {lambdaError(500, "ServiceException"), "ServiceException: said by AWS", true},
		"function error":  {response{200, "X-Amz-Function-Error: Unhandled", `{` + message + `, "errorType": "x"}`}, "the function failed: database: no route", false},
		"timed out":       {response{200, "X-Amz-Function-Error: Unhandled", `{"errorMessage": "r Task timed out after 60.00 seconds", "errorType": "Sandbox.Timedout"}`}, "timed out after 60.00", true},
		"timed out, bare": {response{200, "X-Amz-Function-Error: Unhandled", `{"errorMessage": "r Task timed out after 60.00 seconds"}`}, "timed out after 60.00", true},
		"no message":      {response{200, "X-Amz-Function-Error: Unhandled", `{}`}, "the function failed (Unhandled) and gave no error message", true},
		"other function":  {response{200, "", inspected}, `the answer is not the submit function's`, true},
		"no answer":       {response{200, "Content-Length: 500", submitted}, "invoke shop-submit", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aws := &cloud{invoke: c.response}
			code, out, errs := run(t, aws.environment(t), "", "submit")
			checkError(t, code, out, errs, c.want, c.unknown)
			if n := aws.invokes; n != 1 {
				t.Errorf("%d invocations, want a single one", n)
			}
		})
	}
}

// checkError checks a failed submit.
func checkError(t *testing.T, code int, out, errs, want string, orderUnknown bool) {
	t.Helper()
	if code != 1 || out != "" || !strings.HasPrefix(errs, "make submit: ") || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit code %d, output %q, error %q; want 1 and one line with %q", code, out, errs, want)
	}
	if strings.Contains(errs, unknown) != orderUnknown || strings.Contains(errs, "SECRET") {
		t.Errorf("error %q; want the order unknown: %v", errs, orderUnknown)
	}
}
