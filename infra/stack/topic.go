package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"
)

// topic makes the topic that every alarm notifies and returns its ARN. CloudWatch
// cannot publish to a topic under the AWS managed key, so the topic has a key. The
// policies of the key and of the topic must both allow CloudWatch, and the CDK
// writes neither.
func (a *app) topic() *string {
	cloudwatch := awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)
	key := awskms.NewKey(a.stack, jsii.String("AlarmKey"), &awskms.KeyProps{
		Description:       jsii.String("Alarms of " + a.settings.Name),
		EnableKeyRotation: jsii.Bool(true),
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY, // nothing at rest is under it
	})
	key.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("AlarmsEncrypt"), Principals: &[]awsiam.IPrincipal{cloudwatch},
		Actions: jsii.Strings("kms:Decrypt", "kms:GenerateDataKey*"), Resources: jsii.Strings("*"), // the key itself
	}), nil)

	topic := awssns.NewTopic(a.stack, jsii.String("Alarms"), &awssns.TopicProps{
		DisplayName: jsii.String(a.settings.Name + " alarms"), MasterKey: key, EnforceSSL: jsii.Bool(true),
	})
	alarms := a.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("cloudwatch"), Resource: jsii.String("alarm"), ResourceName: jsii.String(a.settings.Name + "-*"),
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("AlarmsPublish"), Principals: &[]awsiam.IPrincipal{cloudwatch},
		Actions: jsii.Strings("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{
			"ArnLike":      map[string]*string{"aws:SourceArn": alarms},
			"StringEquals": map[string]*string{"aws:SourceAccount": a.stack.Account()},
		},
	}))
	if a.settings.AlarmEmail == "" {
		awscdk.Annotations_Of(topic).AddWarningV2(jsii.String("sumepoller:nobody-subscribed"),
			jsii.String("nobody is notified when an alarm fires: set alarm_email in the settings, or subscribe to the topic"), nil)
		return topic.TopicArn()
	}
	topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(a.settings.AlarmEmail), nil))
	return topic.TopicArn()
}
