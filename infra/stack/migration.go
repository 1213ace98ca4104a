package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/triggers"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
	"sumepoller/internal/config"
)

// newMigrate makes the function that brings the schema up to date and makes the
// roles. It alone reads the admin's secret. It also logs in as the two roles, to
// check that they can.
func (a *app) newMigrate(l logins) function {
	env := a.db.env()
	env[config.DatabaseSecretID] = *a.db.adminSecret
	env[config.MigratePollerRole], env[config.MigrateSubmitRole] = l.poller.role, l.submitter.role
	env[config.MigrateRoleAuth] = config.RoleAuthIAM
	if !a.db.iam {
		env[config.MigrateRoleAuth] = config.RoleAuthSecret
		env[config.MigratePollerSecretID], env[config.MigrateSubmitSecretID] = *l.poller.secret, *l.submitter.secret
	}
	f := a.function(kind{
		id: "Migrate", short: "migrate", description: "Brings the schema up to date, makes the roles and checks their way",
		timeout: migrateTimeout, memory: settings.Defaults().MemoryMiB, env: env,
	})
	a.readsSecret(f, "Admin", a.db.adminSecret, a.db.adminKey)
	a.logsIn(f, "Poller", l.poller)
	a.logsIn(f, "Submitter", l.submitter)
	return f
}

// migrateFirst runs migrate, with no payload, when its code or configuration
// changes: after the network's rules exist, and before the other functions and the
// schedule get the new code. If it fails, the deploy fails with its error. A
// rollback runs the older migrate on the newer schema, which it leaves as it is.
//
// The trigger adds a Node.js function of the CDK, outside the VPC, that only
// invokes migrate.
func (a *app) migrateFirst(schedule awsscheduler.CfnSchedule) {
	trigger := triggers.NewTrigger(a.stack, jsii.String("RunMigrations"), &triggers.TriggerProps{
		Handler: a.migrate.Function,
		// Longer than migrate's timeout. With the same one the trigger would give
		// up before Lambda answers, and invoke again.
		Timeout: awscdk.Duration_Seconds(jsii.Number(migrateTimeout + 60)),
	})
	trigger.ExecuteAfter(a.net.scope)
	trigger.ExecuteBefore(a.poller.Function, a.submit.Function, schedule)
}
