package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"
)

// conditions are IAM conditions: operator, key, value.
type conditions map[string]map[string]string

func statement(effect awsiam.Effect, sid string, resource *string, when conditions, actions ...string) awsiam.PolicyStatement {
	props := &awsiam.PolicyStatementProps{
		Sid: jsii.String(sid), Effect: effect,
		Actions: jsii.Strings(actions...), Resources: &[]*string{resource},
	}
	if len(when) > 0 {
		props.Conditions = &map[string]any{}
		for operator, keys := range when {
			(*props.Conditions)[operator] = keys
		}
	}
	return awsiam.NewPolicyStatement(props)
}

// allow grants actions on one resource.
func allow(role awsiam.Role, sid string, resource *string, when conditions, actions ...string) {
	role.AddToPolicy(statement(awsiam.Effect_ALLOW, sid, resource, when, actions...))
}

// attaches lets Lambda attach the function to its network. The resources of these
// EC2 calls do not exist yet, so the calls are allowed on all resources, and denied
// to the function's code.
func (a *app) attaches(role awsiam.Role, name string) {
	calls := []string{
		"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
		"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
	}
	all := jsii.String("*")
	allow(role, "AttachToNetwork", all, nil, calls...)
	self := a.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("lambda"), Resource: jsii.String("function"), ResourceName: jsii.String(name),
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
	role.AddToPolicy(statement(awsiam.Effect_DENY, "NotFromItsCode", all,
		conditions{"ArnEquals": {"lambda:SourceFunctionArn": *self}}, calls...))
}

// readsSecret lets a function read one secret. If a customer managed key encrypts
// it, the function may use that key, through Secrets Manager only.
func (a *app) readsSecret(f function, what string, arn *string, key string) {
	allow(f.role, "Read"+what, arn, nil, "secretsmanager:GetSecretValue")
	if key != "" {
		allow(f.role, "Decrypt"+what, jsii.String(key),
			conditions{"StringEquals": {"kms:ViaService": "secretsmanager." + *a.stack.Region() + "." + *a.stack.UrlSuffix()}}, "kms:Decrypt")
	}
}

// logsIn lets a function log in to the database as a role. what distinguishes the
// logins of one function.
func (a *app) logsIn(f function, what string, l login) {
	if l.secret != nil {
		a.readsSecret(f, what+"Login", l.secret, a.settings.KMSKeyARN)
		return
	}
	user := a.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("rds-db"), Resource: jsii.String("dbuser"), ResourceName: jsii.String(*a.db.resourceID + "/" + l.role),
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
	allow(f.role, what+"TokenLogin", user, nil, "rds-db:connect")
}

// ownKey returns the customer managed key for the secrets that the stack makes, or
// nil if the settings name none.
func (a *app) ownKey(id string) awskms.IKey {
	if a.settings.KMSKeyARN == "" {
		return nil
	}
	return awskms.Key_FromKeyArn(a.stack, jsii.String(id), jsii.String(a.settings.KMSKeyARN))
}
