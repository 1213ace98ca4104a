package stack

import (
	"path/filepath"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
	"sumepoller/internal/config"
)

// Timeouts of the functions, in seconds. A run of the poller ends within its time
// budget and one read's timeout. migrate may build an index on a large table.
const (
	pollerTimeout  = 90
	submitTimeout  = 60
	migrateTimeout = 600
)

// kind holds what differs between the functions.
type kind struct {
	id, short   string
	description string
	timeout     float64 // seconds
	memory      int     // MiB
	env         map[string]string
	async       bool // invoked by the schedule
}

// newPoller makes the function that the schedule invokes. A failed tick is not
// repeated: the next one comes within a minute and finds the same rows.
func (a *app) newPoller(l login) function {
	f := a.function(kind{
		id: "Poller", short: "poller", description: "Reads due video jobs and settles them",
		timeout: pollerTimeout, memory: a.settings.MemoryMiB, async: true,
		env: map[string]string{
			config.ReadsPerMinute:  strconv.Itoa(a.settings.ReadsPerMinute),
			config.ReadsPerDay:     strconv.Itoa(a.settings.ReadsPerDay),
			config.PollBudget:      a.settings.Budget,
			config.PollConcurrency: strconv.Itoa(a.settings.Concurrency),
		},
	}, l.env(a.db), map[string]string{config.APIKeySecretID: *a.apiKey})
	a.readsSecret(f, "ApiKey", a.apiKey, a.settings.KMSKeyARN)
	a.logsIn(f, "Poller", l)
	return f
}

// newSubmit makes the function that buys videos. For a caller that invokes it
// asynchronously Lambda's retries stay on: two invocations with one key buy once.
func (a *app) newSubmit(l login) function {
	f := a.function(kind{
		id: "Submit", short: "submit", description: "Buys one video per idempotency key and records its job",
		timeout: submitTimeout, memory: settings.Defaults().MemoryMiB,
	}, l.env(a.db), map[string]string{config.APIKeySecretID: *a.apiKey})
	a.readsSecret(f, "ApiKey", a.apiKey, a.settings.KMSKeyARN)
	a.logsIn(f, "Submitter", l)
	return f
}

// function makes a function with its role and its log group. At first the role may
// write the log and have Lambda attach the function to the network, no more.
func (a *app) function(k kind, envs ...map[string]string) function {
	name := a.functionName(k.short)
	logs := awslogs.NewLogGroup(a.stack, jsii.String(k.id+"Logs"), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String("/aws/lambda/" + name),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	logs.Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(jsii.Number(a.settings.LogRetentionDays))
	role := awsiam.NewRole(a.stack, jsii.String(k.id+"Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("What " + name + " may do"),
	})
	allow(role, "WriteLog", logs.LogGroupArn(), nil, "logs:CreateLogStream", "logs:PutLogEvents")
	a.attaches(role, name)

	props := &awslambda.FunctionProps{
		FunctionName: jsii.String(name), Description: jsii.String(k.description),
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: awslambda.Architecture_ARM_64(), Handler: jsii.String("bootstrap"),
		Code:       awslambda.Code_FromAsset(jsii.String(filepath.Join(a.dist, k.short)), nil),
		MemorySize: jsii.Number(k.memory), Timeout: awscdk.Duration_Seconds(jsii.Number(k.timeout)),
		Role: role, LogGroup: logs,
		// Above INFO, Lambda would drop the line of metrics.
		LoggingFormat:         awslambda.LoggingFormat_JSON,
		ApplicationLogLevelV2: awslambda.ApplicationLogLevel_INFO, SystemLogLevelV2: awslambda.SystemLogLevel_INFO,
		Vpc: a.db.vpc, VpcSubnets: a.db.subnets, SecurityGroups: &[]awsec2.ISecurityGroup{a.net.functions},
		Environment: environ(append(envs, k.env)...),
	}
	if k.async {
		// Scheduler's retry policy covers the delivery into Lambda's queue; these
		// cover what happens after it.
		props.RetryAttempts, props.MaxEventAge = jsii.Number(0), awscdk.Duration_Seconds(jsii.Number(maxEventAge))
		if a.settings.ReservedConcurrency > 0 {
			props.ReservedConcurrentExecutions = jsii.Number(a.settings.ReservedConcurrency)
		}
	}
	return function{
		Function: awslambda.NewFunction(a.stack, jsii.String(k.id), props),
		role:     role, logGroup: jsii.String("/aws/lambda/" + name),
	}
}

func environ(envs ...map[string]string) *map[string]*string {
	all := map[string]*string{}
	for _, env := range envs {
		for name, value := range env {
			all[name] = jsii.String(value)
		}
	}
	return &all
}
