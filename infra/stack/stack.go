// Package stack describes the product on AWS: the three functions with their roles
// and logins, the schedule, the alarms and the dashboard. Network and database
// exist already, or a second stack makes them.
//
// Build looks nothing up, reads no environment variable and calls no AWS service.
// It is not safe for concurrent use, since jsii is not.
package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
)

// Ids by which the CDK command line selects the two stacks. Their names come from
// the settings.
const (
	AppID  = "App"
	DataID = "Data"
)

// Stacks are the result of Build. Data is nil unless the settings ask for a new
// database.
type Stacks struct {
	App  awscdk.Stack
	Data awscdk.Stack
}

// Build adds the stacks to the app. The directory dist holds one directory for each
// function; call CheckAssets first.
func Build(app awscdk.App, s settings.Settings, dist string) Stacks {
	props := &awscdk.StackProps{
		StackName:   jsii.String(s.Name),
		Description: jsii.String("Follows bought video jobs to their end: a poller every minute, its alarms and its dashboard"),
		Env:         environment(s.Place()),
	}
	var stacks Stacks
	var db database
	if s.Database.New {
		stacks.Data, db = newData(app, s)
	}
	stacks.App = awscdk.NewStack(app, jsii.String(AppID), props)
	if !s.Database.New {
		db = existing(stacks.App, s)
	}
	build(stacks.App, s, db, dist)
	return stacks
}

// environment pins the account and region that the database's secret names, so
// that a deploy with other credentials is refused. Without such a secret the
// credentials of the deploy decide.
func environment(p settings.Place) *awscdk.Environment {
	if p.Region == "" {
		return nil
	}
	return &awscdk.Environment{Account: jsii.String(p.Account), Region: jsii.String(p.Region)}
}

// app is the app stack while Build makes it.
type app struct {
	stack    awscdk.Stack
	settings settings.Settings
	db       database
	net      network
	dist     string
	apiKey   *string  // the ARN of the API key's secret
	onGraphs []string // metrics that the dashboard shows

	poller, submit, migrate function
}

func build(stack awscdk.Stack, s settings.Settings, db database, dist string) {
	a := &app{stack: stack, settings: s, db: db, dist: dist}
	a.net = a.network()
	a.apiKey = a.apiKeySecret()
	logins := a.logins()
	a.poller = a.newPoller(logins.poller)
	a.submit = a.newSubmit(logins.submitter)
	a.migrate = a.newMigrate(logins)
	schedule := a.schedule()
	if s.Migrate == settings.MigrateAuto {
		a.migrateFirst(schedule)
	}
	topic := a.topic()
	a.dashboard(a.newAlarms(topic))
	a.outputs(topic)
}

// apiKeySecret returns the ARN of the secret that holds the API key. If the
// settings name none, the stack makes one with a placeholder that the functions
// refuse. It is kept when the stack is deleted. Its id and its placeholder must
// never change: a change would overwrite the key that a person put in.
func (a *app) apiKeySecret() *string {
	if a.settings.APIKeySecretARN != "" {
		return jsii.String(a.settings.APIKeySecretARN)
	}
	secret := awssecretsmanager.NewSecret(a.stack, jsii.String("SumeApiKey"), &awssecretsmanager.SecretProps{
		Description:       jsii.String("The Sume API key: the key itself, or JSON with api_key"),
		SecretStringValue: awscdk.SecretValue_UnsafePlainText(jsii.String(Placeholder)),
		EncryptionKey:     a.ownKey("SumeApiKeyKmsKey"),
		RemovalPolicy:     awscdk.RemovalPolicy_RETAIN,
	})
	secret.Node().DefaultChild().(awssecretsmanager.CfnSecret).OverrideLogicalId(jsii.String("SumeApiKey"))
	return secret.SecretArn()
}

// Placeholder is the value of the API key's secret until a person puts the key in.
const Placeholder = "REPLACE_ME"

// outputs prints what the make targets and a person need after a deploy.
func (a *app) outputs(topic *string) {
	for _, out := range []struct {
		id    string
		value *string
		what  string
	}{
		{"PollerFunction", a.poller.FunctionName(), "invoked every minute, and by hand for backfill, inspect and stop"},
		{"SubmitFunction", a.submit.FunctionName(), "invoked to buy a video"},
		{"MigrateFunction", a.migrate.FunctionName(), "brings the schema up to date"},
		{"ApiKeySecret", a.apiKey, "put the Sume API key in here"},
		{"AlarmTopic", topic, "every alarm notifies this topic"},
	} {
		awscdk.NewCfnOutput(a.stack, jsii.String(out.id), &awscdk.CfnOutputProps{Value: out.value, Description: jsii.String(out.what)})
	}
}

// functionName returns the full name of a function.
func (a *app) functionName(short string) string { return a.settings.FunctionName(short) }

// function is a Lambda function with its role and its log group.
type function struct {
	awslambda.Function
	role     awsiam.Role
	logGroup *string // its name
}
