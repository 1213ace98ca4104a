// Package stack is the AWS side of the product: the poller with its schedule,
// the submitter, the migrator, their logins and grants, the alarms and the
// dashboard, all of them in a network and beside a database that exist or that
// a stack of their own makes.
//
// Everything is explicit: Build looks nothing up, reads no environment variable
// and calls no AWS service. It is not safe for concurrent use, since jsii is
// not.
package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
)

// Ids by which the CDK command line selects the two stacks, whatever the
// settings name them.
const (
	AppID  = "App"
	DataID = "Data"
)

// Stacks are what Build makes of the settings. Data is nil unless the settings
// ask for a new database.
type Stacks struct {
	App  awscdk.Stack
	Data awscdk.Stack
}

// Build adds the stacks to the app. The folder dist holds one folder for each
// function; CheckAssets has looked at it before.
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
// that a deploy with other credentials is refused. Without one it is whoever
// deploys that decides.
func environment(p settings.Place) *awscdk.Environment {
	if p.Region == "" {
		return nil
	}
	return &awscdk.Environment{Account: jsii.String(p.Account), Region: jsii.String(p.Region)}
}

// app is the app stack while it is put together.
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

// apiKeySecret returns the ARN of the secret that holds the API key. Where the
// settings name none, the stack makes one with a placeholder that the functions
// know and refuse. It outlives the stack, and its id and placeholder never
// change: either would overwrite the key that was put in by hand.
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

// Placeholder is what the API key's secret holds until a person puts the key
// in.
const Placeholder = "REPLACE_ME"

// outputs print what the make targets and a person need after a deploy.
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
		{"AlarmTopic", topic, "every alarm tells this topic"},
	} {
		awscdk.NewCfnOutput(a.stack, jsii.String(out.id), &awscdk.CfnOutputProps{Value: out.value, Description: jsii.String(out.what)})
	}
}

// functionName returns the full name of a function. It is fixed, so that
// metrics, log groups and the deny on network calls can name it.
func (a *app) functionName(short string) string { return fmt.Sprintf("%s-%s", a.settings.Name, short) }

// function is a Lambda function with the parts that others refer to.
type function struct {
	awslambda.Function
	role     awsiam.Role
	logGroup *string // its name
}
