package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsrds"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
)

const databasePort = 5432

// newData makes the data stack: a network and a PostgreSQL database. It is
// separate from the app stack, so that the app stack can be deleted and deployed
// again with the same table. The stack has termination protection, the database
// deletion protection, and all resources are kept when the stack is deleted.
//
// A test pins the ids and the create-only properties: a change of one of them
// would replace the database.
func newData(app awscdk.App, s settings.Settings) (awscdk.Stack, database) {
	stack := awscdk.NewStack(app, jsii.String(DataID), &awscdk.StackProps{
		StackName:             jsii.String(s.Name + "-data"),
		Description:           jsii.String("The network and the database of " + s.Name + "; holds the table"),
		TerminationProtection: jsii.Bool(true),
	})
	vpc := newVPC(stack, s)
	group := awsec2.NewSecurityGroup(stack, jsii.String("DatabaseGroup"), &awsec2.SecurityGroupProps{
		Vpc: vpc, AllowAllOutbound: jsii.Bool(false), Description: jsii.String("Database of " + s.Name),
	})
	db := newInstance(stack, s, vpc, group)
	awscdk.RemovalPolicies_Of(stack).RetainOnUpdateOrDelete(nil)
	return stack, database{
		vpc: vpc, subnets: &awsec2.SubnetSelection{SubnetGroupName: jsii.String(functionSubnets)},
		securityGroup: group.SecurityGroupId(),
		host:          db.DbInstanceEndpointAddress(), port: databasePort, name: databaseName,
		adminSecret: db.Secret().SecretArn(),
		iam:         true, resourceID: db.InstanceResourceId(),
	}
}

// Names that a running database cannot change.
const (
	databaseName  = "sume"
	databaseAdmin = "sume_admin"
)

// Groups of subnets: the NAT gateway's, the functions' and the database's.
const (
	natSubnets      = "nat"
	functionSubnets = "functions"
	databaseSubnets = "database"
)

// newVPC makes a VPC with two zones and one NAT gateway. If its zone fails, no run
// reaches the API until it is back; a second gateway would cost more than the rest
// of the stack.
func newVPC(stack awscdk.Stack, s settings.Settings) awsec2.Vpc {
	refused := awslogs.NewLogGroup(stack, jsii.String("RefusedTraffic"), nil)
	refused.Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(jsii.Number(s.LogRetentionDays))
	subnets := func(name string, kind awsec2.SubnetType) *awsec2.SubnetConfiguration {
		return &awsec2.SubnetConfiguration{Name: jsii.String(name), SubnetType: kind, CidrMask: jsii.Number(24)}
	}
	nat := subnets(natSubnets, awsec2.SubnetType_PUBLIC)
	nat.MapPublicIpOnLaunch = jsii.Bool(false)
	return awsec2.NewVpc(stack, jsii.String("Vpc"), &awsec2.VpcProps{
		IpAddresses: awsec2.IpAddresses_Cidr(jsii.String("10.0.0.0/16")),
		MaxAzs:      jsii.Number(2), NatGateways: jsii.Number(1),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{
			nat,
			subnets(functionSubnets, awsec2.SubnetType_PRIVATE_WITH_EGRESS),
			subnets(databaseSubnets, awsec2.SubnetType_PRIVATE_ISOLATED),
		},
		// The default group admits only itself and nothing is in it. To empty
		// it the CDK would add a function.
		RestrictDefaultSecurityGroup: jsii.Bool(false),
		FlowLogs: &map[string]*awsec2.FlowLogOptions{"Refused": {
			TrafficType: awsec2.FlowLogTrafficType_REJECT,
			Destination: awsec2.FlowLogDestination_ToCloudWatchLogs(refused, nil),
		}},
	})
}

// newInstance makes the database. RDS keeps the admin's password and changes it
// every week. IAM logins take up to 1,000 MiB of the instance's 2,048. Only the
// major version is named, so that RDS's minor upgrades are no drift.
func newInstance(stack awscdk.Stack, s settings.Settings, vpc awsec2.Vpc, group awsec2.SecurityGroup) awsrds.DatabaseInstance {
	db := awsrds.NewDatabaseInstance(stack, jsii.String("Database"), &awsrds.DatabaseInstanceProps{
		InstanceIdentifier: jsii.String(s.Name),
		Engine:             awsrds.DatabaseInstanceEngine_Postgres(&awsrds.PostgresInstanceEngineProps{Version: awsrds.PostgresEngineVersion_VER_17()}),
		InstanceType:       awsec2.InstanceType_Of(awsec2.InstanceClass_BURSTABLE4_GRAVITON, awsec2.InstanceSize_SMALL),
		DatabaseName:       jsii.String(databaseName), Port: jsii.Number(databasePort),
		Credentials:              awsrds.Credentials_FromUsername(jsii.String(databaseAdmin), nil),
		ManageMasterUserPassword: jsii.Bool(true), IamAuthentication: jsii.Bool(true),
		Parameters: &map[string]*string{"rds.force_ssl": jsii.String("1")},

		Vpc: vpc, VpcSubnets: &awsec2.SubnetSelection{SubnetGroupName: jsii.String(databaseSubnets)},
		SecurityGroups: &[]awsec2.ISecurityGroup{group}, PubliclyAccessible: jsii.Bool(false),

		StorageType: awsrds.StorageType_GP3, AllocatedStorage: jsii.Number(20), MaxAllocatedStorage: jsii.Number(100),
		StorageEncrypted: jsii.Bool(true), BackupRetention: awscdk.Duration_Days(jsii.Number(14)),
		CopyTagsToSnapshot: jsii.Bool(true), DeleteAutomatedBackups: jsii.Bool(false), AutoMinorVersionUpgrade: jsii.Bool(true),
		MultiAz: jsii.Bool(false), DeletionProtection: jsii.Bool(true),
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
	})
	// The linter knows minor versions only.
	db.Node().DefaultChild().(awsrds.CfnDBInstance).AddMetadata(jsii.String("cfn-lint"),
		map[string]any{"config": map[string]any{"ignore_checks": []string{"W3691"}}})
	return db
}
