package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
)

// database is the one that the functions use, an existing or a new one.
type database struct {
	vpc           awsec2.IVpc
	subnets       *awsec2.SubnetSelection // with a route to the internet
	securityGroup *string
	host          *string
	port          int
	name          string
	adminSecret   *string // ARN
	adminKey      string  // ARN of its key; empty: the AWS managed key
	iam           bool    // IAM tokens instead of passwords
	resourceID    *string // iam only
}

// existing describes the database of the settings. The settings describe its
// network too: nothing is looked up, so that synthesis needs no credentials.
func existing(stack awscdk.Stack, s settings.Settings) database {
	vpc := awsec2.Vpc_FromVpcAttributes(stack, jsii.String("Vpc"), &awsec2.VpcAttributes{
		VpcId:             jsii.String(s.VPC.ID),
		AvailabilityZones: jsii.Strings(s.VPC.AvailabilityZones...),
		PrivateSubnetIds:  jsii.Strings(s.VPC.PrivateSubnetIDs...),
	})
	// The settings name no route tables, since the stack adds no route.
	awscdk.Annotations_Of(vpc).AcknowledgeWarning(jsii.String("@aws-cdk/aws-ec2:noSubnetRouteTableId"), nil)
	return database{
		vpc: vpc, subnets: &awsec2.SubnetSelection{SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS},
		securityGroup: jsii.String(s.Database.SecurityGroupID),
		host:          jsii.String(s.Database.Host), port: s.Database.Port, name: s.Database.Name,
		adminSecret: jsii.String(s.Database.AdminSecretARN), adminKey: s.Database.KMSKeyARN,
		iam: s.Database.Auth == settings.AuthIAM, resourceID: jsii.String(s.Database.ResourceID),
	}
}

// network is the functions' security group with its rules: one construct, so that
// the migration can wait for all of them.
type network struct {
	scope     constructs.Construct
	functions awsec2.SecurityGroup
}

// network makes the functions' security group and lets it into the database's, by
// reference. Outbound it allows HTTPS and the database's port, nothing else. The
// VPC's resolver needs no rule.
func (a *app) network() network {
	scope := constructs.NewConstruct(a.stack, jsii.String("Network"))
	functions := awsec2.NewSecurityGroup(scope, jsii.String("Functions"), &awsec2.SecurityGroupProps{
		Vpc: a.db.vpc, AllowAllOutbound: jsii.Bool(false),
		Description: jsii.String("Functions of " + a.settings.Name),
	})
	db := awsec2.SecurityGroup_FromSecurityGroupId(scope, jsii.String("Database"), a.db.securityGroup,
		&awsec2.SecurityGroupImportOptions{Mutable: jsii.Bool(true)})
	port := awsec2.Port_Tcp(jsii.Number(a.db.port))
	functions.AddEgressRule(awsec2.Peer_AnyIpv4(), awsec2.Port_Tcp(jsii.Number(443)), jsii.String("HTTPS to Sume and AWS"), nil)
	functions.AddEgressRule(db, port, jsii.String("PostgreSQL"), nil)
	db.AddIngressRule(functions, port, jsii.String("PostgreSQL from the functions of "+a.settings.Name), nil)
	return network{scope: scope, functions: functions}
}
