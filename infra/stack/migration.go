package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/triggers"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/internal/config"
)

// newMigrate makes the function that brings the schema up to date and makes the
// roles. It alone reads the admin's secret.
func (a *app) newMigrate(l logins) function {
	env := map[string]string{
		config.DatabaseSecretID: *a.db.adminSecret,
	}
	f := a.function(kind{
		id: "Migrate", short: "migrate", description: "Brings the schema up to date, makes the roles and checks their way",
		timeout: migrateTimeout, memory: smallMemory, env: env,
	}, a.db.env())
	a.readsSecret(f, "Admin", a.db.adminSecret, a.db.adminKey)
	for what, login := range map[string]login{"PollerLogin": l.poller, "SubmitterLogin": l.submitter} {
		if login.secret != nil {
			a.readsSecret(f, what, login.secret, a.settings.KMSKeyARN)
		}
	}
	return f
}

// migrateFirst runs migrate, with no payload, when its code or configuration
// changes: once the network's rules stand, and before the other functions and
// the schedule take up the new code. Where it fails the deploy fails with its
// line. A rollback runs the older migrator on the newer schema, which it leaves
// as it is.
//
// The trigger brings a Node.js function of the CDK's own, outside the VPC,
// that does nothing but invoke migrate.
func (a *app) migrateFirst(schedule awsscheduler.CfnSchedule) {
	trigger := triggers.NewTrigger(a.stack, jsii.String("RunMigrations"), &triggers.TriggerProps{
		Handler: a.migrate.Function,
		Timeout: awscdk.Duration_Seconds(jsii.Number(migrateTimeout)),
	})
	trigger.ExecuteAfter(a.net.scope)
	trigger.ExecuteBefore(a.poller.Function, a.submit.Function, schedule)
}
